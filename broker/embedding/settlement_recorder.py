"""A record of how deliveries were settled, kept by an embedded broker for tests to read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, final

from broker.embedding.message import MessageView, view
from broker.message import Message
from broker.routing.addresses.address import Address
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import QueueObserver
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.node import QUEUE, TOPIC
from storage.batch import Batch

SETTLEMENTS_MAX: Final = 10_000
BYTES_MAX: Final = 64 * 1024 * 1024
"""Limits of the record, in settlements and in bytes of their messages.

Beyond either the oldest settlements are dropped.
"""

OUTCOMES: Final = {
    Disposal.REMOVE: "accepted",
    Disposal.RELEASE: "released",
    Disposal.COUNT: "modified",
    Disposal.FAIL: "modified",
    Disposal.ELSEWHERE: "modified",
    Disposal.FAIL_ELSEWHERE: "modified",
    Disposal.DEAD_LETTER: "rejected",
}


@final
@dataclass(frozen=True)
class Settlement:
    """The end of one delivery. `outcome` is accepted, released, modified or rejected.

    `message` is as it was delivered. A message that returns to its queue is delivered and settled
    again. A delivery that ends with its link is settled as the link's source says.
    """

    message: MessageView
    outcome: str


@final
class Line:
    """One settlement, with its message not decoded yet."""

    def __init__(self, entry: QueueEntry, disposal: Disposal) -> None:
        self.address: Final = entry.queue.address
        self.kind: Final = TOPIC if entry.queue.is_subscription else QUEUE
        self.message: Final[Message] = entry.message
        self.delivery_count: Final = int(entry.delivery_count)
        self.disposal: Final = disposal


@final
class SettlementRecorder(QueueObserver):
    """The latest settlements of a broker, in order."""

    def __init__(self, *, lines_max: int = SETTLEMENTS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._lines: Final[deque[Line]] = deque()
        self._bytes = 0
        self._lines_max: Final = lines_max
        self._bytes_max: Final = bytes_max

    def settled(
        self,
        entry: QueueEntry,
        disposal: Disposal,
        batch: Batch,  # noqa: ARG002 - settlements are not stored
        *,
        cause: Cause | None = None,  # noqa: ARG002
    ) -> None:
        self._lines.append(Line(entry, disposal))
        self._bytes += entry.message.size
        while len(self._lines) > self._lines_max or self._bytes > self._bytes_max:
            self._bytes -= self._lines.popleft().message.size

    def of(self, address: Address) -> list[Settlement]:
        """Return the settlements of messages from `address`, the oldest first."""
        text, kinds = address.text, [address.kind] if address.kind else [QUEUE, TOPIC]
        return [
            Settlement(view(line.message, line.delivery_count), OUTCOMES[line.disposal])
            for line in self._lines
            if line.address == text and line.kind in kinds
        ]
