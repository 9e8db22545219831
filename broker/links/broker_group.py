"""Clients of a broker that is a member of a group: served by the leader, redirected by a standby.

A standby accepts connections from its start. While another broker leads, it answers a client's open
with that broker's address. While no broker leads, it answers nothing: it holds the client before
the open until a broker leads. A client that tries during a takeover is served at once then, and
does not wait for the end of a pause that its failed attempts have made long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault, Fault
from broker.amqp.performatives import Open
from broker.amqp.types import Symbol, UInt
from broker.links.redirect import redirect
from broker.routing.timer_queue import TimerCallback, TimerQueue
from storage.members import StoredMember

if TYPE_CHECKING:
    from broker.links.peer import Peer

HOLD_MS: Final[i64] = 10_000
"""Maximum ms for which a client is held: Qpid JMS waits 15 s for the broker's open."""

FAILOVER_SERVER_LIST: Final = "failover-server-list"
"""Property of an open with the addresses to which a client may fail over, of Qpid JMS."""


@final
class HeldClient(TimerCallback):
    """A client whose open waits for a leader. `peer` is None once it waits no longer."""

    def __init__(self, group: BrokerGroup, peer: Peer, open: Open) -> None:
        self._group: Final = group
        self.peer: Peer | None = peer
        self.open: Final = open

    def is_abandoned(self) -> bool:
        return self.peer is None

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - as the timer queue calls it
        if self.peer is not None:
            self._group.give_up(self)


@final
class BrokerGroup:
    """The group as its member `name`, this broker, sees it.

    `leads` is whether this broker leads. `leader` is the name of another one that does, empty if
    none does. `members` are the brokers of the group, this one among them. `heir` is the
    name of the one to which this broker hands over, which `hand_over` begins. If it `prefers`, this
    broker hands over to none by itself.
    """

    def __init__(self, name: str, timer_queue: TimerQueue, *, prefers: bool = False) -> None:
        self.name: Final = name
        self.prefers: Final = prefers
        self.leads = False
        self.leader = ""
        self.members: Sequence[StoredMember] = ()
        self.heir = ""
        self.hand_over: Callable[[], None] | None = None
        self._timer_queue: Final = timer_queue
        self._held: Final[list[HeldClient]] = []

    def held_count(self) -> int:
        """Return the number of clients that wait for a leader."""
        return len(self._held)

    # -- what is known of the group

    def another_leads(self, leader: str, members: Sequence[StoredMember]) -> None:
        """Redirect clients to `leader` from now on; hold them if that is empty."""
        self.leader = leader
        self.members = members
        if leader:
            for held in self._taken():
                if held.peer is not None:
                    _refuse(held, self._redirect(held.peer))

    def lead(self, members: Sequence[StoredMember]) -> None:
        """Serve clients from now on, those first that are held."""
        self.leads = True
        self.leader = ""
        self.members = members
        for held in self._taken():
            peer = held.peer
            held.peer = None
            if peer is not None:
                peer.enter(held.open)
                peer.go_on(peer.container.clock.now_ms())

    def know(self, members: Sequence[StoredMember]) -> None:
        """Note which members there are; hand over to one that is preferred to this broker."""
        self.members = members
        if self.hand_over is None or self.heir or self.prefers:
            return
        for member in members:
            if member.wants_to_lead and member.name != self.name:
                self.hand_over_to(member.name)
                return

    def hand_over_to(self, heir: str) -> None:
        """Begin to hand over to another member, if there is a `hand_over`."""
        assert self.hand_over is not None
        self.heir = heir
        self.hand_over()

    def properties(self, kind: str) -> dict[str, object]:
        """Return properties for the open to a client of a listener of that kind.

        The client replaces its addresses by these: the leader's, which is this broker, is first.
        Members that are not up now may be when they are needed. If no other is known, the client
        keeps its own addresses.
        """
        ranked = sorted(
            self.members, key=lambda member: (member.name != self.name, not member.is_up)
        )
        servers = [
            _server(kind, member.addresses[kind]) for member in ranked if kind in member.addresses
        ]
        return {FAILOVER_SERVER_LIST: servers} if len(servers) > 1 else {}

    # -- clients of a standby

    def arrived(self, peer: Peer, open: Open, now_ms: i64) -> None:
        """Answer the open of a client, or hold it until a broker leads."""
        held = HeldClient(self, peer, open)
        if self.leader:
            peer.refuse_connection(self._redirect(peer))
            return
        # the client may have sent more behind its open: it is neither read nor handled
        peer.connection.hold_frames()
        peer.hold_input()
        self._held.append(held)
        self._timer_queue.at(now_ms + HOLD_MS, held)

    def closing_fault(self, peer: Peer, fault: Fault) -> Fault:
        """Return the error with which to close a connection; `fault` unless another one leads."""
        return self._redirect(peer) if self.leader else fault

    def stop(self) -> None:
        """Close the connections of all clients that are held: the broker stops."""
        for held in self._taken():
            _refuse(held, ConnectionFault(CONNECTION_FORCED, "the broker is stopping"))

    def left(self, peer: Peer) -> None:
        """Forget a client whose connection has ended."""
        for held in self._held:
            if held.peer is peer:
                held.peer = None
                self._held.remove(held)
                self._timer_queue.abandon(1)
                return

    def give_up(self, held: HeldClient) -> None:
        """Close the connection of a client that has been held for too long."""
        self._held.remove(held)
        _refuse(held, ConnectionFault(CONNECTION_FORCED, "no broker of the group leads"))

    def _redirect(self, peer: Peer) -> ConnectionFault:
        """Return the error that names the leader's address, of the same kind of listener.

        If the leader has none, it only says who leads: another kind may be without encryption.
        """
        text = f"this broker stands by, {self.leader:.50} leads"
        for member in self.members:
            if member.name == self.leader and peer.entrance.kind in member.addresses:
                host, port = member.addresses[peer.entrance.kind]
                return redirect(f"{text} at {host:.100}:{port}", host, port)
        return ConnectionFault(CONNECTION_FORCED, text)

    def _taken(self) -> list[HeldClient]:
        """Return all clients that are held, which are no longer."""
        taken = list(self._held)
        self._held.clear()
        self._timer_queue.abandon(len(taken))
        return taken


def _refuse(held: HeldClient, fault: ConnectionFault) -> None:
    """Answer a client that has been held, and read from it again: it has to answer the close."""
    peer = held.peer
    held.peer = None
    if peer is not None:
        peer.refuse_connection(fault)
        peer.go_on(peer.container.clock.now_ms())


def _server(kind: str, address: tuple[str, int]) -> dict[Symbol, object]:
    host, port = address
    return {
        Symbol("network-host"): host,
        Symbol("hostname"): host,
        Symbol("port"): UInt(port),
        Symbol("scheme"): SCHEMES[kind],
    }


SCHEMES: Final = {"amqp": "amqp", "amqps": "amqps", "ws": "amqpws", "wss": "amqpwss"}
"""The schemes of Qpid JMS by the kind of listener."""
