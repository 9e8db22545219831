"""`child.py` with entry points that fail, each in its own way, to test the parent process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.fuzz import child
from tests.fuzz.targets import ENTRY_POINTS, EntryPoint

BAD: Final = b"bad"


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def raise_something() -> object:
    return b""[1]


def spin() -> None:
    while True:
        pass


def take_memory() -> object:
    return bytearray(8 << 20)


def want_gigabytes() -> object:
    return bytearray(4 << 30)


WORST: Final[list[Callable[[], object]]] = [
    crash,
    raise_something,
    spin,
    take_memory,
    want_gigabytes,
]


def entry_point(act: Callable[[], object]) -> EntryPoint:
    """Return an entry point that accepts every input but BAD, for which it calls `act`."""

    def run(data: bytes) -> None:
        if data == BAD:
            act()

    return EntryPoint(
        act.__name__,
        run,
        lambda: [*[b"good"] * 16, BAD],
        list,
        framed=False,
        base=1 << 20,
        factor=0,
        share=0,
    )


if __name__ == "__main__":
    ENTRY_POINTS.update({act.__name__: entry_point(act) for act in WORST})
    child.main()
