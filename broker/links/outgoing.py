"""Outgoing messages: from a queue to a link within its credit, and outcomes back to the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.amqp.delivery import Delivery
from broker.amqp.errors import NOT_IMPLEMENTED, RESOURCE_DELETED, LinkFault
from broker.amqp.events import OutgoingOwner
from broker.amqp.outcomes import DeliveryState, Outcome, TransactionalState
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.performatives import Attach
from broker.amqp.terminus import (
    COPY,
    LINK_DETACH,
    MOVE,
    NOT_DURABLE,
    UNSETTLED_STATE,
    Source,
    Target,
)
from broker.amqp.unsettled_map import PeerStates, UnsettledStates, read_unsettled_map
from broker.links import access
from broker.links.acquisition import Acquisitions
from broker.links.attach import (
    KINDS,
    OUTCOMES,
    ConsumeRequest,
    delete_policy,
    in_force,
    is_jms_temporary,
)
from broker.links.credited_consumer import CreditedConsumer
from broker.links.dynamic import DynamicTerminus, dynamic_properties, dynamic_terms
from broker.links.ending import ending_of
from broker.links.kept_source import KeptSource, claim_terminus
from broker.links.lasting_terms import (
    granted_terms,
    outlives_broker,
    outlives_link,
    subscription_terms,
)
from broker.links.outcome import abandonment, cause_of, dispose
from broker.links.precedence import precedence_of
from broker.links.refusal import as_link_fault
from broker.links.retirement import Retirements
from broker.links.slice_reader import SliceReader, read_slice
from broker.links.subscriber import OFFERED_BY_SUBSCRIPTIONS, check_name, source_of, subscribe
from broker.routing.addresses.address import MANAGEMENT, Address
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import HeldExclusively
from broker.routing.queues.node import QUEUE, TOPIC, Consumable, Node
from broker.routing.queues.queue import Queue
from broker.routing.topics.lifetime import ExpiryPolicy
from broker.routing.topics.subscription import ConsumerDetach, Subscription

if TYPE_CHECKING:
    from broker.links.peer import Peer


@final
class ConsumerEndpoint(OutgoingOwner):
    """The owner of an outgoing link: it passes credit and outcomes to the queue.

    A browser gets copies and acquires nothing.
    """

    def __init__(self, peer: Peer, link: OutgoingLink) -> None:
        self._peer: Final = peer
        self._container: Final = peer.container
        self._link: Final = link
        self._feed: Final = CreditedConsumer(peer, link)
        self._default_outcome: Outcome | None = None
        self._retirements: Retirements | None = None
        self._node: Consumable | None = None
        self._queue: Queue | None = None
        self._dynamic_terminus: DynamicTerminus | None = None
        self.subscription: Subscription | None = None
        self._kept: KeptSource | None = None
        self._slice: SliceReader | None = None
        # the consumer holds as much as it may, and gets more once it settles
        self.awaits_settlement = False

    def attach(self, attach: Attach, request: ConsumeRequest) -> None:
        """Find or create the node, and answer; raise LinkFault or RoutingError to refuse."""
        asked = attach.source
        assert asked is not None
        self._default_outcome = asked.default_outcome
        theirs = read_unsettled_map(attach.unsettled)
        precedence = precedence_of(attach.properties)
        self._feed.priority = precedence.priority
        self._feed.exclusive = precedence.exclusive
        target = attach.target if isinstance(attach.target, Target) else None
        if request.filters.lease_slice is not None:
            self._slice = read_slice(self._peer, request, request.filters.lease_slice)
            self._accept_slice(asked, request, target)
            return
        text = request.address
        address = None if text is None else self._container.router.parse(text, request.kind)
        kind = self._kind(request, address)
        if kind == QUEUE or request.dynamic:
            check_name(self._container.holder(self._peer.container_id, self._link.name))
        made: DynamicTerminus | None = None
        if request.dynamic:
            made = self._make(asked, kind)
        offered: list[str] = []
        if kind == TOPIC:
            source = self._subscribe(asked, request, address, made=made, has_map=theirs is not None)
            offered = list(OFFERED_BY_SUBSCRIPTIONS)
        else:
            reply_to = (target.address or "") if target is not None else ""
            node = self._find(request, address, reply_to) if made is None else made.node
            given = "" if address is None else address.given
            source = self._consume(
                asked, node, made, request=request, given=given, has_map=theirs is not None
            )
        if attach.incomplete_unsettled and self._kept is None and self._queue is not None:
            # nothing new is sent to a peer with more unsettled deliveries than its map has (2.7.3)
            self._keep(self._queue, ExpiryPolicy(LINK_DETACH), asked, has_map=False)
        unsettled = self._resume(theirs, incomplete=attach.incomplete_unsettled)
        self._feed.owner = self
        self._link.accept(
            self, source=source, target=target, offered_capabilities=offered, unsettled=unsettled
        )
        if self._kept is not None:
            self._kept.attached()

    def _make(self, asked: Source, kind: str) -> DynamicTerminus:
        """Create the dynamic node that the attach asks for. Raise NotPermitted or LimitReached."""
        access.demand_temporary(self._peer, kind)
        if kind == TOPIC:  # before the topic is made, which a refused attach would leave
            access.demand_link_name(self._peer, self._link.name)
        return self._peer.dynamic.make(
            kind,
            delete_policy(asked.dynamic_node_properties),
            dynamic_terms(asked.expiry_policy, asked.timeout),
            exclusive=is_jms_temporary(asked.capabilities),
        )

    def _resume(self, theirs: PeerStates, *, incomplete: bool) -> UnsettledStates | None:
        """Go on with the deliveries that an earlier link of the name has left unsettled, if any.

        `theirs` is the peer's map, None without one, which may be `incomplete`. Return them for
        the broker's attach, None if there is no state of the terminus.
        """
        kept = self._kept
        # a link that keeps nothing goes on with nothing: the former deliveries return
        queue = self._queue if kept is not None and outlives_link(kept.terms) else None
        former = claim_terminus(self._peer, self._link.name, incoming=False, queue=queue)
        if self.subscription is not None and not self.subscription.is_shared:
            # one consumer at a time: this one begins where the former has left off
            termini = self._container.router.termini
            termini.end_those_of(self.subscription.queue, self._container.journal.batch)
        return None if kept is None else kept.resume(former, theirs, incomplete=incomplete)

    def _keep(self, queue: Queue, terms: ExpiryPolicy, asked: Source, *, has_map: bool) -> None:
        """Let unsettled deliveries outlive the link under these terms, if they outlive any."""
        if outlives_link(terms):
            self._feed.keep()
        names = (self._peer.container_id, self._link.name)
        lasts = outlives_broker(terms, asked.durable, has_map=has_map, names=names)
        self._kept = KeptSource(
            self._peer,
            self._link,
            self,
            feed=self._feed,
            queue=queue,
            terms=terms,
            default_outcome=self._default_outcome,
            is_stored=lasts and queue.persistence.is_stored,
        )

    def _is_stored(self) -> bool:
        """Return whether unsettled deliveries outlive the broker."""
        return self._kept is not None and self._kept.is_stored

    def _accept_slice(self, asked: Source, request: ConsumeRequest, target: Target | None) -> None:
        """Answer an attach that reads a slice of a lease, instead of a queue."""
        check_name(self._container.holder(self._peer.container_id, self._link.name))
        self._container.claim_link(self._peer.container_id, self._link, None, incoming=False)
        self._feed.owner = self
        self._feed.tells_place = True
        source = self._source(asked, request, address=request.address, browses=True)
        self._link.accept(self, source=source, target=target)

    def _source(
        self, asked: Source, request: ConsumeRequest, *, address: str | None, browses: bool
    ) -> Source:
        """Return the actual source, for the answer."""
        made = self._dynamic_terminus
        terms = ExpiryPolicy(LINK_DETACH)
        if made is not None:
            terms = made.expiry.terms
        elif self._kept is not None:
            terms = self._kept.terms
        return Source(
            address=address,
            durable=UNSETTLED_STATE if self._is_stored() else NOT_DURABLE,
            expiry_policy=terms.policy,
            timeout=terms.timeout_s,
            dynamic=asked.dynamic,
            dynamic_node_properties=(
                dynamic_properties(made.policy) if made is not None and asked.dynamic else None
            ),
            distribution_mode=COPY if browses else MOVE,
            filter=request.filters.stated,
            default_outcome=asked.default_outcome,
            outcomes=list(OUTCOMES),
            capabilities=in_force(asked.capabilities),
        )

    def _kind(self, request: ConsumeRequest, address: Address | None) -> str:
        if request.filters.part is not None:
            return QUEUE
        if address is None:
            return request.kind or QUEUE
        if address.text == MANAGEMENT or self._container.service_at(address) is not None:
            return QUEUE
        return access.kind_to_receive(self._peer, address, copies=request.copies)

    def _subscribe(
        self,
        asked: Source,
        request: ConsumeRequest,
        address: Address | None,
        *,
        made: DynamicTerminus | None,
        has_map: bool,
    ) -> Source:
        subscription, self._dynamic_terminus = subscribe(
            self._peer, self._link, self._feed, request=request, address=address, made=made
        )
        self.subscription = subscription
        self._queue = subscription.queue
        if not subscription.is_shared and self._dynamic_terminus is None:
            lasting = subscription_terms(
                subscription.terms.expiry_policy,
                subscription.terms.timeout_s,
                most_s=self._container.limits.resume_max_s,
                has_map=has_map,
            )
            if lasting is not None and not self._link.sends_settled:
                self._keep(subscription.queue, lasting, asked, has_map=has_map)
        named = [capability for capability in asked.capabilities if capability in KINDS]
        return source_of(
            subscription,
            is_stored=self._is_stored(),
            address="" if address is None else address.given,
            kind=named[0] if named else TOPIC,
            made=self._dynamic_terminus if asked.dynamic else None,
            default_outcome=asked.default_outcome,
        )

    def _consume(
        self,
        asked: Source,
        node: Node,
        made: DynamicTerminus | None,
        *,
        request: ConsumeRequest,
        given: str,
        has_map: bool,
    ) -> Source:
        self._feed.filter = request.filters.of(self._peer.container_id)
        claimed = None if self._is_of_subscription(node) else node
        self._container.claim_link(self._peer.container_id, self._link, claimed, incoming=False)
        batch = self._container.journal.batch
        made = self._peer.dynamic.claim(self._link, node, batch, made=made, incoming=False)
        if made is not None:
            node = made.node
        assert isinstance(node, Consumable)
        self._dynamic_terminus = made
        self._node = node
        browses = request.copies and isinstance(node, Queue)
        self._feed.tells_place = request.filters.part is not None
        if browses and isinstance(node, Queue):
            node.attach_browser(self._feed)
            self._queue = node
        else:
            self._queue = node.attach_consumer(self._feed)
            most_s = self._container.limits.resume_max_s
            terms = granted_terms(asked.expiry_policy, asked.timeout, most_s=most_s)
            is_plain = made is None and isinstance(node, Queue) and not node.is_subscription
            if is_plain and outlives_link(terms) and not self._link.sends_settled:
                self._keep(self._queue, terms, asked, has_map=has_map)
        address = request.address if claimed is None else given or node.address
        return self._source(asked, request, address=address, browses=browses)

    def _is_of_subscription(self, node: Node) -> bool:
        return isinstance(node, Queue) and node.is_subscription

    def _find(self, request: ConsumeRequest, address: Address | None, reply_to: str) -> Node:
        """Return the node to receive from: an existing one, or one created now.

        `reply_to` is the target's address, which names the link in requests to the broker.
        """
        assert address is not None
        service = self._container.service_node(self._peer, address, reply_to)
        if service is not None:
            return service
        if request.filters.part is not None:
            found = access.find_identified(self._peer, access.BROWSE, request.address or "")
            if found is not None:
                return found.queue
        address = address.of_kind(QUEUE)
        access.demand_receiving(self._peer, address, copies=request.copies, creates=request.creates)
        node = self._peer.resolve(address, create=request.creates)
        access.demand_consumable(self._peer, node)
        return node

    def node_deleted(self) -> None:
        """Detach the link: its entries were deleted with the node, so none is to be returned."""
        self._node = None
        self._queue = None
        self.subscription = None
        self._link.detach(LinkFault(RESOURCE_DELETED, "the node was deleted"))

    def address(self) -> str:
        """Return the address that this link receives from, empty without a node."""
        if self.subscription is not None:
            return self.subscription.spec.address.text
        return "" if self._node is None else self._node.address

    # -- from the link

    def credit_changed(self, drain: bool) -> None:
        queue = self._queue
        if self._kept is not None and not self._kept.go_on():
            return
        if queue is not None:
            queue.consumer_ready(self._feed, drain=drain)
        elif self._slice is not None:
            self._slice.show(self._feed, drain=drain)

    def go_on(self) -> None:
        """Let the queue deliver again, within what the consumer may hold."""
        self.awaits_settlement = False
        self._container.router.memory.consumers.pop(self._feed, None)
        if self._link.credit > 0:
            self.credit_changed(self._link.drain)

    def drop(self, delivery: QueueEntry) -> None:
        """Take `delivery`, whose message is damaged, out of its transactions, if any."""
        if self._retirements is not None:
            self._retirements.drop(delivery)

    def accepted(self, deliveries: list[Delivery]) -> None:
        batch = self._container.journal.batch
        for delivery in deliveries:
            if isinstance(delivery, QueueEntry):  # and not a browser's copy
                if self._retirements is not None and not self._retirements.accepts(delivery):
                    continue
                delivery.queue.accept(delivery, batch)
        if self.awaits_settlement:
            self.go_on()

    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None:
        if self.awaits_settlement:
            self.go_on()
        if not isinstance(delivery, QueueEntry):
            return  # a browser's copy
        if self._retirements is not None and self._retirements.settles(delivery, state):
            return
        batch = self._container.journal.batch
        fault = dispose(delivery, state, batch, default=self._default_outcome)
        if fault is not None:
            self._link.detach(fault)

    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None:
        if self.awaits_settlement:
            self.go_on()
        if not isinstance(delivery, QueueEntry):
            if not settled:  # a browser's copy: nothing depends on it
                self._link.session.unsettled_out.take(delivery.delivery_id)
                self._link.settle(delivery.delivery_id, state)
            return
        try:
            self._all_retirements().retire(delivery, state, settled=settled)
        except LinkFault as fault:
            self._link.detach(fault)

    def _all_retirements(self) -> Retirements:
        if self._retirements is None:
            self._retirements = Retirements(self._peer, self._link, self._default_outcome)
        return self._retirements

    def acquire_within(self, txn_id: bytes | None) -> None:
        if txn_id is not None and self._queue is None:
            raise LinkFault(NOT_IMPLEMENTED, "a slice of a lease is part of no transaction")
        if txn_id is not None or self._retirements is not None:
            self._all_retirements().acquire_within(txn_id, self)

    def acquires(self, within: Acquisitions | None) -> None:
        """Send messages as acquired `within` a transaction from now on, None for none."""
        self._feed.acquire_within(within)

    def _return(self, entry: QueueEntry, wanted: Disposal, cause: Cause) -> None:
        entry.sent_to = None
        entry.queue.dispose(entry, wanted, self._container.journal.batch, cause=cause)

    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None:
        self._container.forget_link(self._peer.container_id, self._link, incoming=False)
        self._feed.owner = None
        self._container.router.memory.consumers.pop(self._feed, None)
        if self._kept is not None:
            unsettled = self._kept.end(unsettled, self._retirements, closed=closed)
            self._kept = None
        elif self._retirements is not None:
            unsettled = self._retirements.without(unsettled)
        queue = self._queue
        self._queue = None
        if queue is None:
            for delivery in unsettled:
                if isinstance(delivery, QueueEntry):
                    self._container.router.memory.dropped(delivery.message)
            return
        wanted = abandonment(self._default_outcome)
        cause = cause_of(self._default_outcome)
        for delivery in unsettled:
            if isinstance(delivery, QueueEntry):
                self._return(delivery, wanted, cause)
        self._leave(queue, closed)

    def _leave_subscription(self, subscription: Subscription, closed: bool) -> None:
        link = self._link
        subscriptions = self._container.router.subscriptions
        batch = self._container.journal.batch
        closed = closed and access.authorize_end(self._peer, link, subscription)
        how = ConsumerDetach(
            ending_of(link, closed=closed),
            connection=self._peer.id,
            session=link.session.channel,
            key=(self._peer.container_id, link.name),
        )
        try:
            subscriptions.leave(subscription, self._feed, batch, how=how)
        except HeldExclusively as refusal:
            link.detach_error = as_link_fault(refusal)

    def _leave(self, queue: Queue, closed: bool) -> None:
        batch = self._container.journal.batch
        node = self._node
        subscription = self.subscription
        self._node = None
        self.subscription = None
        left: list[Node] = []
        if node is not None:
            left.append(node)
            node.detach_consumer(self._feed, queue, batch)
        elif subscription is not None:
            left.extend(queue.topics)
            self._leave_subscription(subscription, closed)
        made = self._dynamic_terminus
        if made is not None:
            self._peer.dynamic.link_ended(made, self._link, batch, closed=closed, incoming=False)
            return
        for each in left:
            each.note_use_ended()
