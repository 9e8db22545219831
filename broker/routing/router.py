"""The router: finds and creates nodes by address, the only access to all queues and topics."""

from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.log_events import Notice
from broker.routing.addresses import address as addresses
from broker.routing.addresses import pattern
from broker.routing.addresses.address import Address
from broker.routing.addresses.durability import Durability
from broker.routing.addresses.policy import AddressPolicy, Policies
from broker.routing.batches.leases import Leases
from broker.routing.batches.staging_area import StagingArea
from broker.routing.context import RoutingChange, RoutingContext
from broker.routing.credit.commit_delay import CommitDelay
from broker.routing.credit.credit_policy import CreditPolicy
from broker.routing.credit.memory import UNBOUNDED, MemoryBudget
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.participants import QueueObserver
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    LimitReached,
    NoSuchNode,
)
from broker.routing.moves import Moves
from broker.routing.population import NODES_MAX, Population
from broker.routing.queues.commit_gate import Gates
from broker.routing.queues.duplicates import Duplicates, DuplicateWindow
from broker.routing.queues.message_events import EventLogLimits
from broker.routing.queues.node import QUEUE, TOPIC, Node
from broker.routing.queues.node_context import NodeContext
from broker.routing.queues.paging import Paging
from broker.routing.queues.queue import Queue
from broker.routing.termini.suspended import SuspendedTermini
from broker.routing.topics.binding import Binding
from broker.routing.topics.detached_subscriptions import GRACE_MS
from broker.routing.topics.dynamic import DeletePolicy, is_over
from broker.routing.topics.lifetime import Ending, Expiries
from broker.routing.topics.subscriptions import SUBSCRIPTIONS_MAX, Subscriptions
from broker.routing.topics.topic import Topic
from broker.routing.topics.wildcards import Wildcard, Wildcards
from broker.stats import Stats
from storage.batch import Batch
from storage.records import StoredNode

BINDINGS_MAX: Final[i64] = 1_000_000
"""Maximum bindings of all topics; a pattern counts as one, and one for each matching topic."""

NODE_CREATED: Final = "node.created"
NODE_DELETED: Final = "node.deleted"
"""The changes of nodes that the audit records; temporary nodes are none."""


