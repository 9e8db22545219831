"""Credit for producers of a node that blocks when it is full: no more than there is room for.

Granted credit counts as room that is taken; otherwise fifty producers with credit for 500
messages each would flood a queue of 100. So credit is granted in small portions, to one producer
after the other. A producer that does not use its credit while others wait is asked to give it
back (a drain); if it does not answer, that credit no longer counts.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.context import RoutingContext
from broker.routing.entries.participants import Producer
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.routing.credit.credit_policy import CreditPolicy
    from broker.routing.queues.node import Node

UNLIMITED: Final[i64] = 2**62

SHARES_KEPT: Final[i64] = 3
"""Portions of the same size that a portion leaves for producers that will ask later."""

SIZE_GUESSED: Final[i64] = 1024
"""Assumed size of a message, in bytes, in a queue that has no messages to judge by."""

IDLE_TURN: Final[i64] = 8
"""Every eighth portion is for producers that gave credit back, while others use theirs up."""

LOOK_EVERY_MS: Final[i64] = 50
"""Interval in ms between two looks for unused credit, while a producer waits for room."""

NOT_SEEN: Final[i64] = -1


def room_left(
    *, max_messages: i64, max_bytes: i64, messages: i64, size: i64, granted: i64 = 0
) -> i64:
    """Return for how many more messages there is room, beside `granted` ones with credit.

    `max_messages` and `max_bytes` are the limits, 0 for none; `messages` and `size` in bytes are
    what the node has. Bytes are converted into messages by the mean size of those in the node.
    While some bytes are left and no message has credit, there is room for one, however large.
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
    """Return the credit that one of `waiting` producers gets at a time, out of `left` for all.

    It is at most `most`, and at least 1.
    """
    return max(1, min(most, left // (waiting + SHARES_KEPT)))


@final
class CreditPool(TimerCallback):
    """The producers of one node, and their credit.

    `granted` is the sum of the credit that counts as room taken.
    """

    def __init__(self, node: Node, context: RoutingContext, policy: CreditPolicy) -> None:
        self.granted: i64 = 0
        self._node: Node | None = node
        self._context: Final = context
        self._policy: Final = policy
        self._asking: Final[deque[Producer]] = deque()
        self._idle: Final[deque[Producer]] = deque()
        self._turn: i64 = 0
        self._is_set = False

    def is_waited_for(self) -> bool:
        """Return whether a producer waits for room."""
        return bool(self._asking) or bool(self._idle)

    def ask(self, producer: Producer) -> None:
        """Grant `producer` credit, now or when there is room."""
        self.count(producer)
        if producer not in self._asking and producer not in self._idle:
            if producer.is_recalled:
                self._idle.append(producer)
            else:
                self._asking.append(producer)
        producer.is_recalled = False
        self.serve()

    def grant_one(self, producer: Producer) -> None:
        """Grant `producer` credit for one message if there is room; otherwise do nothing."""
        node = self._node
        self.count(producer)
        if node is not None and node.room_for_more() > 0:
            self._grant(producer, 1)

    def count(self, producer: Producer) -> None:
        """Stop counting credit that `producer` has used."""
        outstanding = producer.outstanding()
        if outstanding < producer.counted:
            self.granted -= producer.counted - outstanding
            producer.counted = outstanding

    def used(self, producer: Producer) -> None:
        """Note that a message of `producer` has arrived, which used credit."""
        producer.is_recalled = False
        self.count(producer)

    def leave(self, producer: Producer) -> None:
        """Remove `producer`, and grant its credit to others."""
        self.granted -= producer.counted
        producer.counted = 0
        for waiting in (self._asking, self._idle):
            if producer in waiting:
                waiting.remove(producer)
        self.serve()

    def serve(self) -> None:
        """Grant waiting producers as much credit as there is room for, in turn.

        While the broker is short of something, they wait for that instead.
        """
        node = self._node
        if node is None:
            return
        shortage = self._policy.shortage()
        if shortage is not None:
            for producer in (*self._asking, *self._idle):
                shortage.wait(producer)
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
            self._context.call_after(LOOK_EVERY_MS, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - a second look is harmless
        """Recall unused credit, if a producer still waits for room that nothing else has made."""
        self._is_set = False
        node = self._node
        if node is None or not self.is_waited_for():
            return
        for producer in node.producers:
            if producer.counted > 0:
                self._look_at(producer)
        self.serve()
        if self._policy.shortage() is None:
            for producer in (*self._asking, *self._idle):
                producer.go_on_in_transaction(node)

    def _look_at(self, producer: Producer) -> None:
        """Recall credit that is unused since the last look; at the next look, stop counting it."""
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
        """Forget the node, which was deleted, and the producers that wait."""
        self._node = None
        self._asking.clear()
        self._idle.clear()
