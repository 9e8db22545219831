"""Pages of a long list of scheduled messages: their order, their places, others' turns."""

from __future__ import annotations

import asyncio
import random

import pytest

import broker.management.stretches
from broker.management.scheduled import EXAMINED_MAX, START, ScheduledPage, scheduled_behind
from broker.routing.entries.record_mapping import stored_position
from broker.routing.queues.schedule import Timeline
from broker.routing.selector import parse_selector
from tests.support.clock import WALL_START_MS
from tests.support.routing import Routing, new_message

pytestmark = pytest.mark.requirement("DLY-04")

COUNT = 5000


def timeline() -> Timeline:
    """Return the timeline of a queue with COUNT messages, many of them due at the same time."""
    routing = Routing()
    queue = routing.queue()
    draw = random.Random(1)
    for number in range(COUNT):
        due = WALL_START_MS + 1000 + draw.randrange(COUNT // 4)
        queue.put(new_message(b"%d" % number, deliver_at_ms=due), routing.batch)
    schedule = queue.state.schedule
    assert schedule is not None
    return schedule.by_wall


async def test_pages_have_all_messages_in_the_order_in_which_they_fall_due() -> None:
    scheduled = timeline()
    found: list[bytes] = []
    place = START
    while page := await scheduled_behind(scheduled, place, 700):
        found += [entry.message.encoded for _, _, entry in page]
        place = page[-1][:2]
    assert found == [entry.message.encoded for entry in scheduled.entries()]


async def test_others_have_their_turn_while_a_page_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker.management.stretches, "STRETCH_S", 0)
    scheduled = timeline()
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    assert len(await scheduled_behind(scheduled, START, 10)) == 10
    counting.cancel()
    assert turns >= COUNT // 500


async def test_messages_that_are_cancelled_meanwhile_are_not_listed() -> None:
    scheduled = timeline()
    first = scheduled.entries()[0]
    looking = asyncio.create_task(scheduled_behind(scheduled, START, 10))
    await asyncio.sleep(0)
    assert scheduled.cancel(stored_position(first)) is first
    assert first not in [entry for _, _, entry in await looking]


async def test_a_selector_sees_a_part_and_the_next_page_goes_on() -> None:
    scheduled = timeline()
    page = ScheduledPage(count=10, scan=10_000, selector=parse_selector("colour = 'blue'"))
    assert await page.entries(scheduled, START) == []
    at_ms, rank, _ = sorted(scheduled.timed())[EXAMINED_MAX - 1]
    assert page.next == f"{at_ms}.{rank}"
