"""Credit for producers of a node that blocks when it is full: no more than there is room for.

What has been granted counts as taken, or fifty producers with credit for 500 messages
each would flood a queue of 100. So credit comes in small portions, to one producer
after the other. Whoever has credit and does not use it while others wait is asked to
give it back (a drain); where no answer comes, that credit does not count any more.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.entries.participants import Producer
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.routing.queues.node import Node
    from broker.routing.router import Router

UNLIMITED: Final[i64] = 2**62

SHARES_KEPT: Final[i64] = 3
"""A portion leaves so many more of its size, for those who will come."""

SIZE_GUESSED: Final[i64] = 1024
"""What a message takes in a queue that has none to judge by, in bytes."""

IDLE_TURN: Final[i64] = 8
"""While others use up what they get, those who gave theirs back get every eighth portion."""

LOOK_EVERY_MS: Final[i64] = 50
"""So often one looks who does not use its credit, while somebody waits for room."""

NOT_SEEN: Final[i64] = -1


def room_left(
    *, max_messages: i64, max_bytes: i64, messages: i64, size: i64, granted: i64 = 0
) -> i64:
    """For how many more messages there is room, beside those that `granted` lets come.

    Bytes are messages of the size that those have which are there. One may
    always come while they are not used up, however large it is.
    """
    left = UNLIMITED
    if max_messages > 0:
        left = max_messages - messages - granted
    if max_bytes > 0:
        mean = max(1, size // messages) if messages > 0 else SIZE_GUESSED
        by_size = (max_bytes - size) // mean - granted
        if by_size <= 0 and granted == 0 and size < max_bytes:
            by_size = 1
        left = min(left, by_size)
    return max(0, left)


def portion(left: i64, *, waiting: i64, most: i64) -> i64:
    """How much of the room that is left one of so many waiting producers gets at a time."""
    return max(1, min(most, left // (waiting + SHARES_KEPT)))


@final
class CreditPool(TimerCallback):
    """The producers of one node, and what credit they have.

    `granted` is the sum of it, as far as it counts.
    """

    def __init__(self, node: Node, router: Router) -> None:
        self.granted: i64 = 0
        self._node: Node | None = node
        self._router: Final = router
        self._asking: Final[deque[Producer]] = deque()
        self._idle: Final[deque[Producer]] = deque()
        self._turn: i64 = 0
        self._is_set = False

    def is_waited_for(self) -> bool:
        """Whether somebody waits for room."""
        return bool(self._asking) or bool(self._idle)

    def ask(self, producer: Producer) -> None:
        """`producer` wants credit; it gets some now, or when there is room."""
        self.count(producer)
        if producer not in self._asking and producer not in self._idle:
            if producer.is_recalled:
                self._idle.append(producer)
            else:
                self._asking.append(producer)
        producer.is_recalled = False
        self.serve()

    def grant_one(self, producer: Producer) -> None:
        """Let `producer` send one message, if there is room: nothing more for now."""
        node = self._node
        self.count(producer)
        if node is not None and node.room_for_more() > 0:
            self._grant(producer, 1)

    def count(self, producer: Producer) -> None:
        """`producer` may have used some of its credit."""
        outstanding = producer.outstanding()
        if outstanding < producer.counted:
            self.granted -= producer.counted - outstanding
            producer.counted = outstanding

    def used(self, producer: Producer) -> None:
        """A message of `producer` has come."""
        producer.is_recalled = False
        self.count(producer)

    def leave(self, producer: Producer) -> None:
        """`producer` has gone; what it had is for others."""
        self.granted -= producer.counted
        producer.counted = 0
        for waiting in (self._asking, self._idle):
            if producer in waiting:
                waiting.remove(producer)
        self.serve()

    def serve(self) -> None:
        """Grant as much as there is room for, in turn."""
        node = self._node
        if node is None:
            return
        disk_guard = self._router.disk_guard
        if disk_guard is not None and disk_guard.is_short:
            for waiting_for_disk in (*self._asking, *self._idle):
                disk_guard.waiting.wait(waiting_for_disk)
            return
        memory = self._router.memory
        if memory.is_short:
            for waiting_for_memory in (*self._asking, *self._idle):
                memory.producers.wait(waiting_for_memory)
            return
        while self._asking or self._idle:
            left = node.room_for_more()
            if left <= 0:
                node.call_when_less()
                self._look_later()
                return
            self._turn += 1
            if self._idle and (not self._asking or self._turn % IDLE_TURN == 0):
                self._grant(self._idle.popleft(), 1)
                continue
            waiting = i64(len(self._asking))
            producer = self._asking.popleft()
            most = producer.most() - producer.outstanding()
            self._grant(producer, portion(left, waiting=waiting, most=most))

    def _grant(self, producer: Producer, credit: i64) -> None:
        counted = producer.outstanding() + credit
        self.granted += counted - producer.counted
        producer.counted = counted
        producer.seen = NOT_SEEN
        producer.grant(credit)

    def _look_later(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._router.timer_queue.at(self._router.clock.now_ms() + LOOK_EVERY_MS, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - twice a look is once
        """Somebody has waited for a while: see whose credit lies idle."""
        self._is_set = False
        node = self._node
        if node is None or not self.is_waited_for():
            return
        for producer in node.producers:
            if producer.counted > 0:
                self._look_at(producer)
        self.serve()

    def _look_at(self, producer: Producer) -> None:
        """Recall what has not been used since the last look; then do without it."""
        self.count(producer)
        if producer.counted != producer.seen:
            producer.seen = producer.counted
        elif not producer.is_recalled:
            producer.is_recalled = True
            producer.recall()
        else:
            self.granted -= producer.counted
            producer.counted = 0

    def close(self) -> None:
        """The node is gone."""
        self._node = None
        self._asking.clear()
        self._idle.clear()
