"""Producers that wait for the same condition."""

from __future__ import annotations

from typing import Final, final

from broker.routing.entries.participants import Producer


@final
class BlockedProducers:
    """The waiting producers, each once, in the order in which they began to wait."""

    def __init__(self) -> None:
        self._producers: Final[dict[Producer, None]] = {}

    def any(self) -> bool:
        """Return whether a producer waits."""
        return bool(self._producers)

    def has(self, producer: Producer) -> bool:
        """Return whether `producer` waits."""
        return producer in self._producers

    def count(self) -> int:
        """Return the number of producers that wait."""
        return len(self._producers)

    def wait(self, producer: Producer) -> None:
        """Add `producer`, which is resumed together with the others."""
        self._producers[producer] = None

    def leave(self, producer: Producer) -> None:
        """Remove `producer`, if it waits."""
        self._producers.pop(producer, None)

    def resume(self) -> None:
        """Resume all producers. A producer that waits again at once is kept for the next call."""
        waiting = list(self._producers)
        self._producers.clear()
        for producer in waiting:
            producer.resume()
