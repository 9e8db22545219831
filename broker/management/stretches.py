"""Long work in the event loop, divided into stretches: the loop serves sockets between two."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

STRETCH_S: Final = 0.002
"""Seconds after which a stretch ends. The loop's budget for one is 5 ms."""

PORTION: Final = 32
"""Items between two looks at the clock: that many take less than a millisecond."""


async def in_portions(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Yield `items` in portions of PORTION, with other work of the loop after each stretch.

    Other work is done first, too: that `items` could be made has taken time of its own.
    """
    await asyncio.sleep(0)
    ends_s = time.perf_counter() + STRETCH_S
    for first in range(0, len(items), PORTION):
        yield items[first : first + PORTION]
        if time.perf_counter() >= ends_s:
            await asyncio.sleep(0)
            ends_s = time.perf_counter() + STRETCH_S
