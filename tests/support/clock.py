"""Simulated time, which passes only if a test says so."""

from typing import Final

from mypy_extensions import i64

from broker.clock import Clock

START_MS: Final = 1_000_000
WALL_START_MS: Final = 1_750_000_000_000


class SimulatedClock(Clock):
    """A monotonic and a wall clock that start at round numbers and move only by `advance`."""

    def __init__(self) -> None:
        self._now_ms = START_MS
        self._wall_ms = WALL_START_MS

    def now_ms(self) -> i64:
        return self._now_ms

    def wall_ms(self) -> i64:
        return self._wall_ms

    def advance(self, milliseconds: int) -> None:
        """Advance both clocks."""
        self._now_ms += milliseconds
        self._wall_ms += milliseconds

    def set_wall(self, milliseconds: int) -> None:
        """Set the wall clock forward by `milliseconds`, or back if negative, as an operator may."""
        self._wall_ms += milliseconds
