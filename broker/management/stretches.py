"""Long work in the event loop, divided into stretches: the loop serves sockets between two."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from broker.journal import Journal

T = TypeVar("T")

STRETCH_S: Final = 0.002
"""Seconds after which a stretch ends. The loop's budget for one is 5 ms."""

PORTION: Final = 32
"""Items between two looks at the clock: that many take less than a millisecond."""


async def in_portions(items: Sequence[T], size: int = PORTION) -> AsyncIterator[Sequence[T]]:
    """Yield `items` in portions of `size`, with other work of the loop after each stretch.

    Other work is done first, too: that `items` could be made has taken time of its own.
    """
    portions = (items[first : first + size] for first in range(0, len(items), size))
    async for portion in one_by_one(portions):
        yield portion


async def one_by_one(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield `items`, which take time to make, with other work of the loop after each stretch."""
    await asyncio.sleep(0)
    ends_s = time.perf_counter() + STRETCH_S
    for item in items:
        yield item
        if time.perf_counter() >= ends_s:
            await asyncio.sleep(0)
            ends_s = time.perf_counter() + STRETCH_S


@contextmanager
def long_change(journal: Journal) -> Iterator[None]:
    """Make a change for which `journal` is held, and release it.

    A change that fails half-way, or is cancelled, must not be written in part: the broker ends.
    """
    try:
        yield
    except BaseException as error:
        journal.fail(error)
        raise
    journal.release()
