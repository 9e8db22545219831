"""The broker as an AMQP container: who is connected, which links live, and the round of work.

One round follows every read from a socket: routing has happened while bytes
were read; now waiting queues dispatch, changes are committed, and every
connection with output writes once (`performance.md`, rule 9).
"""

from __future__ import annotations

from abc import abstractmethod
from secrets import token_bytes
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.errors import (
    INVALID_FIELD,
    RESOURCE_LOCKED,
    STOLEN,
    ConnectionFault,
    Fault,
    LinkFault,
)
from broker.amqp.limits import Limits
from broker.amqp.link import Link
from broker.amqp.performatives import Open
from broker.amqp.sections import Sections
from broker.amqp.types import Symbol
from broker.clock import Clock
from broker.journal import Journal
from broker.large_body_store import LargeBodyStore
from broker.links.memory_guard import MemoryGuard
from broker.links.service import Service, ServiceNode
from broker.links.uniqueness import Claim, ContainerIdVerdict, collide, verdict
from broker.routing.addresses.address import MANAGEMENT, Address
from broker.routing.errors import NoSuchNode
from broker.routing.queues.node import Node
from broker.routing.router import Router
from broker.routing.topics.subscription import QUEUE_FACTS, Subscription, SubscriptionTraits
from broker.stats import Stats

if TYPE_CHECKING:
    from broker.links.peer import Peer


