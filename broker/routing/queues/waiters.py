"""Waiters of a queue: a standby waits for entries that others hold, producers wait for room.

A queue `attends` while there are any; each entry that leaves it then makes it call `attend`, once
a round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


def choose(queue: Queue) -> None:
    """Choose the consumer of `queue` that is served; the others stand by until it detaches."""
    exclusivity = queue.exclusivity
    if exclusivity.choose(queue.consumers, queue.acquired):
        queue.turn = exclusivity.turn_of(queue.consumers)
        queue.router.wake(queue)
    queue.attends = queue.attends or exclusivity.is_awaited


def attend(queue: Queue) -> None:
    """Serve the waiters of `queue` after entries left it; those left over make it attend again."""
    queue.attends = False
    if queue.exclusivity.is_awaited:
        if queue.acquired == 0:
            choose(queue)
        else:
            queue.attends = True
    if queue.credit_pool is not None:
        queue.credit_pool.serve()
    for topic in queue.topics:
        if topic.credit_pool is not None:
            topic.credit_pool.serve()
