"""The calls that a peer gets back: at its deadlines, after a pause, once changes are durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.deadlines import NO_DEADLINE
from broker.journal import Waiter
from broker.routing.queues.judging import JudgingWatcher
from broker.routing.timer_queue import TimerCallback, TimerQueue

if TYPE_CHECKING:
    from broker.links.container import Container
    from broker.links.peer import Peer


@final
class ConnectionTimer(TimerCallback):
    """The timer of a connection.

    The timer queue keeps the deadlines of a connection until their time, or its end. So this keeps
    those that it has there, latest first, and adds only one that is earlier than all of them.
    `peer` is None once the connection has ended.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer: Peer | None = peer
        self._set_for: Final[list[int]] = []

    def set(self, timer_queue: TimerQueue, deadline_ms: i64) -> None:
        """Make the timer queue call `tick` of the connection no later than `deadline_ms`."""
        if self.peer is None or deadline_ms == NO_DEADLINE:
            return
        if self._set_for and self._set_for[-1] <= deadline_ms:
            return
        self._set_for.append(int(deadline_ms))
        timer_queue.at(deadline_ms, self)

    def end(self, timer_queue: TimerQueue) -> None:
        """Let the deadlines pass unnoticed from now on. Idempotent."""
        if self.peer is not None:
            self.peer = None
            timer_queue.abandon(len(self._set_for))

    def is_abandoned(self) -> bool:
        return self.peer is None

    def due(self, now_ms: i64) -> None:
        self._set_for.pop()
        peer = self.peer
        if peer is not None:
            peer.connection.tick(now_ms)
            peer.deadline_changed()


@final
class InputPause(TimerCallback):
    """Resumes the input of `peer`, which sent enough frames for one turn of the event loop."""

    def __init__(self, peer: Peer) -> None:
        self._peer: Final = peer

    def due(self, now_ms: i64) -> None:
        self._peer.go_on(now_ms)


@final
class JudgingPause(JudgingWatcher):
    """Lets a client rest whose messages to topics have cost the evaluations of a turn."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def judged_enough(self) -> None:
        peer = self._container.receiving
        if peer is not None:
            peer.judged_enough()


@final
class DeferredOutput(Waiter):
    """Output that is withheld from a client, since a crash could make it untrue."""

    def __init__(self, peer: Peer) -> None:
        self._peer: Final = peer

    def committed(self) -> None:
        self._peer.answers_are_durable()