@mypyc_attr(allow_interpreted_subclasses=True)
class Authenticator:
    """Decides who may enter."""

    @abstractmethod
    def mechanisms(self) -> list[str]:
        """The SASL mechanisms on offer."""

    @abstractmethod
    def requires_sasl(self) -> bool:
        """Whether a peer must authenticate, so that it may not leave the SASL layer out."""

    @abstractmethod
    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:
        """Call `peer.authenticated` or `peer.rejected`, now or later."""

    @abstractmethod
    async def knows(self, user: str, password: str, *, host: str) -> bool:
        """Return whether `password` is that of `user`, who asks from the address `host`.

        For those who enter without SASL. May take a while; TooManyLogins if too many wait.
        """

    @abstractmethod
    def is_administrator(self, user: str) -> bool:
        """Whether `user`, who has entered, may manage the broker. Empty is anonymous."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """Hears what an operator should know."""

    @abstractmethod
    def opened(self, peer: Peer) -> None:
        """A connection has been opened."""

    @abstractmethod
    def refused(self, peer: Peer, reason: str) -> None:
        """A connection was not let in."""

    @abstractmethod
    def closed(self, peer: Peer, reason: str) -> None:
        """A connection that was open has ended."""

    @abstractmethod
    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        """A connection is cut: its client read nothing for `timeout_ms` (`stall_timeout_ms`)."""

    @abstractmethod
    def managed(self, peer: Peer, change: dict[str, str]) -> None:
        """An administrator has changed something: `operation`, `type` and `name` of the entity,
        `arguments` and `result` where there are any."""

    @abstractmethod
    def noticed(self, notice: str) -> None:
        """Something has happened in routing that nobody asked for in so many words."""

    @abstractmethod
    def failed(self, peer: Peer, error: Exception) -> None:
        """A bug has shown while serving a connection."""


@final
class LinkRegistration:
    """The live link of a name, and what it said of the subscription that it is for."""

    def __init__(
        self, link: Link, facts: SubscriptionTraits, subscription: Subscription | None
    ) -> None:
        self.link: Final = link
        self.facts: Final = facts
        self.subscription: Final = subscription


@final
class Container:
    """Everything that the connections of one broker share.

    `limits` are those of connections that begin from now on, `credit` that of links.
    `received_ms` is when something was read from a socket the last time, by the clock on the
    wall: what it brought arrived then.
    """

    def __init__(
        self,
        *,
        name: str,
        router: Router,
        journal: Journal,
        clock: Clock,
        stats: Stats,
        limits: Limits,
        authenticator: Authenticator,
        watcher: Watcher,
        credit: i64,
        product: dict[str, object],
    ) -> None:
        self.name: Final = name
        self.router: Final = router
        self.journal: Final = journal
        self.clock: Final = clock
        self.stats: Final = stats
        self.limits = limits
        self.authenticator: Final = authenticator
        self.watcher: Final = watcher
        self.credit: i64 = credit
        self.product: Final = product
        self.sections: Final = Sections()
        self.touched: list[Peer] = []
        self.closing = False
        self.received_ms: i64 = clock.wall_ms()
        self.service: Service | None = None
        self.contents: LargeBodyStore | None = None
        self.memory_guard: Final = MemoryGuard(self)
        self._peers: Final[dict[str, list[Peer]]] = {}
        self._links: Final[dict[tuple[str, str, bool], LinkRegistration]] = {}
        self._next_peer: i64 = 0
        # no id of a transaction comes again, not after a restart either
        self._txn_prefix: Final = token_bytes(8)
        self._next_txn: i64 = 0

    def next_peer_id(self) -> i64:
        """A number that no other connection has or will have."""
        self._next_peer += 1
        return self._next_peer

    def next_txn_id(self) -> bytes:
        """An id for a transaction that no other one has or will have: 16 of 32 bytes (4.5.2)."""
        self._next_txn += 1
        return self._txn_prefix + int(self._next_txn).to_bytes(8, "big")

    # -- connections

    def admit(self, peer: Peer, open: Open, claim: Claim) -> None:
        """Let `peer` have its container-id; ConnectionFault where it may not (CON-02 to CON-06)."""
        holders = [holder for holder in self._holders(open.container_id) if holder.is_live()]
        judged = verdict(claim, [holder.claim for holder in holders])
        if judged is ContainerIdVerdict.REFUSE:
            raise ConnectionFault(
                INVALID_FIELD,
                f"container-id {open.container_id:.50} is in use",
                {Symbol("invalid-field"): Symbol("container-id")},
            )
        if judged is ContainerIdVerdict.CLOSE_EXISTING:
            taken = ConnectionFault(
                RESOURCE_LOCKED,
                f"container-id {open.container_id:.50} was claimed by another connection",
                {Symbol("sole-connection-enforcement"): True},
            )
            for holder in holders:
                if collide(claim, holder.claim):
                    holder.connection.close(taken)
        self._peers.setdefault(open.container_id, []).append(peer)

    def _holders(self, container_id: str) -> list[Peer]:
        return self._peers.get(container_id, [])

    def leave(self, peer: Peer) -> None:
        """The container-id of `peer` is free again (CON-04)."""
        holders = self._peers.get(peer.container_id)
        if holders is not None and peer in holders:
            holders.remove(peer)
            if not holders:
                del self._peers[peer.container_id]

    def close_all(self, fault: Fault) -> None:
        """Close every open connection, and let nobody else in."""
        self.closing = True
        for holders in list(self._peers.values()):
            for peer in list(holders):
                peer.connection.close(fault)

    def peers(self) -> list[Peer]:
        """Every open connection, in no order."""
        return [peer for holders in self._peers.values() for peer in holders]

    def peer_count(self) -> int:
        """How many connections are open."""
        return sum([len(holders) for holders in self._peers.values()])

    def link_count(self) -> int:
        """How many links are attached."""
        return len(self._links)

    # -- links

    def claim_link(
        self, container_id: str, link: Link, node: Node | None, *, incoming: bool
    ) -> None:
        """Make `link` the one of its name, role and container; an older one is stolen (SUB-37).

        NoSuchNode where `node`, which it is for, was a temporary one that has ended with that.
        """
        self.steal(container_id, link, incoming=incoming)
        if node is not None and not self._is_there(node):
            raise NoSuchNode(f"{node.address} has ended with the link that was stolen")
        self.hold(container_id, link, incoming=incoming)

    def steal(self, container_id: str, link: Link, *, incoming: bool) -> None:
        """End the link that has the name of `link`, where there is one."""
        held = self._links.get((container_id, link.name, incoming))
        if held is not None:
            self.stats.links_stolen += 1
            held.link.detach(LinkFault(STOLEN, f"link {link.name:.50} was attached again"))

    def hold(
        self,
        container_id: str,
        link: Link,
        *,
        incoming: bool,
        facts: SubscriptionTraits = QUEUE_FACTS,
        subscription: Subscription | None = None,
    ) -> None:
        """`link` has its name from now on, which is free."""
        self._links[container_id, link.name, incoming] = LinkRegistration(link, facts, subscription)
        self.stats.links_attached += 1

    def holder(self, container_id: str, name: str) -> LinkRegistration | None:
        """The live link of that name on which that container receives."""
        return self._links.get((container_id, name, False))

    def _is_there(self, node: Node) -> bool:
        return isinstance(node, ServiceNode) or self.router.has(node)

    def forget_link(self, container_id: str, link: Link, *, incoming: bool) -> None:
        """`link` has ended."""
        key = (container_id, link.name, incoming)
        held = self._links.get(key)
        if held is not None and held.link is link:
            del self._links[key]

    def links(self) -> list[Link]:
        """Every attached link, in no order."""
        return [holder.link for holder in self._links.values()]

    def service_node(self, peer: Peer, address: Address, reply_to: str = "") -> ServiceNode | None:
        """What a link of `peer` to the broker itself leads to; None for any other address."""
        service = self.service
        if service is None or address.text != MANAGEMENT:
            return None
        return ServiceNode(peer, service, reply_to=reply_to)

    def receivers(self) -> list[LinkRegistration]:
        """Return what is known of every link on which a client receives, in no order."""
        return [holder for (_, _, incoming), holder in self._links.items() if not incoming]

    # -- work

    def run_round(self) -> None:
        """Dispatch, commit and write until nothing more can be done now."""
        self.router.store_backpressure.look(self.journal.unwritten_memory())
        disk_guard = self.router.disk_guard
        if disk_guard is not None:
            disk_guard.published(self.stats.published_bytes)
        self.memory_guard.look()
        if self.router.gates.any:
            self.router.gates.lift(self.journal.durable_up_to, self.journal.durable_page)
        while True:
            self.router.pump(self.journal.batch)
            self.journal.flush()
            if not self.touched:
                if not self.router.is_woken():
                    break
                continue
            now_ms = self.clock.now_ms()
            touched = self.touched
            self.touched = []
            # consumers before the producer that was read first: its outcome can wait for a write
            touched.reverse()
            for peer in touched:
                peer.write(now_ms)
        if self.router.paging.grown:
            self.router.paging.page_out(self.journal.durable_up_to)
        if self.router.notices:
            self._pass_on_notices()

    def _pass_on_notices(self) -> None:
        notices = self.router.notices
        self.router.notices = []
        for notice in notices:
            self.watcher.noticed(notice)

    def tick(self) -> None:
        """Do whatever is due, then a round."""
        self.router.timer_queue.tick(self.clock.now_ms())
        self.run_round()
