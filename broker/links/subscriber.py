"""Attaches a consumer to a subscription, and steals the older link of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.amqp.outcomes import Outcome
from broker.amqp.terminus import CONFIGURATION, MOVE, UNSETTLED_STATE, Source
from broker.links.access import (
    END,
    demand_consumable,
    demand_link_name,
    demand_subscribing,
    demand_subscription,
)
from broker.links.attach import GLOBAL, OUTCOMES, SHARED, ConsumeRequest
from broker.links.dynamic import DynamicTerminus, dynamic_properties
from broker.routing.addresses.address import Address
from broker.routing.entries.participants import Consumer
from broker.routing.errors import HeldExclusively, NoSuchNode
from broker.routing.queues.node import TOPIC, Node
from broker.routing.topics.subscription import (
    PRIVATE_ROW,
    QUEUE_TRAITS,
    AttachVerdict,
    Subscription,
    SubscriptionExpiry,
    SubscriptionSpec,
    row_of,
)

if TYPE_CHECKING:
    from broker.amqp.outgoing_link import OutgoingLink
    from broker.links.container import LinkRegistration
    from broker.links.peer import Peer

SHARED_SUBS: Final = "SHARED-SUBS"
SHARED_SUB: Final = "SHARED-SUB"
OFFERED_BY_SUBSCRIPTIONS: Final = (SHARED_SUBS, SHARED_SUB)
"""Both names of the capability that every attach answer of a subscription offers (SUB-20)."""


def subscribe(
    peer: Peer,
    link: OutgoingLink,
    consumer: Consumer,
    *,
    request: ConsumeRequest,
    address: Address | None,
    made: DynamicTerminus | None,
) -> tuple[Subscription, DynamicTerminus | None]:
    """Make `consumer` join the subscription that the attach means; RoutingError to refuse.

    `made` is the topic created for the link. Return the subscription, and the dynamic
    terminus, if any, that the link goes on with: `made`, or that of an earlier link.
    """
    container = peer.container
    batch = container.journal.batch
    subscriptions = container.router.subscriptions
    joined: Subscription | None = None
    topic: Node | None = None
    if made is None:
        assert address is not None
        joined = _meant(peer, link.name, address, request=request)
        subscriptions.join(joined, consumer)
        topics = list(joined.queue.topics)
        topic = topics[0] if len(topics) == 1 else None
    # after the join, or the subscription might end with the stolen link (SUB-37)
    container.steal(peer.container_id, link, incoming=False)
    if joined is not None and joined.is_over:
        raise NoSuchNode("the topic has ended with the link that was stolen")
    goes_on = peer.dynamic.claim(link, topic, batch, made=made, incoming=False)
    if joined is None:
        assert goes_on is not None
        joined = _own(peer, link.name, request, made=goes_on)
        subscriptions.join(joined, consumer)
    if not container.journal.is_durable(joined.begun_on):
        peer.withhold()
    subscriptions.give_up((peer.container_id, link.name), batch)
    container.hold(
        peer.container_id, link, incoming=False, traits=request.traits, subscription=joined
    )
    return joined, goes_on


def check_name(holder: LinkRegistration | None) -> None:
    """Raise HeldExclusively if a queue's link may not steal the name (SUB-26, SUB-40)."""
    if holder is not None and QUEUE_TRAITS.differ_from(holder.traits):
        raise HeldExclusively(AttachVerdict.LINK_MEANS_ANOTHER.value)


def _spec(peer: Peer, address: Address, request: ConsumeRequest) -> SubscriptionSpec:
    filters = request.filters
    return SubscriptionSpec(address, filters.of(peer.container_id), filters.stated)


