"""What a broker spends on some work: processor time, syncs, bytes that go to the disk."""

import math
import os
from dataclasses import dataclass

from tests.bench.disk import written_bytes
from tests.bench.machine import busy_seconds
from tests.bench.server import Server


@dataclass(frozen=True)
class Effort:
    """What a broker has spent between two moments."""

    cpu_seconds: float = 0.0
    busy_seconds: float = 0.0  # of all processes of the machine
    syncs: int = 0
    written_bytes: float = 0.0  # to the disk with the store, by whomever; not a number if unknown

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(
            self.cpu_seconds + other.cpu_seconds,
            self.busy_seconds + other.busy_seconds,
            self.syncs + other.syncs,
            self.written_bytes + other.written_bytes,
        )

    def others_percent(self, seconds: float, client_cpu_seconds: float) -> float:
        """What all else on the machine took meanwhile, of one core."""
        others = self.busy_seconds - self.cpu_seconds - client_cpu_seconds
        return max(100 * others / seconds, 0)

    def on_disk(self, messages: int) -> dict[str, float]:
        """What the disk had to do for each of that many messages, as far as that is known."""
        figures = {"syncs_per_1000": 1000 * self.syncs / messages}
        if not math.isnan(self.written_bytes):
            figures["written_per_message"] = self.written_bytes / messages
        return figures


class Meter:
    """Reads what a broker spends from now on.

    What its files have in the kernel's cache is written out before the first reading of the disk
    and before the last, outside the time of the work.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        os.sync()
        self._written_bytes = written_bytes(server.folder)
        self._syncs = server.syncs.count
        self._busy_seconds = busy_seconds()
        self._cpu_seconds = server.cpu_seconds()

    def effort(self) -> Effort:
        """What has been spent so far."""
        cpu_seconds = self._server.cpu_seconds() - self._cpu_seconds
        busy = busy_seconds() - self._busy_seconds
        syncs = self._server.syncs.count - self._syncs
        os.sync()
        written = written_bytes(self._server.folder) - self._written_bytes
        return Effort(cpu_seconds, busy, syncs, written)
