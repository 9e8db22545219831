"""A process that runs inputs through one build of the broker, and may die of one.

It is started by file name, not as a module, so that it decides itself from where `broker` is
imported. It writes every input into a file shared with its parent before it runs it: if it dies, by
a signal or by an exception, that input is the cause. More than a second of CPU time for one input
kills it, too.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import mmap
import resource
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.fuzz.targets import EntryPoint

ROOT: Final = Path(__file__).resolve().parents[2]
COLLECTED: Final = 512
"""Number of inputs after which garbage is collected.

Otherwise one input would be blamed for the time of a collection of thousands.
"""

SHARED_SIZE: Final = 128 * 1024
MEMORY_MAX: Final = 512 * 1024 * 1024
"""Maximum bytes of address space beyond those in use before the first input.

More is a MemoryError.
"""


def import_broker(*, compiled: bool) -> None:
    """Import `broker` from the wheel or from the checkout, and `tests` from the checkout."""
    if compiled:
        place = str(importlib.import_module("broker.amqp.connection").__file__)
        importlib.import_module("storage.memory")
        if not place.endswith((".so", ".pyd")):
            raise SystemExit(f"not compiled: {place}. Run `make build`.")
    sys.path.insert(0, str(ROOT))


class Shared:
    """A file from which the parent reads the last input: its size in four bytes, and its bytes."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._map: Final = mmap.mmap(opened.fileno(), SHARED_SIZE)

    def put(self, data: bytes) -> None:
        self._map[: 4 + len(data)] = len(data).to_bytes(4) + data


STACK_MAX: Final = 256 * 1024
"""Maximum bytes of stack, so that endless recursion is noticed before it takes megabytes."""


def limit_memory() -> None:
    """Limit stack and address space; the latter relative to its present size."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_MAX, hard))
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_MAX, used + MEMORY_MAX))


def run(entry_point: EntryPoint, shared: Shared, asked: argparse.Namespace) -> dict[str, object]:
    """Run the seeds, then mutations of them, until the count or the time is reached.

    Return the figures of the run.
    """
    from tests.fuzz.mutation import Mutator
    from tests.fuzz.targets import CPU_SECONDS_MAX, MEASURED, examine

    seeds = entry_point.seeds()
    whole = [*seeds, *entry_point.extremes()]
    mutator = Mutator(seeds, seed=asked.seed, framed=entry_point.framed)
    until = time.monotonic() + asked.seconds
    gc.collect()
    gc.freeze()
    count = memory = 0
    slowest = 0.0
    while count < asked.count and time.monotonic() < until:
        data = whole[count] if count < len(whole) else mutator.next()
        shared.put(data)
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS_MAX)
        start = time.process_time()
        if count % MEASURED == 0:
            memory = max(memory, examine(entry_point, data))
        else:
            entry_point.run(data)
            slowest = max(slowest, time.process_time() - start)
        count += 1
        if count % COLLECTED == 0:
            gc.collect()
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return {
        "entry_point": entry_point.name,
        "inputs": count,
        "slowest_ms": round(slowest * 1000, 1),
        "memory": memory,
        "seeds": len(whole),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("shared", type=Path)
    parser.add_argument("entry_points", nargs="+")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", type=Path, help="run this one alone")
    asked = parser.parse_args()
    import_broker(compiled=asked.compiled)
    from tests.fuzz.targets import ENTRY_POINTS, examine

    limit_memory()
    shared = Shared(asked.shared)
    for name in asked.entry_points:
        if asked.input:
            examine(ENTRY_POINTS[name], asked.input.read_bytes())
        else:
            print(json.dumps(run(ENTRY_POINTS[name], shared, asked)), flush=True)


if __name__ == "__main__":
    main()
