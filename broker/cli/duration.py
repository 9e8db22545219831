"""Durations as typed: a number and a unit, such as 90s, 30m, 1h or 7d."""

from __future__ import annotations

import re
from typing import Final

UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
TYPED: Final = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhd])")


def seconds_in(text: str) -> int:
    """Return the seconds of a duration. ValueError if it is none."""
    found = TYPED.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration: write a number and s, m, h or d, such as 1h")
    return int(found["count"]) * UNITS_S[found["unit"]]
