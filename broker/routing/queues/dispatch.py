"""The choice of the consumer that gets the next message, and the pause of a busy queue.

Consumers of the highest priority with room take turns. A queue that has delivered
DELIVERED_AT_ONCE messages pauses, so that the event loop can do its other work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.entries.participants import Consumer
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue

DELIVERED_AT_ONCE: Final[i64] = 4096
"""Maximum messages a queue delivers before the event loop serves sockets: some milliseconds."""


@final
class RoundRobin:
    """The consumers of a queue that may have room, in a round in which they take turns.

    A consumer that turns out to have no room leaves the round until it reports room again, so
    that idle consumers cost nothing. Higher priorities come first in the round; if all
    priorities are equal, the usual case, no consumer is ever moved within it.
    """

    def __init__(self) -> None:
        self._round: list[Consumer] = []
        self._at: i64 = 0
        self._differ = False

    def join(self, consumer: Consumer) -> None:
        """Add `consumer`, which may have room, behind those of its priority. Idempotent."""
        members = self._round
        if consumer in members:
            return
        if not members or members[-1].priority >= consumer.priority:
            members.append(consumer)
        else:
            members.insert(behind_equals(members, consumer.priority), consumer)
        self._differ = members[0].priority != members[-1].priority

    def leave(self, consumer: Consumer) -> None:
        """Remove `consumer`, which has no room or has detached. Idempotent."""
        if consumer in self._round:
            index = i64(self._round.index(consumer))
            del self._round[index]
            if index < self._at:
                self._at -= 1
            if self._differ and self._round:
                self._differ = self._round[0].priority != self._round[-1].priority

    def next(self) -> Consumer | None:
        """Return the consumer with room whose turn it is; None if no consumer has room."""
        members = self._round
        if self._differ:
            return self._next_by_priority()
        while members:
            if self._at >= i64(len(members)):
                self._at = 0
            consumer = members[self._at]
            if consumer.has_room():
                self._at += 1
                return consumer
            del members[self._at]
        return None

    def _next_by_priority(self) -> Consumer | None:
        """Return the first consumer with room, and move it behind those of its priority."""
        members = self._round
        while members:
            consumer = members[0]
            del members[0]
            if consumer.has_room():
                members.insert(behind_equals(members, consumer.priority), consumer)
                return consumer
        self._differ = False
        return None

    def size(self) -> i64:
        """Return the number of consumers in the round."""
        return i64(len(self._round))


@final
class DispatchPause(TimerCallback):
    """Timer that ends the pause of `queue` in the next turn of the event loop."""

    def __init__(self, queue: Queue) -> None:
        self._queue: Final = queue

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - at once, whatever the time
        queue = self._queue
        queue.rests = False
        if not queue.is_deleted:
            queue.router.wake(queue)


def behind_equals(members: list[Consumer], priority: i64) -> int:
    """Return the index behind all `members` of that priority or a higher one."""
    at = len(members)
    while at > 0 and members[at - 1].priority < priority:
        at -= 1
    return at
