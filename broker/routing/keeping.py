"""Messages that a store keeps: noted for it, and who has to wait for that.

Most are delivered before they are stored. Not so what may not have been at all until it is
durable: what a transaction sends, what moves from one queue to another, and whatever comes
to an address that says so. In such a queue nothing overtakes what waits for its commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import AT_ONCE
from broker.routing.entry import QueueEntry
from broker.routing.stored import as_stored
from storage.batch import DISCHARGE, Batch

if TYPE_CHECKING:
    from broker.routing.queue import Queue

EVERY_NUMBER: Final[i64] = 2**62
"""No message has a higher number."""


@final
class Barred:
    """The queues in which messages wait for their commit. `any` tells whether there are some.

    A store that commits at once lets nobody wait: then it is not `in_force`.
    """

    def __init__(self, *, in_force: bool) -> None:
        self.any = False
        self._in_force: Final = in_force
        self._queues: dict[Queue, int] = {}
        self._up_to: i64 = -1

    def bar(self, queue: Queue, number: i64) -> None:
        """The message of that number, which has just come, waits for its commit."""
        if not self._in_force:
            return
        if queue.open_up_to == EVERY_NUMBER:
            queue.open_up_to = number - 1
            self.any = True
        self._queues[queue] = int(number)

    def lift(self, durable_up_to: i64) -> None:
        """Messages up to that number are durable: what waited for that may be delivered."""
        if durable_up_to == self._up_to:
            return
        self._up_to = durable_up_to
        barred = self._queues
        self._queues = {}
        for queue, last in barred.items():
            if queue.is_deleted:
                continue
            if last <= durable_up_to:
                queue.open_up_to = EVERY_NUMBER
            else:
                queue.open_up_to = max(queue.open_up_to, durable_up_to)
                self._queues[queue] = last
            queue.router.wake(queue)
        self.any = bool(self._queues)


def store(entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
    """Note `entry` for the store, under a number of its own."""
    queue = entry.queue
    number = queue.router.next_stored_number()
    entry.stored_number = number
    batch.append(as_stored(entry, deliver_at_ms))
    if batch.scope != queue.promptness.scope:
        _judge(queue, number, batch)
    if deliver_at_ms != AT_ONCE:
        batch.is_urgent = True


def _judge(queue: Queue, number: i64, batch: Batch) -> None:
    """Decide whether writing `batch` can wait for the consumers of `queue`, or they for it."""
    if batch.scope == DISCHARGE or queue.defers:
        queue.router.barred.bar(queue, number)
        batch.is_urgent = True
        return
    promptness = queue.promptness
    if batch.is_urgent and promptness.hold_us == 0:
        promptness.scope = batch.scope
        return
    if not queue.consumers:
        promptness.nobody_consumes()
    promptness.arrived(number, batch.scope, queue.router.clock.now_us())
    if not promptness.is_prompt:
        batch.is_urgent = True


def forget(entry: QueueEntry, batch: Batch, *, consumed: bool) -> None:
    """`entry` has gone: settled by a consumer, where it is `consumed`."""
    number = entry.stored_number
    if not consumed:
        batch.remove(number)
    else:
        batch.consume(number)
    queue = entry.queue
    if number == queue.promptness.timed:
        if consumed:
            queue.promptness.settled(queue.router.clock.now_us())
        else:
            queue.promptness.left()
