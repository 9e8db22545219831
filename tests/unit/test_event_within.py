"""A wait for an event that has a limit."""

from __future__ import annotations

import asyncio

from broker.event_within import is_set_within


async def test_it_ends_when_the_event_is_set_or_when_its_time_is_over() -> None:
    event = asyncio.Event()
    assert not await is_set_within(event, 0.001)
    asyncio.get_running_loop().call_soon(event.set)
    assert await is_set_within(event, 60)
    assert await is_set_within(event, 0)
