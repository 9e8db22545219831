"""Holds producers back briefly while consumers are behind.

A short backlog is delivered faster than a long one. So a producer whose credit runs out while
the backlog of consumers is above the mark waits, at most `PATIENCE_MS` at a time. If that has not
shortened the backlog `TRIES` times in a row, the consumers are really slow, and pacing is off
until they have caught up. (One failure is no proof: a consumer that the kernel has suspended
continues after some ms.)
"""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.credit.blocked_producers import BlockedProducers
from broker.routing.entries.participants import Producer

PATIENCE_MS: Final[i64] = 10
TRIES: Final[i64] = 3
IDLE: Final[i64] = -1


@final
class Pacing:
    """The producers of one node that wait for credit.

    `deadline_ms` is when they are resumed at the latest, on the steady clock; IDLE if none waits.
    """

    def __init__(self, mark: i64) -> None:
        self.deadline_ms: i64 = IDLE
        self._mark: Final[i64] = mark
        self._waiting: Final = BlockedProducers()
        self._vain: i64 = 0

    def observe(self, backlog: i64) -> bool:
        """Observe `backlog` outstanding deliveries; return whether a producer gets credit at once.

        A backlog within the mark ends the series of vain waits.
        """
        if backlog <= self._mark:
            self._vain = 0
            return True
        return self._vain >= TRIES

    def wait(self, producer: Producer, now_ms: i64) -> None:
        """Resume `producer` once, when the backlog falls, or at the deadline."""
        self._waiting.wait(producer)
        if self.deadline_ms == IDLE:
            self.deadline_ms = now_ms + PATIENCE_MS

    def leave(self, producer: Producer) -> None:
        """Remove `producer`, if it waits."""
        self._waiting.leave(producer)
        if not self._waiting.any():
            self.deadline_ms = IDLE

    def fell(self, backlog: i64) -> None:
        """Resume the producers if `backlog`, which may have become shorter, is within the mark."""
        if backlog <= self._mark and self._waiting.any():
            self._vain = 0
            self._resume()

    def tick(self, now_ms: i64, backlog: i64) -> None:
        """Resume the producers if the deadline has passed, and note whether pacing has helped."""
        if self.deadline_ms != IDLE and now_ms >= self.deadline_ms:
            self._vain = self._vain + 1 if backlog > self._mark else 0
            self._resume()

    def _resume(self) -> None:
        self.deadline_ms = IDLE
        self._waiting.resume()

    def is_waited_for(self) -> bool:
        """Return whether producers wait."""
        return self._waiting.any()

    def holds(self, producer: Producer) -> bool:
        """Return whether `producer` waits."""
        return self._waiting.has(producer)
