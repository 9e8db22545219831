"""The streams that the HTTP server sends: how many there may be, and what breaks one off."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from broker.management.request import BUSY, Refused

if TYPE_CHECKING:
    from broker.links.watcher import Watcher


class ReportedFailure(Exception):  # noqa: N818 - an event, which the operator knows already
    """A response that cannot be finished, of which the operator has been told."""


class BrokenOff(Exception):  # noqa: N818 - an event, reported to the operator
    """A stream that cannot be finished. The text says why."""


Check = Callable[[], None]
"""Raises BrokenOff if the client of a stream may have no further batch."""


@final
class Streams:
    """Counts the streams being sent (`under_way`), of which there may be `at_most`."""

    def __init__(self, at_most: int, watcher: Watcher) -> None:
        self.watcher: Final = watcher
        self.under_way = 0
        self._at_most: Final = at_most

    def begin(self) -> None:
        """Count a stream as begun; Refused if `at_most` streams are being sent."""
        if self.under_way == self._at_most:
            raise Refused(BUSY, f"{self._at_most} streams are under way; ask again later")
        self.under_way += 1

    def end(self) -> None:
        """Count a stream as finished."""
        self.under_way -= 1