def _meant(
    peer: Peer, link_name: str, address: Address, *, request: ConsumeRequest
) -> Subscription:
    """Return the existing subscription, or that of the stolen link, or one kept, or a new one."""
    router = peer.container.router
    subscriptions = router.subscriptions
    batch = peer.container.journal.batch
    row = row_of(request.traits, link_name=link_name, container_id=peer.container_id)
    holder = peer.container.holder(peer.container_id, link_name)
    held = None if holder is None else holder.subscription
    said = None if holder is None else holder.traits
    spec = _spec(peer, address, request)
    there = subscriptions.find(row)
    demand_subscribing(peer, address, row, there=there, creates=request.creates)
    demand_link_name(peer, link_name)
    verdict = subscriptions.check(request.traits, row, spec, link=said, held=held)
    replaced = there
    if verdict is AttachVerdict.RESUME:
        assert there is not None
    elif there is not None:
        # it ends with its backlog, since the topic or the selector is another (SUB-21)
        demand_subscription(peer, END, there)
        there = None
    elif row.identity is None and held is not None and held.spec.is_like(spec):
        there = held
    elif row.identity is None:
        there = _kept(peer, link_name, spec)
    if there is not None:
        for topic in there.queue.topics:
            demand_consumable(peer, topic)
        return there
    if row.identity is not None and row.identity[2]:
        peer.container.user_limits.check_subscription(peer, replaced=replaced)
    found = router.topic_of(
        address, batch, owner=peer.id, create=request.creates, creator=peer.identity.user
    )
    if found is not None:
        demand_consumable(peer, found)
    return subscriptions.begin(
        row, spec, request.terms, topic=found, batch=batch, owner=peer.identity.user
    )


def _own(
    peer: Peer, link_name: str, request: ConsumeRequest, *, made: DynamicTerminus
) -> Subscription:
    """Return the subscription of the link that created a topic; it lasts as long as `made`."""
    spec = _spec(peer, Address(made.node.address, TOPIC), request)
    kept = _kept(peer, link_name, spec)
    if kept is not None:
        return kept
    lasting = made.expiry.terms
    terms = SubscriptionExpiry(expiry_policy=lasting.policy, timeout_s=lasting.timeout_s)
    router, batch = peer.container.router, peer.container.journal.batch
    topic = router.topic_of(spec.address, batch)
    return router.subscriptions.begin(
        PRIVATE_ROW, spec, terms, topic=topic, batch=batch, owner=peer.identity.user
    )


def _kept(peer: Peer, link_name: str, spec: SubscriptionSpec) -> Subscription | None:
    """Return the subscription kept for that link name, if it has the same `spec`; else None."""
    kept = peer.container.router.subscriptions.kept.find((peer.container_id, link_name))
    return kept if kept is not None and kept.spec.is_like(spec) else None


def source_of(
    subscription: Subscription,
    *,
    address: str = "",
    kind: str = TOPIC,
    made: DynamicTerminus | None = None,
    default_outcome: Outcome | None = None,
    is_stored: bool = False,
) -> Source:
    """Return the actual source; its lifetime is what the first subscriber asked for, not this one.

    Its durability is what outlives a restart (core 3.5.5): of a durable subscription its existence
    and messages, and its unsettled deliveries too if `is_stored`.

    `address` is the client's own spelling of the topic if that has a prefix, else empty. `kind` is
    the capability by which the client called the topic, `made` the dynamic topic that it requested.
    """
    capabilities = [kind]
    if subscription.is_shared:
        capabilities.append(SHARED)
    if subscription.is_global:
        capabilities.append(GLOBAL)
    terms = subscription.terms
    return Source(
        address=address or subscription.spec.address.text,
        durable=UNSETTLED_STATE if is_stored else min(terms.durability, CONFIGURATION),
        expiry_policy=terms.expiry_policy if made is None else made.expiry.terms.policy,
        timeout=terms.timeout_s if made is None else made.expiry.terms.timeout_s,
        dynamic=made is not None,
        dynamic_node_properties=None if made is None else dynamic_properties(made.policy),
        distribution_mode=MOVE,
        filter=subscription.spec.stated,
        default_outcome=default_outcome,
        outcomes=list(OUTCOMES),
        capabilities=capabilities,
    )
