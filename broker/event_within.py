"""A wait for an event that has a limit."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Return whether `event` is set, as soon as it is, after `seconds` at the latest."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
