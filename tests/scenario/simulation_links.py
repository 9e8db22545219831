"""Sessions and links at the broker's edge: what the broker has read of them and may write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from broker.amqp.outcomes import (
    Accepted,
    Declared,
    Modified,
    Outcome,
    Received,
    Rejected,
    TransactionalState,
)
from broker.amqp.performatives import RCV_SECOND, RECEIVER, SND_SETTLED, Attach, Flow
from broker.amqp.terminus import (
    COPY,
    Coordinator,
    Source,
    Target,
)
from tests.scenario.simulation_records import (
    Consumer,
    Creation,
    Ending,
    Entry,
    Left,
    Message,
    Node,
    Wrong,
)
from tests.scenario.simulation_subscriptions import (
    LIVES_UNTIL,
    NO_FACTS,
    Facts,
    Subscription,
    SubscriptionIdentity,
    facts_of,
    wish_of,
)
from tests.support.frames import Disposition

if TYPE_CHECKING:
    from tests.scenario.simulation_edge import Edge
    from tests.scenario.simulation_transactions import Transaction
    from tests.scenario.simulation_world import World

UINT = 0xFFFF_FFFF


class State(Enum):
    """The state of a link once the broker has read its attach."""

    ATTACHED = "attached"
    REFUSED = "refused"
    ENDED = "ended"


@dataclass(eq=False)
class Awaited:
    """A delivery whose sender awaits an outcome; `is_owed` is False once its link has ended."""

    link: Link
    outcome: type[Accepted | Declared | Rejected]
    message: Message | None = None
    within: bytes | None = None
    transaction: Transaction | None = None
    "The transaction that the delivery's command declares or commits."
    is_owed: bool = True


@dataclass(eq=False, kw_only=True)
class Link(Consumer):
    """A link in either direction; `incoming` is seen from the broker."""

    session: Session
    attach: Attach
    incoming: bool
    state: State = State.ATTACHED
    creation: Creation | None = None
    facts: Facts = NO_FACTS
    subscription: Subscription | None = None
    looks_up: SubscriptionIdentity | None = None
    has_overreached: bool | None = None
    "True if the closing detach asked for more than is allowed; None unless it was a closing one."
    is_relay: bool = False
    delivery_count: int = 0
    credit: int = 0
    limit: int = 0
    "The highest delivery-count that credit has admitted since the last look: they resume at once."
    drain: bool = False
    pieces: list[bytes] | None = None
    "Payloads of the unfinished delivery, in either direction; None if there is none."
    delivery_id: int = -1
    message: Message | None = None
    number: int = -1
    within: bytes | None = None
    "Transaction id of the unfinished delivery."
    coordinates: bool = False
    due: dict[bytes, Left] = field(default_factory=dict)
    "Deliveries of an earlier link that the broker has to resume, by their tags, in their order."
    is_stored: bool = False
    "True if the broker has answered that the unsettled deliveries outlive it."
    only_resumes: bool = False
    "True if an unsettled map was incomplete: nothing new until the next attach (2.7.3)."

    @property
    def default_outcome(self) -> Outcome | None:
        source = self.attach.source
        return None if source is None else source.default_outcome

    @property
    def sends_settled(self) -> bool:
        return self.attach.snd_settle_mode == SND_SETTLED

    @property
    def settles_second(self) -> bool:
        return self.attach.rcv_settle_mode == RCV_SECOND

    def has_room(self) -> bool:
        """Return whether the broker may send on this link now."""
        if self.incoming or self.credit <= 0 or self.pieces is not None:
            return False
        if self.only_resumes and not self.has_due():
            return False
        return self.state is State.ATTACHED and self.session.may_send()

    def has_due(self) -> bool:
        """Return whether the broker has to resume a delivery before it sends new ones."""
        return not all(left.waits for left in self.due.values())

    def took_flow(self, flow: Flow) -> None:
        if self.incoming or self.state is not State.ATTACHED:
            return
        if flow.link_credit >= 0:
            ahead = max(0, flow.delivery_count) + flow.link_credit - self.delivery_count
            self.credit = max(0, int(ahead))
            self.limit = max(self.limit, self.delivery_count + self.credit)
        self.drain = flow.drain

    def told_flow(self, flow: Flow) -> None:
        """Check the broker's flow for this link: it ends a drain or reports nothing new."""
        if self.incoming:
            if 0 < (int(flow.delivery_count) - self.delivery_count) & UINT < 0x8000_0000:
                raise Wrong(f"delivery-count {flow.delivery_count} before {self.delivery_count}")
        elif self._is_drained(flow):
            if self.credit > 0 and self.pieces is not None and self.state is State.ATTACHED:
                raise Wrong("drained in the middle of a delivery")
            self.delivery_count = int(flow.delivery_count)
            self.credit = 0
        elif flow.delivery_count > self.delivery_count:
            raise Wrong("credit was given up without a drain")

    def _is_drained(self, flow: Flow) -> bool:
        """Return whether `flow` ends a drain: at once, if nothing new may come on this link."""
        at_once = self.only_resumes and flow.delivery_count == self.limit
        return flow.drain and (at_once or flow.delivery_count == self.delivery_count + self.credit)

    def end(self, ending: Ending, *, by_fault: bool = False) -> None:
        """End the link: suspend its unsettled deliveries, or give them the default-outcome.

        `by_fault`: the broker closes it. Its dynamic node is deleted if its lifetime ends with this
        ending.
        """
        if self.state is State.ENDED:
            return
        was_attached = self.state is State.ATTACHED
        self.state = State.ENDED
        world = self.session.world
        world.ended.add(self)
        key = self.key()
        if world.links.get(key) is self:
            del world.links[key]
        for awaited in self.session.awaited.values():
            awaited.is_owed = awaited.is_owed and awaited.link is not self
        terms = world.suspended.terms_of(self)
        if terms is not None and not by_fault and ending is not Ending.CLOSED:
            world.suspended.suspend(self, terms, ending)
        else:
            self._give_back()
        if self.pieces is not None and self.within is not None:
            self.session.owner.transactions.doom(self.within)
        self.within = None
        if was_attached and self.coordinates:
            self.session.owner.transactions.coordinator_ended(self)
        if was_attached:
            self._leave(ending)
            if self.creation is not None:
                self._let_go(self.creation, ending)

    def _give_back(self) -> None:
        """Give the unsettled deliveries the default-outcome."""
        unsettled = self.session.unsettled
        for delivery_id, (link, entry) in list(unsettled.items()):
            if link is self:
                del unsettled[delivery_id]
                if entry is not None and not entry.node.is_deleted:
                    model = self.session.world.model
                    model.settle(entry, self.default_outcome, explicit=False)
        for entry in [left.entry for left in self.due.values()]:
            if entry is not None:
                self.session.world.suspended.give_up(entry, self.default_outcome)
        self.due = {}

    def _leave(self, ending: Ending) -> None:
        closed = ending is Ending.CLOSED
        subscriptions = self.session.world.subscriptions
        overreached = False
        if self.subscription is not None:
            overreached = subscriptions.leave(self.subscription, self, ending)
        elif self.looks_up is not None and closed:
            overreached = subscriptions.unsubscribe(self.looks_up)
        self.has_overreached = overreached if closed else None

    def _let_go(self, creation: Creation, ending: Ending) -> None:
        if creation.ends_at(ending):
            self.session.world.delete(creation.node)
        elif not creation.node.is_deleted:
            creation.session = self.session
            self.session.suspended[self.attach.name, self.incoming] = creation

    def key(self) -> tuple[str, str, bool]:
        return (self.session.container_id, self.attach.name, self.incoming)

    # -- attach

    def place(self, owner: object) -> None:
        """Attach as the broker does: find the node and steal the link name, or be refused."""
        world = self.session.world
        held = world.links.get(self.key())
        if self.attach.role is RECEIVER:
            self.only_resumes = self.attach.incomplete_unsettled
            self.facts = facts_of(self.attach)
            if held is not None and held.facts != self.facts:
                self.refuse()
                return
            if self.attach.source is None:
                self._look_up(held)
                return
        terminus = self.attach.source if self.attach.role is RECEIVER else self.attach.target
        if isinstance(terminus, Coordinator):
            self.coordinates = True
            self._steal(held)
            return
        assert isinstance(terminus, Source | Target)
        kind = terminus.capabilities[0] if terminus.capabilities else "queue"
        node: Node | None = None
        made: Creation | None = None
        if terminus.dynamic:
            rule = world.model.rules.get("$tmp", world.default_rule)
            node = Node(kind, "", rule, owner)
            made = Creation(node, LIVES_UNTIL[terminus.expiry_policy] or Ending.CONNECTION)
        elif terminus.address is None:
            self.is_relay = True
        else:
            node = world.find(kind, terminus.address)
            hers = node is not None and (self.incoming or node.owner in (None, owner))
            if not hers:
                self.refuse()
                return
        if self._takes_place(node, made, held):
            node = node if self.creation is None else self.creation.node
            self._settle_in(node, terminus)

    def _look_up(self, held: Link | None) -> None:
        identity = self.facts.identity(self.attach.name, self.session.container_id)
        assert identity is not None
        world = self.session.world
        if held is not None or identity not in world.subscriptions.named:
            self.refuse()
            return
        self.looks_up = identity
        world.links[self.key()] = self
        world.model.stats["links_attached"] += 1

    def _takes_place(self, node: Node | None, made: Creation | None, held: Link | None) -> bool:
        """Join the subscription, if any, and take the link name; return False if refused."""
        world = self.session.world
        if node is not None and node.kind == "topic" and not self.incoming and made is None:
            wish = wish_of(self.attach, self.session.container_id)
            self.subscription = world.subscriptions.meant(self, node, wish)
            if self.subscription is None:
                self.refuse()
                return False
            world.subscriptions.join(self.subscription, self)
        if not self._steal(held, node):
            self.subscription = None
            return False
        self.creation = self._claimed(node, made)
        return True

    def _steal(self, held: Link | None, node: Node | None = None) -> bool:
        """Take the link name from `held`; return False, refused, if `node` was deleted by that."""
        world = self.session.world
        if held is not None:
            world.model.stats["links_stolen"] += 1
            held.end(Ending.DETACHED)
            if node is not None and node.is_deleted:
                self.refuse()
                return False
        world.links[self.key()] = self
        world.model.stats["links_attached"] += 1
        return True

    def _claimed(self, node: Node | None, made: Creation | None) -> Creation | None:
        """Return the creation of an earlier link of this name, if it fits; else `made`."""
        earlier = self.session.suspended.pop((self.attach.name, self.incoming), None)
        if earlier is None or earlier.node.is_deleted:
            return made
        is_alike = made is not None and made.node.kind == earlier.node.kind
        if is_alike or (made is None and node is earlier.node):
            return earlier
        self.session.world.delete(earlier.node)
        return made

    def refuse(self) -> None:
        self.state = State.REFUSED
        self.session.world.model.stats["links_refused"] += 1

    def _settle_in(self, node: Node | None, terminus: Source | Target) -> None:
        suspended = self.session.world.suspended
        wish = wish_of(self.attach, self.session.container_id)
        if node is not None and node.kind == "topic" and not self.incoming:
            subscriptions = self.session.world.subscriptions
            if self.subscription is None:
                self.subscription = subscriptions.private(self, node, wish)
                subscriptions.join(self.subscription, self)
            subscriptions.give_up(self)
            self.node = self.subscription.queue
            suspended.claim(self.key(), self)
            if not self.subscription.is_shared:
                suspended.end_all_of(self.node)
            return
        self.node = node
        self.wish = wish
        self.browses = isinstance(terminus, Source) and terminus.distribution_mode == COPY
        suspended.claim(self.key(), self)


