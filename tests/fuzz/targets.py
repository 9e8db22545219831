"""The table of entry points, and the limits of time and memory for an input of any of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.fuzz import (
    access_rules,
    api_requests,
    conversing,
    decoding,
    entering,
    exchanging,
    seeds,
    token_logins,
)

CPU_SECONDS_MAX: Final = 1
"""Maximum seconds of CPU time for an input of up to 64 KiB, compiled.

The longest inputs take some milliseconds.
"""

MEASURED: Final = 16
"""Number of inputs per one whose memory is measured, which takes longer than the input itself."""


@dataclass(frozen=True)
class EntryPoint:
    """A function that inputs are given to; `run` raises an error for any wrong behaviour.

    An input may take `base` bytes of memory and `factor` for each of its own; believing a count or
    a size before its bytes have arrived would take gigabytes. `share` is its part of the mutations,
    in percent. `extremes` are run as they are, and not mutated.
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
            share=20,
        ),
        EntryPoint(
            "sections",
            decoding.sections,
            seeds.sections,
            seeds.deep_messages,
            framed=False,
            base=256 * KIB,
            factor=400,
            share=24,
        ),
        EntryPoint(
            "frames",
            decoding.frames,
            seeds.frames,
            seeds.deep_frames,
            framed=True,
            base=256 * KIB,
            factor=400,
            share=17,
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
        EntryPoint(
            "rules",
            access_rules.access_rules,
            access_rules.seeds,
            access_rules.extremes,
            framed=False,
            # the built-in roles, and the pairs of up to 64 values of who with 64 patterns
            base=8 * 1024 * KIB,
            factor=1000,
            share=4,
        ),
        EntryPoint(
            "scram",
            exchanging.scram,
            exchanging.seeds,
            list,
            framed=False,
            base=256 * KIB,
            factor=400,
            share=5,
        ),
        EntryPoint(
            "websocket",
            entering.websocket,
            entering.websocket_seeds,
            entering.websocket_extremes,
            framed=False,
            # four connections, each with a copy of the input and of what it sends
            base=512 * KIB,
            factor=1000,
            share=3,
        ),
        EntryPoint(
            "proxy",
            entering.proxy,
            entering.proxy_seeds,
            list,
            framed=False,
            base=256 * KIB,
            factor=400,
            share=2,
        ),
        EntryPoint(
            "tokens",
            token_logins.token_login,
            token_logins.seeds,
            token_logins.extremes,
            framed=False,
            # cryptography keeps the key of each set of keys
            base=512 * KIB,
            factor=400,
            share=3,
        ),
        EntryPoint(
            "api",
            api_requests.api_request,
            api_requests.seeds,
            api_requests.extremes,
            framed=False,
            base=512 * KIB,
            factor=1000,
            share=2,
        ),
    )
}


def examine(entry_point: EntryPoint, data: bytes, *, beside: int = 0) -> int:
    """Run one input; return the largest amount of memory that it took, in bytes.

    `beside` bytes belong to the caller's instruments. An excess in the first run alone is not the
    input's fault: modules are imported when they are first needed.
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
