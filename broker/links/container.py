"""The broker as an AMQP container: its connections, its links, and the round of work.

A round of work follows every read from a socket. Messages have been routed while the bytes
were read; in the round, queues that were woken dispatch, changes are committed, and every
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
    """Decides which clients may connect, and which users may manage the broker."""

    @abstractmethod
    def mechanisms(self) -> list[str]:
        """Return the SASL mechanisms that the broker offers."""

    @abstractmethod
    def requires_sasl(self) -> bool:
        """Return whether a client must authenticate, so that it may not omit the SASL layer."""

    @abstractmethod
    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:
        """Call `peer.authenticated`, `peer.rejected` or `peer.undecided`, now or later."""

    @abstractmethod
    async def knows(self, user: str, password: str, *, host: str) -> bool:
        """Return whether `password` is that of `user`; the request comes from the address `host`.

        For clients that log in without SASL. May take a while; raises TooManyLogins if too many
        logins wait.
        """

    @abstractmethod
    def is_administrator(self, user: str) -> bool:
        """Return whether the authenticated `user` may manage the broker; empty is anonymous."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """Reports to the operator what happens to connections and in routing."""

    @abstractmethod
    def opened(self, peer: Peer) -> None:
        """Report that a connection was opened."""

    @abstractmethod
    def refused(self, peer: Peer, reason: str) -> None:
        """Report that a connection was refused, or that its authentication failed."""

    @abstractmethod
    def closed(self, peer: Peer, reason: str) -> None:
        """Report that a connection that was open has ended."""

    @abstractmethod
    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        """Report a cut: the client read nothing for `timeout_ms` (setting `stall_timeout_ms`)."""

    @abstractmethod
    def managed(self, peer: Peer, change: dict[str, str]) -> None:
        """Report a change that an administrator made.

        `change` has `operation`, `type` and `name` of the entity, `arguments` and `result` if
        there are any.
        """

    @abstractmethod
    def noticed(self, notice: str) -> None:
        """Report an event in routing that no client or administrator has directly requested."""

    @abstractmethod
    def failed(self, peer: Peer, error: Exception) -> None:
        """Report a bug: an unexpected exception while a connection was served."""


@final
class LinkRegistration:
    """A live link that is registered under its name.

    `facts` is what its attach said of a subscription, QUEUE_FACTS if it is for none.
    `subscription` is None unless the link consumes from one.
    """

    def __init__(
        self, link: Link, facts: SubscriptionTraits, subscription: Subscription | None
    ) -> None:
        self.link: Final = link
        self.facts: Final = facts
        self.subscription: Final = subscription


@final
class Container:
    """Everything that the connections of one broker share.

    `limits` apply to connections that begin from now on, `credit` (messages) to producers' links
    that do. `received_ms` is the wall-clock time of the last read from a socket: the arrival time
    of the messages in it. `touched` are connections with output to write. `contents` is None if
    the store keeps no large bodies, `service` while the broker answers no requests.
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
        # random, so that no transaction id is used again, even after a restart
        self._txn_prefix: Final = token_bytes(8)
        self._next_txn: i64 = 0

    def next_peer_id(self) -> i64:
        """Return a number that no other connection has had or will have since the start."""
        self._next_peer += 1
        return self._next_peer

    def next_txn_id(self) -> bytes:
        """Return a transaction id that is never used again: 16 of the 32 bytes allowed (4.5.2)."""
        self._next_txn += 1
        return self._txn_prefix + int(self._next_txn).to_bytes(8, "big")

    # -- connections

    def admit(self, peer: Peer, open: Open, claim: Claim) -> None:
        """Register `peer` under its container-id, or refuse it (CON-02 to CON-06).

        Close the connections that must yield to it. Raise ConnectionFault if it must yield.
        """
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
        """Remove `peer`, which frees its container-id (CON-04)."""
        holders = self._peers.get(peer.container_id)
        if holders is not None and peer in holders:
            holders.remove(peer)
            if not holders:
                del self._peers[peer.container_id]

    def close_all(self, fault: Fault) -> None:
        """Close every open connection, and refuse all new ones."""
        self.closing = True
        for holders in list(self._peers.values()):
            for peer in list(holders):
                peer.connection.close(fault)

    def peers(self) -> list[Peer]:
        """Return every open connection, in no order."""
        return [peer for holders in self._peers.values() for peer in holders]

    def peer_count(self) -> int:
        """Return the number of open connections."""
        return sum([len(holders) for holders in self._peers.values()])

    def link_count(self) -> int:
        """Return the number of attached links."""
        return len(self._links)

    # -- links

    def claim_link(
        self, container_id: str, link: Link, node: Node | None, *, incoming: bool
    ) -> None:
        """Register `link` under its name, role and container; an older one is stolen (SUB-37).

        `node` is the node that the link is for, None for none. Raise NoSuchNode if it was a
        temporary node that has ended with the older link.
        """
        self.steal(container_id, link, incoming=incoming)
        if node is not None and not self._is_there(node):
            raise NoSuchNode(f"{node.address} has ended with the link that was stolen")
        self.hold(container_id, link, incoming=incoming)

    def steal(self, container_id: str, link: Link, *, incoming: bool) -> None:
        """Detach the link that has the name, role and container of `link`, if there is one."""
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
        """Register `link` under its name, which must be free."""
        self._links[container_id, link.name, incoming] = LinkRegistration(link, facts, subscription)
        self.stats.links_attached += 1

    def holder(self, container_id: str, name: str) -> LinkRegistration | None:
        """Return the live link of that name on which that container receives; None without one."""
        return self._links.get((container_id, name, False))

    def _is_there(self, node: Node) -> bool:
        return isinstance(node, ServiceNode) or self.router.has(node)

    def forget_link(self, container_id: str, link: Link, *, incoming: bool) -> None:
        """Remove `link`, which has ended, unless its name belongs to another link by now."""
        key = (container_id, link.name, incoming)
        held = self._links.get(key)
        if held is not None and held.link is link:
            del self._links[key]

    def links(self) -> list[Link]:
        """Return every attached link, in no order."""
        return [holder.link for holder in self._links.values()]

    def service_node(self, peer: Peer, address: Address, reply_to: str = "") -> ServiceNode | None:
        """Return the node for a link of `peer` to the broker itself; None for any other address."""
        service = self.service
        if service is None or address.text != MANAGEMENT:
            return None
        return ServiceNode(peer, service, reply_to=reply_to)

    def receivers(self) -> list[LinkRegistration]:
        """Return the registration of every link on which a client receives, in no order."""
        return [holder for (_, _, incoming), holder in self._links.items() if not incoming]

    # -- work

    def run_round(self) -> None:
        """Run a round: dispatch, commit and write until nothing more can be done now."""
        self.router.credit_policy.store_backpressure.look(self.journal.unwritten_memory())
        disk_guard = self.router.credit_policy.disk_guard
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
            # consumers before the producer whose data was read first: its outcome can wait
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
        """Call the timers that are due, then run a round."""
        self.router.timer_queue.tick(self.clock.now_ms())
        self.run_round()
