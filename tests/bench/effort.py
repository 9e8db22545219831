"""What a broker spends on some work: processor time, syncs, bytes that go to the disk."""

from dataclasses import dataclass
from typing import Self

from tests.bench.machine import busy_seconds
from tests.bench.server import Server


@dataclass(frozen=True)
class Effort:
    """What a broker has spent so far, or between two moments."""

    cpu_seconds: float = 0.0
    busy_seconds: float = 0.0  # of all processes of the machine
    syncs: int = 0
    written_bytes: int = 0

    @classmethod
    def so_far(cls, server: Server) -> Self:
        return cls(server.cpu_seconds(), busy_seconds(), server.syncs.count, server.written_bytes())

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(
            self.cpu_seconds + other.cpu_seconds,
            self.busy_seconds + other.busy_seconds,
            self.syncs + other.syncs,
            self.written_bytes + other.written_bytes,
        )

    def __sub__(self, other: "Effort") -> "Effort":
        return Effort(
            self.cpu_seconds - other.cpu_seconds,
            self.busy_seconds - other.busy_seconds,
            self.syncs - other.syncs,
            self.written_bytes - other.written_bytes,
        )

    def others_percent(self, seconds: float, client_cpu_seconds: float) -> float:
        """What all else on the machine took meanwhile, of one core."""
        others = self.busy_seconds - self.cpu_seconds - client_cpu_seconds
        return max(100 * others / seconds, 0)

    def on_disk(self, messages: int) -> dict[str, float]:
        """What the disk had to do for each of that many messages."""
        return {
            "syncs_per_1000": 1000 * self.syncs / messages,
            "written_per_message": self.written_bytes / messages,
        }
