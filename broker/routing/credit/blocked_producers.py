"""Producers that wait for the same thing to change."""

from __future__ import annotations

from typing import Final, final

from broker.routing.entries.participants import Producer


@final
class BlockedProducers:
    """Those who wait, each once, in the order in which they came."""

    def __init__(self) -> None:
        self._producers: Final[dict[Producer, None]] = {}

    def any(self) -> bool:
        """Whether somebody waits."""
        return bool(self._producers)

    def wait(self, producer: Producer) -> None:
        """Resume `producer` when the others are."""
        self._producers[producer] = None

    def leave(self, producer: Producer) -> None:
        """`producer` has gone, or waits no more."""
        self._producers.pop(producer, None)

    def resume(self) -> None:
        """Let everybody go on. Who waits again at once waits for the next time."""
        waiting = list(self._producers)
        self._producers.clear()
        for producer in waiting:
            producer.resume()
