"""The broker as an AMQP container: its connections, its links, and the round of work.

A round of work follows every read from a socket. Messages have been routed while the bytes
were read; in the round, queues that were woken dispatch, changes are committed, and every
connection with output writes once (`docs/design/data-path.md`, rule 9).
"""

from __future__ import annotations

from secrets import token_bytes
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import (
    CONNECTION_FORCED,
    INVALID_FIELD,
    NOT_FOUND,
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
from broker.audit.audit import Audit
from broker.clock import Clock
from broker.journal import Journal
from broker.large_body_store import LargeBodyStore
from broker.links.access import USE, Right
from broker.links.authenticator import Authenticator
from broker.links.bridge_status import BridgeStatus
from broker.links.broker_group import BrokerGroup
from broker.links.drain import Drain
from broker.links.login_expiries import LoginExpiries
from broker.links.memory_guard import MemoryGuard
from broker.links.peer_timers import JudgingPause
from broker.links.rights_review import RightsReview
from broker.links.service import CLAIMS, Service, ServiceNode
from broker.links.uniqueness import Claim, ContainerIdVerdict, collide, verdict
from broker.links.user_limits import UserLimitChecks
from broker.links.watcher import Watcher
from broker.message import UNKNOWN
from broker.routing.addresses.address import MANAGEMENT, Address
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Label
from broker.routing.errors import NoSuchNode
from broker.routing.queues.node import Node
from broker.routing.router import Router
from broker.routing.topics.subscription import QUEUE_TRAITS, Subscription, SubscriptionTraits
from broker.security.access import AccessRules
from broker.security.decision import UNDECIDED, Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.resources import CLIENT_ID, Resource
from broker.stats import Stats
from broker.tenure import Tenure

if TYPE_CHECKING:
    from broker.links.linkless import LinklessClient
    from broker.links.peer import Peer
    from broker.links.shard_hosts import ShardHosts


VIRTUAL_HOST: Final = "vhost:"
"""Begins the hostname of an open that asks for a virtual host; RabbitMQ has them."""

DEFAULT_VIRTUAL_HOST: Final = f"{VIRTUAL_HOST}/"


@final
class LinkRegistration:
    """A live link that is registered under its name.

    `traits` is what its attach said of a subscription, QUEUE_TRAITS if it is for none.
    `subscription` is None unless the link consumes from one. `rights` are those that `peer` needs
    for the link.
    """

    def __init__(
        self, link: Link, traits: SubscriptionTraits, subscription: Subscription | None
    ) -> None:
        self.link: Final = link
        self.traits: Final = traits
        self.subscription: Final = subscription
        self.peer: Peer | None = None
        self.rights: list[Right] = []


@final
class Container:
    """Everything that the connections of one broker share.

    `access` are the rules on who may do what; a reload replaces them. `limits` apply to connections
    that begin from now on, `credit` (messages) to producers' links that do. `received_ms` is the
    wall-clock time of the last read from a socket: the arrival time of the messages in it.
    `adopts_subscriptions`: one without an owner becomes that of the first user that attaches to it.
    `receiving` is the connection whose input is processed right now, None between two; `posting` is
    the client without links whose message is put right now.
    `touched` are connections with output to write. `audit`, which is off unless it is replaced at
    the start, records what others than peers report. `contents` is None if the store keeps no large
    bodies, `service` while the broker answers no requests, `group` unless it is the member of one,
    `tenure` unless it leads that, `shard_hosts` unless it is one of several shards. `bridges` has
    the bridges of the settings, by name.
    """

    receiving: Peer | None = None
    posting: LinklessClient | None = None

    owes_round = False
    """Whether the last round was left out, or broken off: another broker might have led."""

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
        access: AccessRules,
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
        self.access: AccessRules = access
        self.watcher = watcher
        self.credit: i64 = credit
        self.product: Final = product
        self.sections: Final = Sections()
        router.context.judging.watcher = JudgingPause(self)
        self.touched: list[Peer] = []
        self.closing = False
        self.adopts_subscriptions = True
        self.received_ms: i64 = clock.wall_ms()
        self.service: Service | None = None
        self.claims_service: Service | None = None
        self.audit = Audit()
        self.contents: LargeBodyStore | None = None
        self.memory_guard: Final = MemoryGuard(self)
        self.rights_review: Final = RightsReview(self)
        self.user_limits: Final = UserLimitChecks(self)
        self.login_expiries: Final = LoginExpiries(self)
        self.drain: Final = Drain(self)
        self.group: BrokerGroup | None = None
        self.tenure: Tenure | None = None
        self.shard_hosts: ShardHosts | None = None
        self.bridges: Final[dict[str, BridgeStatus]] = {}
        self._peers: Final[dict[str, list[Peer]]] = {}
        self._links: Final[dict[tuple[str, str, bool], LinkRegistration]] = {}
        self._next_peer: i64 = 0
        self._txn_prefix: Final = token_bytes(8)  # random: no id is used again after a restart
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

    def check_open(self, open: Open) -> None:
        """Raise ConnectionFault if no client may connect now, or none with that container-id."""
        if self.closing:
            raise ConnectionFault(CONNECTION_FORCED, "the broker is stopping")
        self.drain.check_open()
        if "\0" in open.container_id:
            raise ConnectionFault(INVALID_FIELD, "a container-id has no NUL")

    def admit(self, peer: Peer, open: Open, claim: Claim) -> None:
        """Register `peer` under its container-id, or refuse it (CON-02 to CON-06).

        Close the connections that must yield to it. Raise ConnectionFault if it must yield, if it
        belongs to another shard, or if its user has too many connections.
        """
        _check_virtual_host(open.hostname)
        if self.shard_hosts is not None:
            self.shard_hosts.check(open.hostname, peer.entrance.listener)
        holders = [holder for holder in self._holders(open.container_id) if holder.is_live()]
        self._check_owner(peer, holders)
        judged = verdict(claim, [holder.claim for holder in holders])
        if judged is ContainerIdVerdict.REFUSE:
            raise ConnectionFault(
                INVALID_FIELD,
                f"container-id {open.container_id:.50} is in use",
                {Symbol("invalid-field"): Symbol("container-id")},
            )
        closing = judged is ContainerIdVerdict.CLOSE_EXISTING
        yielding = [each for each in holders if closing and collide(claim, each.claim)]
        self.user_limits.check_connection(peer, replaced=yielding)
        if yielding:
            taken = ConnectionFault(
                RESOURCE_LOCKED,
                f"container-id {open.container_id:.50} was claimed by another connection",
                {Symbol("sole-connection-enforcement"): True},
            )
            for holder in yielding:
                holder.connection.close(taken)
        self._peers.setdefault(open.container_id, []).append(peer)
        self.user_limits.enter(peer)

    def _check_owner(self, peer: Peer, holders: list[Peer]) -> None:
        """Raise ConnectionFault if the container-id belongs to another user (Z11).

        It belongs to the user whose connections hold it, or to those that a rule names for it.
        """
        user = peer.identity.user
        container_id = peer.container_id
        is_of_another = any(holder.identity.user != user for holder in holders)
        if is_of_another or self.access.names_client_id(container_id):
            peer.demand(USE, Resource(CLIENT_ID, container_id))

    def _holders(self, container_id: str) -> list[Peer]:
        return self._peers.get(container_id, [])

    def peer_of(self, label: Label) -> Peer | None:
        """Return the open connection of a consumer; None if it is no link's, or has ended."""
        id_ = label.session.partition("/")[0]
        for peer in self._holders(label.container_id):
            if str(int(peer.id)) == id_:
                return peer
        return None

    def leave(self, peer: Peer) -> None:
        """Remove `peer`, which frees its container-id (CON-04)."""
        self.user_limits.leave(peer)
        holders = self._peers.get(peer.container_id)
        if holders is not None and peer in holders:
            holders.remove(peer)
            if not holders:
                del self._peers[peer.container_id]

    def close_all(self, fault: Fault) -> None:
        """Close every open connection, and refuse all new ones."""
        group = self.group
        self.closing = True
        for holders in list(self._peers.values()):
            for peer in list(holders):
                told = fault if group is None else group.closing_fault(peer, fault)
                peer.connection.close(told)

    def end_termini(self) -> None:
        """End all suspended termini, so that the last commit has what was delivered of them."""
        self.router.termini.end_all(self.journal.batch)
        self.run_round()

    def properties(self, kind: str) -> dict[str, object]:
        """Return the properties of the broker's open to a client of a listener of that kind."""
        if self.group is None:
            return self.product
        return {**self.product, **self.group.properties(kind)}

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

    def check_attach(self, peer: Peer, link: Link, *, incoming: bool) -> None:
        """Raise LinkFault if the broker drains, or if the user of `peer` has too many links."""
        self.drain.check_attach()
        self.user_limits.check_link(peer, link, incoming=incoming)

    def claim_link(
        self, container_id: str, link: Link, node: Node | None, *, incoming: bool
    ) -> None:
        """Register `link` under its name, role and container; an older one is stolen (SUB-37).

        `node` is the node that the link is for, None for none. Raise NoSuchNode if it was a
        temporary node that has ended with the older link. Nothing may refuse the link after this
        call: the end of a refused link is not told, so it would stay registered.
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

    def steals(self, peer: Peer, link: Link, *, incoming: bool) -> bool:
        """Return whether `link` of `peer` ends another link, one of the same user."""
        held = self._links.get((peer.container_id, link.name, incoming))
        usage = peer.usage
        if held is None or usage is None:
            return False
        return held.link.session.connection.owner in usage.peers

    def hold(
        self,
        container_id: str,
        link: Link,
        *,
        incoming: bool,
        traits: SubscriptionTraits = QUEUE_TRAITS,
        subscription: Subscription | None = None,
    ) -> None:
        """Register `link` under its name; call `steal` first, for the link that has the name."""
        self._links[container_id, link.name, incoming] = LinkRegistration(
            link, traits, subscription
        )
        self.stats.links_attached += 1

    def note_rights(self, peer: Peer, link: Link, rights: list[Right], *, incoming: bool) -> None:
        """Register the rights that `peer` needs for `link`, which has been attached."""
        held = self._links.get((peer.container_id, link.name, incoming))
        if held is not None and held.link is link:
            held.peer = peer
            held.rights = rights

    def registrations(self) -> list[LinkRegistration]:
        """Return the registrations of all attached links, in no order."""
        return list(self._links.values())

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
        service = self.service_at(address)
        if service is None:
            return None
        return ServiceNode(peer, service, address=address.text, reply_to=reply_to)

    def service_at(self, address: Address) -> Service | None:
        """Return the service at one of the broker's own addresses; None for any other address."""
        if address.text == MANAGEMENT:
            return self.service
        return self.claims_service if address.text == CLAIMS else None

    def receivers(self) -> list[LinkRegistration]:
        """Return the registration of every link on which a client receives, in no order."""
        return [holder for (_, _, incoming), holder in self._links.items() if not incoming]

    # -- rights

    def decide(
        self,
        identity: Identity,
        verb: str,
        resource: Resource,
        *,
        entrance: Entrance,
        client_id: str = "",
    ) -> Decision:
        """Decide whether a client may do that by the rules of now, and count what is undecided."""
        decision = self.access.decide(
            identity, verb, resource, entrance=entrance, client_id=client_id
        )
        if decision.because == UNDECIDED:
            self.stats.access_undecided += 1
        return decision

    def adopt_access(self, access: AccessRules) -> None:
        """Apply new rules: from now on, and to all connections and links within seconds (Z7)."""
        self.access = access
        self.rights_review.begin()

    # -- work

    def run_round(self) -> None:
        """Run a round: dispatch, commit and write until nothing more can be done now.

        Do nothing while another broker may lead.
        """
        tenure = self.tenure
        self.owes_round = tenure is not None and tenure.is_over()
        if self.owes_round:
            return
        self.router.credit_policy.store_backpressure.look(self.journal.unwritten_memory())
        disk_guard = self.router.credit_policy.disk_guard
        if disk_guard is not None:
            disk_guard.published(self.stats.published_bytes)
        self.memory_guard.look()
        if self.router.context.gates.any:
            self.router.context.gates.lift(self.journal.durable_up_to, self.journal.durable_page)
        while True:
            self.router.pump(self.journal.batch)
            self.journal.flush()
            if not self.touched:
                if not self.router.context.rounds.woken:
                    break
                continue
            if tenure is not None and tenure.is_over():
                self.owes_round = True
                return
            now_ms = self.clock.now_ms()
            touched = self.touched
            self.touched = []
            # consumers before the producer whose data was read first: its outcome can wait
            touched.reverse()
            for peer in touched:
                peer.write(now_ms)
        if self.router.context.paging.grown:
            self.router.context.paging.page_out(self.journal.durable_up_to)
        if self.router.notices:
            for notice in self.router.take_notices():
                self.watcher.noticed(notice)
        if self.router.changes.found:
            self.pass_on_changes(None)

    def pass_on_changes(self, peer: Peer | None) -> None:
        """Report the changes of routing since the last call; `peer` has caused them."""
        self.watcher.changed(peer, self.router.changes.take())

    def sample_delivery(self, entry: QueueEntry) -> None:
        """Measure how long `entry` has waited, and let a commit go on: one delivery in 64 does."""
        arrived_ms = entry.message.arrived_ms
        if arrived_ms != UNKNOWN and entry.delivery_count == 0:
            self.stats.measured.queue_wait_us.observe((self.clock.wall_ms() - arrived_ms) * 1000)
        self.journal.yield_to_writer()

    def tick(self) -> None:
        """Call the timers that are due, then run a round."""
        self.router.timer_queue.tick(self.clock.now_ms())
        self.run_round()


def _check_virtual_host(hostname: str | None) -> None:
    """Raise ConnectionFault if a client asks for a virtual host: the broker has none.

    Such a client would otherwise share its names with those of other virtual hosts, unknowingly.
    """
    if hostname and hostname.startswith(VIRTUAL_HOST) and hostname != DEFAULT_VIRTUAL_HOST:
        raise ConnectionFault(
            NOT_FOUND, f"no virtual host {hostname[len(VIRTUAL_HOST) :]:.50}: the broker has none"
        )
