"""Drains a broker: it takes no new work, and gives clients time to finish theirs (OPS-14).

The broker announces the drain and accepts no more connections. After a while it takes back the
credit of producers, delivers nothing more, and refuses links. A client with unsettled deliveries or
an open transaction still gets credit, one message at a time: it may have to send before it settles.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault, LinkFault
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.link import Link
from broker.links.drain_course import NEVER, DrainCourse, DrainPhase
from broker.routing.credit.blocked_producers import BlockedProducers
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.links.container import Container
    from broker.links.peer import Peer

LOOK_EVERY_MS: Final[i64] = 50
"""Interval of looks for unfinished work; as often, clients that have some get credit."""

STRETCH: Final = 500
"""Maximum links whose credit is taken back in one turn of the event loop."""

DRAINING: Final = "the broker is draining: it takes no new work, and will stop"


@mypyc_attr(allow_interpreted_subclasses=True)
class DrainOwner:
    """The program whose broker drains: it closes the sockets, and stops the broker in the end."""

    @abstractmethod
    def announce_ms(self) -> i64:
        """Return the time from the announcement until the broker takes no new work."""

    @abstractmethod
    def finish_ms(self) -> i64:
        """Return the maximum time that clients then get to finish their work."""

    @abstractmethod
    def announced(self) -> None:
        """Accept no more connections."""

    @abstractmethod
    def finishing(self) -> None:
        """Note that the broker takes no new work from now on."""

    @abstractmethod
    def over(self, unfinished: int) -> None:
        """Stop the broker. `unfinished` connections have work that their clients did not finish."""


@final
class Drain(TimerCallback):
    """The drain of one container. Without an `owner` there is none: an embedded broker has none.

    `is_announced`: the broker is to be left alone, and accepts no connection. `is_finishing`: it
    takes no new work, and attaches are refused.
    """

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._course: Final = DrainCourse()
        self._links: list[Link] = []
        self._busy: Peer | None = None
        self._due_ms: i64 = NEVER
        self.owner: DrainOwner | None = None
        self.is_announced = False
        self.is_finishing = False

    def keeps_clients_out(self) -> bool:
        """Return whether clients are to leave the broker alone: it drains, or is stopping."""
        return self.is_announced or self._container.closing

    def phase(self) -> DrainPhase:
        """Return the present phase."""
        return self._course.phase

    def begin(self, owner: DrainOwner, *, announce_only: bool = False) -> None:
        """Begin the drain, or go on with one that was only announced. Idempotent.

        All work is done later, in turns of the event loop of its own.
        """
        now_ms = self._container.clock.now_ms()
        self._course.begin(
            now_ms,
            announce_ms=owner.announce_ms(),
            finish_ms=owner.finish_ms(),
            announce_only=announce_only,
        )
        self._call_at(now_ms)

    def check_open(self) -> None:
        """Raise ConnectionFault if no connection is to be opened any more."""
        if self.is_announced:
            raise ConnectionFault(CONNECTION_FORCED, DRAINING)

    def check_attach(self) -> None:
        """Raise LinkFault if no link is to be attached any more."""
        if self.is_finishing:
            raise LinkFault(CONNECTION_FORCED, DRAINING)

    def _call_at(self, at_ms: i64) -> None:
        """Look at `at_ms`, and not at the time that was set before."""
        self._due_ms = at_ms
        if at_ms != NEVER:
            self._container.router.timer_queue.at(at_ms, self)

    def due(self, now_ms: i64) -> None:
        owner = self.owner
        if owner is None or self._due_ms == NEVER or now_ms < self._due_ms:
            return
        if not self.is_announced:
            self.is_announced = True
            owner.announced()
        if self._links:
            self._take_back_credit()
            self._call_at(now_ms if self._links else now_ms + LOOK_EVERY_MS)
            return
        was = self._course.phase
        phase = self._course.look(now_ms, is_busy=self._is_busy())
        if phase is not was and phase is DrainPhase.FINISHING:
            self._hold()
            owner.finishing()
        elif phase is not was and phase is DrainPhase.OVER:
            self._call_at(NEVER)
            owner.over(0 if self._course.is_complete else self._unfinished())
            return
        elif self.is_finishing:
            self._resume_producers()
        self._call_at(now_ms if self._links else self._course.next_look_ms(now_ms, LOOK_EVERY_MS))

    # -- what is held back

    def _hold(self) -> None:
        """Deliver nothing more, grant no more credit, and attach no more links."""
        self.is_finishing = True
        router = self._container.router
        router.context.holds_deliveries = True
        router.credit_policy.draining = BlockedProducers()
        self._links = [each for each in self._container.links() if isinstance(each, IncomingLink)]

    def _take_back_credit(self) -> None:
        for _ in range(STRETCH):
            if not self._links:
                return
            link = self._links.pop()
            if isinstance(link, IncomingLink) and link.owner is not None:
                link.owner.take_back_credit()

    def _resume_producers(self) -> None:
        """Let producers ask for credit again: those of clients with unfinished work get some."""
        waiting = self._container.router.credit_policy.draining
        if waiting is not None:
            waiting.resume()

    # -- what is unfinished

    def _is_busy(self) -> bool:
        """Return whether a client has unfinished work, or the store; False before FINISHING.

        The client that had some at the last look is looked at first: few looks go through all.
        """
        if not self.is_finishing:
            return False
        if not self._container.journal.is_idle():
            return True
        last = self._busy
        if last is not None and last.is_open and has_unfinished_work(last):
            return True
        self._busy = None
        for peer in self._container.peers():
            if has_unfinished_work(peer):
                self._busy = peer
                return True
        return False

    def _unfinished(self) -> int:
        return len([1 for peer in self._container.peers() if has_unfinished_work(peer)])


def has_unfinished_work(peer: Peer) -> bool:
    """Return whether a client has begun something that it, or the broker, has not finished.

    JMS clients have a transaction declared at all times: an empty one is no work.
    """
    return (
        holds_messages(peer)
        or peer.transactions.memory() > 0
        or sends_a_delivery(peer)
        or peer.withholds()
        or peer.output_bytes() > 0
    )


def sends_a_delivery(peer: Peer) -> bool:
    """Return whether a part of a delivery has arrived, and the rest has not."""
    return any(each.partial_deliveries > 0 for each in peer.connection.channels.mapped())


def holds_messages(peer: Peer) -> bool:
    """Return whether a client holds unsettled deliveries besides responses of the broker.

    A client that manages the broker may settle a response only when it sends the next request.
    """
    if not peer.holds_unsettled():
        return False
    held: i64 = 0
    for session in peer.connection.channels.mapped():
        held += session.unsettled_out.count
    for queue in peer.replies.values():
        held -= queue.state.acquired
    return held > 0
