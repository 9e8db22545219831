"""A process that runs inputs through one build of the broker, and may die of it.

Started by file name, not as a module, so that it says itself where `broker` comes from. It
writes every input into a file shared with its parent before it runs it: when it dies, by a
signal or by an exception, that is the input. One second of CPU time on one input is death, too.
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
"""A collection after so many inputs, or one of them would be blamed for thousands."""

SHARED_SIZE: Final = 128 * 1024
MEMORY_MAX: Final = 512 * 1024 * 1024
"""Of address space beyond what is there before the first input; more is a MemoryError."""


def import_broker(*, compiled: bool) -> None:
    """Have `broker` come from the wheel or the checkout, and `tests` from the checkout."""
    if compiled:
        place = str(importlib.import_module("broker.amqp.connection").__file__)
        importlib.import_module("storage.memory")
        if not place.endswith((".so", ".pyd")):
            raise SystemExit(f"not compiled: {place}. Run `make build`.")
    sys.path.insert(0, str(ROOT))


class Shared:
    """The file in which the parent finds the input that was the last: its size, and itself."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._map: Final = mmap.mmap(opened.fileno(), SHARED_SIZE)

    def put(self, data: bytes) -> None:
        self._map[: 4 + len(data)] = len(data).to_bytes(4) + data


STACK_MAX: Final = 256 * 1024
"""So that recursion without an end to its depth needs no megabytes to be seen."""


def limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_MAX, hard))
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_MAX, used + MEMORY_MAX))


def run(entry_point: EntryPoint, shared: Shared, asked: argparse.Namespace) -> dict[str, object]:
    """Seeds first, then what is made of them, until the count or the time is reached."""
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
