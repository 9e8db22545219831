"""Lines that the broker writes to the log, by their texts."""

from __future__ import annotations

from collections.abc import Iterable

from broker.log_events import Notice


def notice_texts(notices: Iterable[Notice]) -> list[str]:
    """Return the texts of notices, without their codes."""
    return [notice.text for notice in notices]
