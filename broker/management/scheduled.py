"""Pages of the messages of a queue that wait for a time, the earliest first.

A queue may have a million of them. They are neither sorted nor examined in one piece: a page is
the least entries behind a place, found in stretches.
"""

from __future__ import annotations

import re
from typing import Final

from broker.management.message_scan import Examination
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.management.stretches import in_portions
from broker.routing.queues.schedule import TimedEntry, Timeline
from broker.routing.selector import Selector

START: Final = (-1, -1)
PLACE: Final = re.compile(r"(\d{1,18})\.(\d{1,18})", re.ASCII)

EXAMINED_MAX: Final = 1000
"""Maximum messages whose properties a selector is applied to for one page."""

PORTION: Final = 500
"""Entries compared between two looks at the clock: some 0.1 ms."""


def place_after(request: Request) -> tuple[int, int]:
    """Return the place behind which the page begins: time in ms, and rank of arrival.

    Raise Refused if the argument `after` is no `next` of another page.
    """
    text = request.text("after", "")
    if not text:
        return START
    found = PLACE.fullmatch(text)
    if found is None:
        raise Refused(BAD_REQUEST, f"after is {text:.50}, which is no `next` of a page before")
    return int(found[1]), int(found[2])


async def scheduled_behind(
    timeline: Timeline, place: tuple[int, int], at_most: int
) -> list[TimedEntry]:
    """Return up to `at_most` entries behind `place`, sorted; the event loop serves others."""
    found: list[TimedEntry] = []
    end: tuple[int, int] | None = None
    async for portion in in_portions(timeline.timed(), PORTION):
        found += [
            each for each in timeline.behind(list(portion), place) if end is None or each[:2] < end
        ]
        if len(found) >= 2 * at_most:
            found.sort()
            del found[at_most:]
            end = found[-1][:2]
    # some may have been cancelled since
    return sorted(timeline.behind(found, place))[:at_most]


class ScheduledPage:
    """A page of scheduled or paused messages that a selector, if there is one, matches.

    `next` is the place after which the next page begins, None at the end.
    """

    def __init__(self, *, count: int, scan: int, selector: Selector | None) -> None:
        """Make a page of up to `count` messages, of which up to `scan` are examined."""
        self._count: Final = count
        self._examined: Final = count if selector is None else min(scan, EXAMINED_MAX)
        self._selector: Final = selector
        self.next: str | None = None

    async def entries(self, timeline: Timeline, place: tuple[int, int]) -> list[TimedEntry]:
        """Return the entries of the page that begins behind `place`, with their times."""
        found = await scheduled_behind(timeline, place, self._examined + 1)
        examination = Examination(self._selector)
        matching: list[TimedEntry] = []
        for number, timed in enumerate(found):
            at_ms, rank, entry = timed
            if number == self._examined or len(matching) == self._count or examination.is_over():
                return matching
            self.next = f"{at_ms}.{rank}"
            if examination.matches(entry):
                matching.append(timed)
        self.next = None
        return matching
