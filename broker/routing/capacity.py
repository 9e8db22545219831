"""Check whether queues have room for several messages together, before any of them is added."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.message import Message
from broker.routing.entries.entry import QueueEntry
from broker.routing.queues import queue_limits
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.topics.topic import Topic


@final
class Demand:
    """The messages and bytes that a queue is to gain, less those of entries that leave it."""

    def __init__(self) -> None:
        self.messages: i64 = 0
        self.bytes: i64 = 0

    def check(self, queue: Queue) -> None:
        """Raise QueueFull if `queue` has no room for all of it together."""
        queue_limits.check_all(queue, self.messages, self.bytes, max_bytes=queue.policy.max_bytes)


@final
class CapacityCheck:
    """Demands on several queues, first collected and then checked as a whole."""

    def __init__(self) -> None:
        self._demands: Final[dict[Queue, Demand]] = {}

    def add(self, node: Node, message: Message) -> None:
        """Add `message`, which is sent to `node`: for a topic, to each queue that gets it now."""
        if isinstance(node, Topic):
            for queue in node.destinations(message):
                self._add(queue, message)
        elif isinstance(node, Queue):
            self._add(node, message)

    def _add(self, queue: Queue, message: Message) -> None:
        demand = self._demands.get(queue)
        if demand is None:
            demand = self._demands[queue] = Demand()
        demand.messages += 1
        demand.bytes += message.size

    def give_back(self, entry: QueueEntry) -> None:
        """Subtract `entry`, which leaves its queue at that moment. Call this after every `add`."""
        demand = self._demands.get(entry.queue)
        if demand is not None:
            demand.messages -= 1
            demand.bytes -= entry.message.size

    def check(self) -> None:
        """Raise QueueFull if the limit of a queue leaves less room than its demand."""
        for queue, demand in self._demands.items():
            if demand.messages > 0:
                demand.check(queue)

    def check_beside_posted(self) -> None:
        """Like `check`, for a transaction whose earlier messages have taken their room already.

        A demand of 0 or less is checked, too: the earlier messages may have used up the room of
        the entries that leave.
        """
        for queue, demand in self._demands.items():
            most = queue_limits.bytes_taken_at_most(queue)
            queue_limits.check_all(queue, demand.messages, demand.bytes, max_bytes=most)