@dataclass(eq=False, kw_only=True)
class Session:
    """A session at the edge, as the broker knows it.

    `window` is the number of transfers that the broker may still send.
    """

    world: World
    owner: Edge
    "The connection of the session."
    container_id: str
    window: int
    is_blocked: bool = False
    is_over: bool = False
    transfers_in: int = 0
    transfers_out: int = 0
    next_delivery_out: int = 0
    links: dict[int, Link] = field(default_factory=dict)
    suspended: dict[tuple[str, bool], Creation] = field(default_factory=dict)
    """Dynamic nodes of detached links of the connection, by link name and direction.

    A link that attaches again takes its node back.
    """
    unsettled: dict[int, tuple[Link, Entry | None]] = field(default_factory=dict)
    tags: dict[int, bytes] = field(default_factory=dict)
    "The tags of all deliveries, by delivery-id."
    awaited: dict[int, Awaited] = field(default_factory=dict)
    echoes: list[tuple[int, int]] = field(default_factory=list)
    "Ranges of delivery-ids that the broker has to settle, as the receiver gave an outcome only."

    def may_send(self) -> bool:
        return self.window > 0 and not self.is_blocked and not self.is_over

    def took_flow(self, flow: Flow) -> None:
        self.window = max(0, int(flow.next_incoming_id + flow.incoming_window) - self.transfers_out)

    def told_flow(self, flow: Flow) -> None:
        if 0 < (int(flow.next_incoming_id) - self.transfers_in) & UINT < 0x8000_0000:
            raise Wrong(f"next-incoming-id {flow.next_incoming_id} of {self.transfers_in}")
        if flow.handle >= 0:
            self.links[int(flow.handle)].told_flow(flow)

    def end(self, ending: Ending = Ending.SESSION) -> None:
        if not self.is_over:
            self.is_over = True
            for _, link in sorted(self.links.items()):
                link.end(ending)
            for key, creation in list(self.suspended.items()):
                is_here = ending is Ending.SESSION and creation.session is self
                if is_here and creation.ends_at(ending):
                    del self.suspended[key]
                    self.world.delete(creation.node)
            if ending is Ending.SESSION:
                self.world.suspended.session_ended(self)
                self.world.subscriptions.session_ended(self)
            for awaited in self.awaited.values():
                awaited.is_owed = False

    def took_disposition(self, told: Disposition) -> None:
        """Apply a receiver's disposition to its unsettled deliveries."""
        last = told.first if told.last is None else told.last
        if not told.settled and (told.state is None or isinstance(told.state, Received)):
            return
        taken = [number for number in self.unsettled if told.first <= number <= last]
        if isinstance(told.state, TransactionalState) and not taken:
            self.owner.transactions.doom(told.state.txn_id)
        late = {link for link, _ in self.unsettled.values() if link.state is State.ENDED}
        popped = {number: self.unsettled.pop(number) for number in taken}
        for number, (link, entry) in popped.items():
            if entry is None:
                continue
            if self.is_over:  # by a fault of a delivery before this one
                self.unsettled[number] = (link, entry)
                continue
            if isinstance(told.state, TransactionalState):
                self.owner.transactions.retire(told.state, entry, link, is_late=link in late)
                continue
            is_silent = told.state is None or isinstance(told.state, Received)
            state = link.default_outcome if is_silent else told.state
            if isinstance(told.state, Modified) and told.state.message_annotations is not None:
                self.world.note(entry)
            self.world.model.settle(entry, state, explicit=not is_silent)
        if taken and not told.settled:
            self.echoes.append((told.first, last))

    def told_detach(self, link: Link, error: str | None) -> None:
        """Check the broker's detach of `link`, and expect no more outcomes for its deliveries."""
        if link.has_overreached is not None and link.has_overreached is (error is None):
            raise Wrong(f"link {link.attach.name} is closed with {error}")
        for number, awaited in list(self.awaited.items()):
            if awaited.link is link:
                del self.awaited[number]

    def told_disposition(self, told: Disposition) -> None:
        """Check a disposition of the broker.

        It has outcomes for a sender, or settles deliveries after a receiver's outcome.
        """
        last = told.first if told.last is None else told.last
        if told.role is not RECEIVER:
            if not told.settled or (told.first, last) not in self.echoes:
                raise Wrong(f"deliveries {told.first} to {last} are settled for no reason")
            self.echoes.remove((told.first, last))
            return
        for number in _ids(told.first, last):
            awaited = self.awaited.pop(number, None)
            if awaited is None:
                raise Wrong(f"an outcome for delivery {number}, which awaits none")
            within = told.state if isinstance(told.state, TransactionalState) else None
            state = told.state if within is None else within.outcome
            if not isinstance(state, awaited.outcome):
                raise Wrong(f"delivery {number} is {state}, not {awaited.outcome}")
            if awaited.within != (None if within is None else within.txn_id):
                raise Wrong(f"the outcome of delivery {number} is of another transaction")
            if told.settled is awaited.link.settles_second:
                raise Wrong(f"the outcome of delivery {number} settles at the wrong end")
            self._promised(awaited, state)

    def _promised(self, awaited: Awaited, state: object) -> None:
        if isinstance(state, Declared) and awaited.link.state is State.ATTACHED:
            assert awaited.transaction is not None
            self.owner.transactions.name(awaited.transaction, state.txn_id)
        elif awaited.transaction is not None:
            for node, message in awaited.transaction.posted:
                self.world.promised(node, message)
            if awaited.outcome is Accepted:
                self.world.confirmed(awaited.transaction.retired)
        if awaited.message is not None and awaited.outcome is Accepted and not awaited.within:
            self.world.accepted(awaited.link, awaited.message)


def _ids(first: int, last: int) -> Iterator[int]:
    for ahead in range(((last - first) & UINT) + 1):
        yield (first + ahead) & UINT
