"""Work on many nodes, in stretches between which the event loop serves its sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar, final

STRETCH: Final = 500
"""Nodes of one stretch: less than 5 ms of the event loop."""

T = TypeVar("T")


@final
class Stretches:
    """Divides work into stretches of at most `nodes` nodes."""

    def __init__(self, nodes: int = STRETCH) -> None:
        self._nodes: Final = nodes

    async def of(self, items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
        """Yield the items stretch by stretch; other work has its turn after each of them."""
        for at in range(0, len(items), self._nodes):
            yield items[at : at + self._nodes]
            await asyncio.sleep(0)
