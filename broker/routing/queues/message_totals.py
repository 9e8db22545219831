"""Numbers of messages in many queues, summed up when they are asked for, never on the data path."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.message import UNKNOWN
from broker.routing.queues.queue import Queue

NO_MESSAGE: Final[i64] = -1


@final
class MessageTotals:
    """Sums over queues: messages that are ready, unsettled and held back.

    Those held back wait for their delivery time, after a failure, or to be moved. `temporary`
    queues are counted, too.
    """

    def __init__(self) -> None:
        self.ready: i64 = 0
        self.unsettled: i64 = 0
        self.held: i64 = 0
        self.temporary: i64 = 0

    def add(self, queues: list[Queue]) -> None:
        """Add the messages of these queues."""
        ready: i64 = 0
        unsettled: i64 = 0
        for queue in queues:
            state = queue.state
            ready += state.backlogs.waiting
            unsettled += state.acquired
            if state.schedule is not None:
                self.held += state.schedule.size()
            if queue.is_temporary:
                self.temporary += 1
        self.ready += ready
        self.unsettled += unsettled


def oldest_arrival_ms(queue: Queue) -> i64:
    """Return the wall time in ms at which the oldest ready message arrived.

    NO_MESSAGE if there is none, or if no ready message is in memory. Only the first message of
    each priority is looked at; messages that have returned keep their time of arrival.
    """
    if queue.backlogs.waiting == 0:
        return NO_MESSAGE
    oldest = NO_MESSAGE
    for backlog in queue.backlogs.by_priority:
        if backlog is None or backlog.waiting == 0:
            continue
        for entry in backlog.loaded(-1, 1):
            arrived_ms = entry.message.arrived_ms
            if arrived_ms != UNKNOWN and (oldest == NO_MESSAGE or arrived_ms < oldest):
                oldest = arrived_ms
    return oldest