@final
class Router:
    """All nodes of one broker; a queue and a topic of one name are two nodes (DST-01).

    `context` is what all nodes share; `notices` are lines for the operator.
    """

    bindings: i64 = 0

    def __init__(
        self,
        *,
        clock: Clock,
        stats: Stats,
        policies: Policies,
        pacing_mark: i64 = 2000,
        nodes_max: i64 = NODES_MAX,
        bindings_max: i64 = BINDINGS_MAX,
        subscriptions_max: i64 = SUBSCRIPTIONS_MAX,
        grace_ms: i64 = GRACE_MS,
        observer: QueueObserver | None = None,
        commit_delay: CommitDelay | None = None,
        commits_take_time: bool = False,
        paging_window: i64 = -1,
        event_log_limits: EventLogLimits | None = None,
        stage_retention_ms: i64 = 0,
        memory_max: i64 = UNBOUNDED,
    ) -> None:
        routing = RoutingContext(clock, stats)
        self.clock: Final = clock
        self.stats: Final = stats
        self.timer_queue: Final = routing.timer_queue
        self.notices, self.changes = routing.notices, routing.changes
        self.memory: Final = MemoryBudget(memory_max)
        self.credit_policy: Final = CreditPolicy(self.memory)
        self.expiries: Final = Expiries(self.timer_queue, clock)
        self.duplicates: Final = Duplicates(clock, stats)
        self.queues: Final[dict[str, Queue]] = {}
        self.topics: Final[dict[str, Topic]] = {}
        self.wildcards: Final = Wildcards()
        self.subscriptions: Final = Subscriptions(self, subscriptions_max, grace_ms=grace_ms)
        self.leases, self.termini = Leases(self), SuspendedTermini(self)
        self.moves: Final = Moves(self, routing)
        self.policies = policies
        self.prefixes: Final = policies.prefixes
        self.population: Final = Population(self, nodes_max, policies.auto_create_max)
        self._bindings_max: Final[i64] = bindings_max
        self.staging_area: Final = StagingArea(self, retention_ms=stage_retention_ms)
        self.context: Final = NodeContext(
            routing,
            credit_policy=self.credit_policy,
            commit_delay=commit_delay or CommitDelay(0),
            gates=Gates(in_force=commits_take_time),
            paging=Paging(paging_window),
            pacing_mark=pacing_mark,
            mover=self.moves,
            observer=observer,
            event_log_limits=event_log_limits or EventLogLimits(),
        )

    # -- nodes

    def parse(self, text: str, kind: str = "") -> Address:
        """Return the address that `text` is; `kind` is what a capability says, or empty."""
        return self.prefixes.parse(text, kind)

    def resolve(
        self,
        address: Address,
        batch: Batch,
        *,
        owner: i64 = -1,
        create: bool = True,
        creator: str | None = None,
    ) -> Node:
        """Return the node of `address`, created now if policy lets it be (DST-01, DST-02).

        If `address` says no kind, an existing node wins, queue first, else the default kind. A
        topic's address may have any key; a pattern names no single node. `owner` is the connection
        that asks: it owns nodes of the class `tmp` (DST-13); `creator` is its user. Raise
        InvalidAddress, or NoSuchNode, also if the node does not exist and `create` is false.
        """
        found = self.find(address)
        if found is not None:
            return found
        kind = self.kind_of(address)
        addresses.check(address.text)
        if kind == TOPIC:
            if address.is_pattern:
                raise InvalidAddress(f"{address.name} is a pattern, not a topic")
            found = self.topics.get(address.name)
            if found is not None:
                return found
            address = address.topic()
        name = addresses.check_new(address.text)
        if not create:
            raise NoSuchNode(f"no {kind} {name}")
        if not self.policies.of(name, kind).auto_create:
            raise NoSuchNode(f"no {kind} {name}, and it may not be created")
        return self.create(
            address.of_kind(kind), batch, owner=owner, by_client=True, creator=creator
        )

    def kind_of(self, address: Address) -> str:
        """Return the kind of the node that `resolve` would return; create nothing."""
        if address.kind:
            return address.kind
        if address.text in self.queues:
            return QUEUE
        return TOPIC if address.name in self.topics else self.policies.default_kind

    def publishing_key(self, address: Address, node: Node) -> str:
        """Return the key with which messages to `address` reach its `node` (DST-05).

        Raise InvalidAddress if it is a pattern.
        """
        if node.kind != TOPIC or node.address == address.text:
            return ""
        addresses.check(address.text)
        key = address.key
        pattern.check(key)
        if pattern.is_pattern(key):
            raise InvalidAddress(f"{key} is a pattern, not a key")
        return key

    def declare(self, batch: Batch) -> None:
        """Create the nodes that the settings name and that do not exist yet."""
        for address in self._missing(self.policies):
            self.create(address, batch)

    def adopt(self, policies: Policies, batch: Batch) -> None:
        """Apply `policies` to nodes created from now on, and create the nodes that they name.

        Raise RoutingError if one of these can have no such address, or if there is no room for
        all of them; policies then stay as before.
        """
        self.check_policies(policies)
        self.policies = policies
        self.population.auto_create_max = policies.auto_create_max
        self.declare(batch)

    def check_policies(self, policies: Policies) -> None:
        """Raise RoutingError if `adopt` would."""
        missing = self._missing(policies)
        for address in missing:
            addresses.check_node(address, owner=-1)
        if missing:
            self.population.check(len(self.queues) + len(self.topics) + len(missing) - 1)

    def _missing(self, policies: Policies) -> list[Address]:
        """Return the addresses of declared nodes that do not exist yet.

        Raise RoutingError if no client or operator may create one of them.
        """
        return [
            Address(addresses.check_new(text), kind)
            for kind, text in policies.declared
            if self.find_named(text, kind) is None
        ]

    def find(self, address: Address) -> Node | None:
        """Return the existing node of `address`, or None. Without a kind a queue comes first."""
        kind = address.kind
        if kind != TOPIC:
            queue = self.queues.get(address.text)
            if queue is not None or kind == QUEUE:
                return queue
        return self.topics.get(address.text)

    def find_named(self, text: str, kind: str = "") -> Node | None:
        """Return the existing node that `text` names, None if there is none or of another kind."""
        said = self.prefixes.kind_in(text)
        if said and kind not in ("", said):
            return None
        return self.find(self.parse(text, kind))

    def has(self, node: Node) -> bool:
        """Return whether `node` exists: neither deleted, nor replaced by another of its name."""
        return (self.topics if node.kind == TOPIC else self.queues).get(node.address) is node

    def names(self, kind: str) -> list[str]:
        """Return the address of every node of that kind, in no order."""
        return list(self.topics if kind == TOPIC else self.queues)

    def create(
        self,
        address: Address,
        batch: Batch,
        *,
        owner: i64 = -1,
        by_client: bool = False,
        creator: str | None = None,
    ) -> Node:
        """Create the node of `address`, which says its kind; a durable store restores it.

        A node of the class `tmp` belongs to its `owner` and ends with that connection. `by_client`:
        a client named it, and `creator` is its user. Raise InvalidAddress, NoSuchNode or
        LimitReached.
        """
        addresses.check_node(address, owner=owner)
        text, kind = address.text, address.kind
        if address.durability is Durability.TMP:
            return self._add(text, kind, owner, creator=creator)
        if by_client:
            self.population.check_auto_created()
        node = self._add(text, kind, -1, creator=creator)
        if by_client:
            self.population.made_by_client(node)
        batch.add_node(StoredNode(address=text, kind=kind, auto_created=by_client, creator=creator))
        if self.changes.are_recorded:
            self.changes.found.append(RoutingChange(NODE_CREATED, kind, text))
        return node

    def bring_back(self, node: StoredNode) -> None:
        """Create a node that the store has, at the start of the broker."""
        if node.address in (self.topics if node.kind == TOPIC else self.queues):
            return
        made = self._add(node.address, node.kind, -1, creator=node.creator)
        if node.auto_created:
            self.population.made_by_client(made)

    def create_temporary(self, kind: str, owner: i64, *, creator: str | None = None) -> Node:
        """Create a node with an unguessable address that ends with connection `owner` (TMP-01).

        `creator` is the user of that connection.
        """
        return self._add(addresses.new_temporary(kind), kind, owner, creator=creator)

    def _add(self, address: str, kind: str, owner: i64, *, creator: str | None) -> Node:
        self.population.check(len(self.queues) + len(self.topics))
        policy = self.policies.of(address, kind)
        node: Node
        if kind == TOPIC:
            node = self._add_topic(address, policy, owner)
        elif kind == QUEUE:
            node = self.queues[address] = Queue(
                address=address, policy=policy, context=self.context, owner=owner
            )
        else:
            raise InvalidAddress(f"{kind} is neither queue nor topic")
        if owner >= 0:
            self.population.owns(owner, node)
        if creator is not None:
            self.population.created_by(creator, node)
        if policy.duplicate_window > 0:
            node.duplicates = DuplicateWindow(node, self.duplicates)
        return node

    def _add_topic(self, address: str, policy: AddressPolicy, owner: i64) -> Topic:
        topic = Topic(address=address, policy=policy, router=self, owner=owner)
        if owner < 0:
            found = self.wildcards.bindings_of(address)
            self.check_bindings(i64(len(found)))
            for binding in found:
                topic.bind(binding)
        self.topics[address] = topic
        return topic

    def delete(self, node: Node, batch: Batch) -> None:
        """Delete `node` with its messages, and notify links to it (TMP-03). Idempotent."""
        if not self.has(node):
            return
        if isinstance(node, Topic):
            del self.topics[node.address]
            self.subscriptions.end_all_of(node, batch)
        else:
            del self.queues[node.address]
        if node.staged > 0:
            self.staging_area.target_gone(node, batch)
        if node.duplicates is not None:
            node.duplicates.clear(batch)
        if not node.is_temporary:
            batch.remove_node(StoredNode(address=node.address, kind=node.kind))
            if self.changes.are_recorded:
                lost = node.contents()
                change = RoutingChange(NODE_DELETED, node.kind, node.address, dropped=lost)
                self.changes.found.append(change)
        self.population.gone(node)
        node.delete(batch)
        if isinstance(node, Queue):
            self.termini.end_those_of(node, batch)

    def connection_ended(self, owner: i64, ending: Ending, batch: Batch) -> None:
        """End all that ends with connection `owner`, above all its temporary nodes (TMP-03)."""
        self.expiries.connection_ended(owner, ending, batch)
        for node in self.population.owned_by(owner):
            self.delete(node, batch)

    def outlive(self, node: Node, policy: DeletePolicy, batch: Batch) -> None:
        """Delete dynamic `node` as `policy` says: the link that made it is gone (core 3.5.10)."""
        node.outlived = policy
        self._delete_if_over(node, batch)

    def _delete_if_over(self, node: Node, batch: Batch) -> None:
        policy = node.outlived
        if policy is not None and is_over(policy, links=node.links(), messages=node.contents()):
            self.delete(node, batch)

    def check_consumable(self, node: Node, owner: i64) -> None:
        """Raise HeldExclusively if only another connection may receive from `node` (TMP-04)."""
        if node.is_exclusive and node.owner != owner:
            raise HeldExclusively(f"{node.address} belongs to another connection")

    # -- subscriptions

    def policy_of(self, address: str, kind: str = "") -> AddressPolicy:
        """Return the policy of an address, whether it has a node or not."""
        return self.policies.of(address, kind)

    def topic_of(
        self,
        address: Address,
        batch: Batch,
        *,
        owner: i64 = -1,
        create: bool = True,
        creator: str | None = None,
    ) -> Topic | None:
        """Return the topic that a subscriber's address names, created if policy and `create` allow.

        Return None for a pattern, which names any number of topics (DST-06). Raise NoSuchNode or
        InvalidAddress.
        """
        addresses.check(address.text)
        pattern.check(address.key)
        if not address.is_pattern:
            topic = self.resolve(
                address.topic(), batch, owner=owner, create=create, creator=creator
            )
            assert isinstance(topic, Topic)
            return topic
        pattern.check(address.words)
        if address.is_temporary or address.durability is Durability.TMP:
            raise NoSuchNode("temporary topics cannot be found by a pattern")
        return None

    def bind(
        self, address: Address, wanted: ConsumerFilter | None, queue: Queue, *, topic: Topic | None
    ) -> None:
        """Bind `queue` to a subscriber's address, from now on.

        `topic` is the one that `topic_of` returned for it. A pattern binds to the topics of the
        moment and to those to come, never to temporary ones. Raise LimitReached; then nothing is
        bound.
        """
        if topic is not None:
            topic.bind(Binding(queue, address.key, wanted))
            return
        wildcard = Wildcard(
            Binding(queue, address.words), address.key, wanted, begins=address.begins
        )
        found = [
            topic
            for topic in self.topics.values()
            if topic.owner < 0 and wildcard.takes(topic.address)
        ]
        self.check_bindings(i64(len(found)) + 1)
        self.wildcards.add(wildcard)
        self.bindings += 1
        for topic in found:
            topic.bind(wildcard.binding())

    def unbind(self, queue: Queue) -> None:
        """Unbind `queue` from all topics and from its pattern. Idempotent."""
        if self.wildcards.remove(queue):
            self.bindings -= 1
        for topic in list(queue.topics):
            topic.unbind(queue)

    def check_bindings(self, more: i64) -> None:
        """Raise LimitReached if the broker may not have `more` more bindings."""
        if self.bindings + more > self._bindings_max:
            raise LimitReached(f"the broker has its {self._bindings_max} bindings")

    # -- rounds

    def take_notices(self) -> list[Notice]:
        """Return the lines for the operator, and forget them."""
        found = self.notices.copy()
        self.notices.clear()
        return found

    def pump(self, batch: Batch) -> None:
        """Do what is due, dispatch woken queues until none is left, and do what follows from that.

        Then backlogs are spilled and loaded, producers go on, dynamic nodes that are over are
        deleted, leases go on, and the records of termini are noted.
        """
        if self.expiries.any_due:
            self.expiries.collect(batch)
        if self.context.event_log.is_due:
            self.context.event_log.trim(batch)
        if self.staging_area.is_due:
            self.staging_area.collect(batch)
        if self.moves.is_due:
            self.moves.retry(batch)
        if self.population.is_due:
            self.population.collect(batch)
        rounds = self.context.rounds
        if rounds.woken:
            rounds.dispatch(batch)
        if self.memory.spills and not self.credit_policy.store_backpressure.is_behind:
            self.context.paging.spill(batch)
        if self.context.paging.wanted:
            self.context.paging.begin()
        if rounds.paced:
            rounds.resume_producers()
        if rounds.left:
            for node in rounds.take_left():
                self._delete_if_over(node, batch)
        if self.leases.any:
            self.leases.go_on(batch)
        if self.termini.records.any:
            self.termini.records.write(batch)
