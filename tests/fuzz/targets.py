"""The table of entry points, and what holds of an input whatever the entry point is."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.fuzz import conversing, decoding, seeds

CPU_SECONDS_MAX: Final = 1
"""What one input of at most 64 KiB may take compiled; the longest take some milliseconds."""

MEASURED: Final = 16
"""Of so many inputs, one has its memory measured: that takes longer than the input itself."""


@dataclass(frozen=True)
class EntryPoint:
    """Where bytes go in. `run` raises whatever is not right.

    An input may take `base` bytes of memory and `factor` for each of its own; a count or size
    that is believed before its bytes are there would take gigabytes. `share` is its part of
    the mutations. `extremes` are run as they are, and not made anything of.
    """

    name: str
    run: Callable[[bytes], None]
    made_seeds: Callable[[], list[bytes]]
    extremes: Callable[[], list[bytes]]
    framed: bool
    base: int
    factor: int
    share: int

    def seeds(self) -> list[bytes]:
        return [*self.made_seeds(), *seeds.corpus_of(self.name)]


class TooMuchMemoryError(AssertionError):
    """An input took more memory than its size explains."""


KIB: Final = 1024

ENTRY_POINTS: Final = {
    each.name: each
    for each in (
        EntryPoint(
            "decoder",
            decoding.decoder,
            seeds.decoder,
            seeds.deep_values,
            framed=False,
            base=256 * KIB,
            factor=400,
            share=30,
        ),
        EntryPoint(
            "sections",
            decoding.sections,
            seeds.sections,
            seeds.deep_messages,
            framed=False,
            base=256 * KIB,
            factor=400,
            share=30,
        ),
        EntryPoint(
            "frames",
            decoding.frames,
            seeds.frames,
            seeds.deep_frames,
            framed=True,
            base=256 * KIB,
            factor=400,
            share=20,
        ),
        EntryPoint(
            "connection",
            conversing.connection,
            seeds.connection,
            seeds.deep_frames,
            framed=True,
            base=1024 * KIB,
            factor=1000,
            share=10,
        ),
        EntryPoint(
            "sasl",
            conversing.sasl,
            seeds.sasl,
            list,
            framed=True,
            base=1024 * KIB,
            factor=1000,
            share=10,
        ),
    )
}


def examine(entry_point: EntryPoint, data: bytes, *, beside: int = 0) -> int:
    """Run one input and measure it: the most memory it took, in bytes.

    `beside` so many are whoever's who looks on. What only the first run takes is not the
    input's: modules are imported when they are first needed.
    """
    most = beside + entry_point.base + entry_point.factor * len(data)
    taken = _measured(entry_point, data)
    if taken > most:
        taken = _measured(entry_point, data)
    if taken > most:
        raise TooMuchMemoryError(f"{taken} bytes of memory for an input of {len(data)}")
    return taken


def _measured(entry_point: EntryPoint, data: bytes) -> int:
    tracemalloc.start()
    try:
        entry_point.run(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
