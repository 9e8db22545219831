"""`python -m tests.fuzz.keep`: make a new corpus from the old one and the inputs of guided runs.

An input is kept if it reaches a step from line to line of the broker that no made seed and no
shorter input reaches, and is cut down to what it needs for that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from tests.fuzz import seeds
from tests.fuzz.runs import ROOT
from tests.fuzz.targets import ENTRY_POINTS, EntryPoint

if TYPE_CHECKING:
    from _typeshed import TraceFunction

GATHERED: Final = ROOT / "build" / "fuzz" / "gathered"
PRODUCT: Final = (str(ROOT / "broker"), str(ROOT / "storage"))
KEPT_SIZE_MAX: Final = 1024

Steps = set[tuple[str, int, int]]


@contextmanager
def traced(steps: Steps) -> Iterator[None]:
    """Record in `steps` every step from line to line in the broker's code."""
    before = sys.gettrace()

    def enter(frame: FrameType, _event: str, _argument: object) -> TraceFunction | None:
        name = frame.f_code.co_filename
        if not name.startswith(PRODUCT):
            return None
        last = -1

        def step(frame: FrameType, event: str, _argument: object) -> TraceFunction:
            nonlocal last
            if event == "line":
                steps.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return step

        return step

    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def steps_of(entry_point: EntryPoint, data: bytes) -> Steps:
    """Return the steps from line to line that the broker takes for an input."""
    steps: Steps = set()
    with traced(steps):
        entry_point.run(data)
    return steps


def _reaches(entry_point: EntryPoint, steps: Steps, data: bytes) -> bool:
    return steps <= steps_of(entry_point, data)


def shrunk(data: bytes, holds: Callable[[bytes], bool]) -> bytes:
    """Return `data` without the pieces that are not needed for `holds` to be true."""
    size = len(data) // 2
    while size > 0:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if holds(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def worth_keeping(entry_point: EntryPoint, inputs: Iterable[bytes]) -> list[bytes]:
    """Return those of `inputs` that reach something new, reduced, the shortest first."""
    known: Steps = set()
    for data in entry_point.made_seeds():
        known |= steps_of(entry_point, data)
    kept: list[bytes] = []
    for data in sorted(set(inputs), key=lambda each: (len(each), each)):
        new = steps_of(entry_point, data) - known
        if not new:
            continue
        smallest = shrunk(data, partial(_reaches, entry_point, new))
        known |= steps_of(entry_point, smallest)
        kept.append(smallest)
    return kept


def main() -> None:
    for entry_point in ENTRY_POINTS.values():
        inputs = seeds.corpus_of(entry_point.name)
        folder: Path = GATHERED / entry_point.name
        if folder.is_dir():
            inputs += [
                file.read_bytes()
                for file in sorted(folder.iterdir())
                if file.stat().st_size <= KEPT_SIZE_MAX
            ]
        kept = worth_keeping(entry_point, inputs)
        seeds.keep(entry_point.name, kept)
        print(f"{entry_point.name}: {len(kept)} of {len(inputs)}, {sum(map(len, kept))} bytes")


if __name__ == "__main__":
    main()
