"""Counts of a broker's syncs, taken within its processes, and a way to slow its disk down."""

import mmap
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from tests.bench.build import built
from tests.bench.places import BenchError

LAYOUT: Final = struct.Struct("=QQQ")  # as in syncs.c: processes, syncs, delay in µs
DELAY: Final = struct.Struct("=Q")
DELAY_AT: Final = LAYOUT.size - DELAY.size


class Syncs:
    """The counter that the processes of one broker share. They are started with `environment`."""

    def __init__(self, folder: Path, library: Path) -> None:
        # copied: a server that runs as another user may not read the checkout
        copy = Path(shutil.copy(library, folder))
        counted = folder / "syncs"
        counted.write_bytes(bytes(LAYOUT.size))
        counted.chmod(0o666)
        with counted.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), LAYOUT.size)
        self.environment: Final = {"LD_PRELOAD": str(copy), "BENCH_SYNCS": str(counted)}

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return a counter in that folder, which every user may enter."""
        return cls(folder, built("syncs.so", ["syncs.c"], [["-shared", "-fPIC"]]))

    def close(self) -> None:
        self._shared.close()

    @property
    def count(self) -> int:
        """Return how many calls of fsync and fdatasync there were."""
        processes, syncs, _ = LAYOUT.unpack(self._shared)
        if not processes:
            raise BenchError("the syncs of the broker are not counted: the library is not in it")
        return int(syncs)

    @contextmanager
    def slowed(self, milliseconds: float) -> Iterator[None]:
        """Make every sync within the block take `milliseconds` longer."""
        self._delay(milliseconds)
        try:
            yield
        finally:
            self._delay(0)

    def _delay(self, milliseconds: float) -> None:
        self._shared[DELAY_AT:] = DELAY.pack(round(milliseconds * 1000))
