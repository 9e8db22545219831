"""Quantities as a person reads them: counts, rates, durations, times of the day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

THOUSANDS: Final = ("", "k", "M", "G")

NONE: Final = "\N{EN DASH}"
"""The text for a value that is unknown."""

UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))
"""Units of time, in milliseconds."""


def number(value: float | None) -> str:
    """Return a count with its thousands apart; a fraction has three digits."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def short_number(value: float) -> str:
    """Return a number for an axis, such as `1.5k`."""
    size = 0
    while abs(value) >= 1000 and size + 1 < len(THOUSANDS):
        value /= 1000
        size += 1
    return f"{value:.3g}{THOUSANDS[size]}"


def duration(ms: float | None) -> str:
    """Return milliseconds in their largest unit and, for minutes and more, the next one."""
    if ms is None:
        return NONE
    if ms < 1:
        return f"{ms * 1000:.0f} µs"
    index = next(index for index, (size, _) in enumerate(UNITS) if ms >= size)
    size, unit = UNITS[index]
    if size <= 1000:
        return f"{number(ms / size)} {unit}"
    whole, rest = divmod(ms, size)
    below, name = UNITS[index + 1]
    return f"{whole:.0f} {unit}" + (f" {rest // below:.0f} {name}" if rest >= below else "")


def moment(at: datetime, span: timedelta) -> str:
    """Return a time (UTC) as precisely as a period of the length `span` needs."""
    if span >= timedelta(days=3):
        return f"{at:%Y-%m-%d}"
    if span >= timedelta(days=1):
        return f"{at:%m-%d %H:%M}"
    return f"{at:%H:%M:%S}" if span < timedelta(hours=1) else f"{at:%H:%M}"
