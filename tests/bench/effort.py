"""The cost of work to a broker: processor time, syncs, bytes written to the disk."""

import math
import os
from dataclasses import dataclass

from tests.bench.disk import written_bytes
from tests.bench.machine import busy_seconds
from tests.bench.server import Server


@dataclass(frozen=True)
class Effort:
    """The resources that a broker has used between two moments."""

    cpu_seconds: float = 0.0
    busy_seconds: float = 0.0  # of all processes of the machine
    syncs: int = 0
    written_bytes: float = 0.0  # to the disk of the store, by any process; not a number if unknown

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(
            self.cpu_seconds + other.cpu_seconds,
            self.busy_seconds + other.busy_seconds,
            self.syncs + other.syncs,
            self.written_bytes + other.written_bytes,
        )

    def others_percent(self, seconds: float, client_cpu_seconds: float) -> float:
        """Return the CPU use of all other programs on the machine, in percent of one core."""
        others = self.busy_seconds - self.cpu_seconds - client_cpu_seconds
        return max(100 * others / seconds, 0)

    def on_disk(self, messages: int) -> dict[str, float]:
        """Return the disk's work for each of that many messages, as far as it is known."""
        figures = {"syncs_per_1000": 1000 * self.syncs / messages}
        if not math.isnan(self.written_bytes):
            figures["written_per_message"] = self.written_bytes / messages
        return figures


class Meter:
    """Reads the resources that a broker uses from now on.

    Data of files in the kernel's cache is written out before the first reading of the disk and
    before the last, outside the time of the work.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        os.sync()
        self._written_bytes = written_bytes(server.folder)
        self._syncs = server.syncs.count
        self._busy_seconds = busy_seconds()
        self._cpu_seconds = server.cpu_seconds()

    def effort(self) -> Effort:
        """Return the resources used so far."""
        cpu_seconds = self._server.cpu_seconds() - self._cpu_seconds
        busy = busy_seconds() - self._busy_seconds
        syncs = self._server.syncs.count - self._syncs
        os.sync()
        written = written_bytes(self._server.folder) - self._written_bytes
        return Effort(cpu_seconds, busy, syncs, written)
