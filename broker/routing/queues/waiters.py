"""Who waits for what is in a queue to end: a standby for what others hold, producers for room.

A queue `attends` while there is somebody; each end then has it look here, once a round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


def choose(queue: Queue) -> None:
    """Find out who may take messages of `queue` now; the others stand by until it goes."""
    exclusivity = queue.exclusivity
    if exclusivity.choose(queue.consumers, queue.acquired):
        queue.turn = exclusivity.turn_of(queue.consumers)
        queue.router.wake(queue)
    queue.attends = queue.attends or exclusivity.is_awaited


def attend(queue: Queue) -> None:
    """Something may have ended that somebody waits for; who still waits says so again."""
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
