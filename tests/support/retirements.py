"""A holder of deliveries that were retired within transactions, for tests."""

from __future__ import annotations

from broker.routing.entries.entry import QueueEntry
from broker.routing.transaction import RetirementListener


class Recording(RetirementListener):
    """A listener that records the end of the deliveries it holds."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def committed(self, entry: QueueEntry) -> None:
        self.told.append(f"committed {entry.message.encoded.decode()}")

    def rolled_back(self, entry: QueueEntry) -> None:
        self.told.append(f"rolled back {entry.message.encoded.decode()}")
