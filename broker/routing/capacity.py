"""Whether queues have room for several messages together, before any of them is put there."""

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
    """What a queue is to gain, less what leaves it."""

    def __init__(self) -> None:
        self.messages: i64 = 0
        self.bytes: i64 = 0

    def check(self, queue: Queue) -> None:
        """As `queue.check_room`, of all of it together."""
        queue_limits.check_all(queue, self.messages, self.bytes, max_bytes=queue.policy.max_bytes)


@final
class CapacityCheck:
    """What is asked of each queue, to be checked as a whole."""

    def __init__(self) -> None:
        self._demands: Final[dict[Queue, Demand]] = {}

    def add(self, node: Node, message: Message) -> None:
        """`message` is to go to `node`, so into the queues that it is for at this moment."""
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
        """`entry` leaves its queue at the same moment. Call it behind every `add`."""
        demand = self._demands.get(entry.queue)
        if demand is not None:
            demand.messages -= 1
            demand.bytes -= entry.message.size

    def check(self) -> None:
        """Raise QueueFull where a queue's limit leaves less room than is asked for."""
        for queue, demand in self._demands.items():
            if demand.messages > 0:
                demand.check(queue)

    def check_beside_posted(self) -> None:
        """As `check`, where earlier messages of the transaction have taken their room already.

        So a demand that what leaves outweighs is checked, too: those may have used that up.
        """
        for queue, demand in self._demands.items():
            most = queue_limits.bytes_taken_at_most(queue)
            queue_limits.check_all(queue, demand.messages, demand.bytes, max_bytes=most)
