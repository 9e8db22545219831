"""A link that looks up a durable subscription by name, and may end it (SUB-09 to SUB-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.amqp.delivery import Delivery
from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.events import OutgoingOwner
from broker.amqp.outcomes import DeliveryState, TransactionalState
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.performatives import Attach
from broker.amqp.terminus import Target
from broker.links.access import END, USE, demand_ownership, subscription_resource
from broker.links.attach import lookup_traits
from broker.links.refusal import as_link_fault
from broker.links.subscriber import OFFERED_BY_SUBSCRIPTIONS, source_of
from broker.routing.addresses.identity import SubscriptionIdentity
from broker.routing.errors import HeldExclusively, NotPermitted
from broker.routing.topics.subscription import row_of

if TYPE_CHECKING:
    from broker.links.container import Container
    from broker.links.peer import Peer


@final
class Lookup(OutgoingOwner):
    """The owner of a link that was attached without a source: it creates and delivers nothing."""

    def __init__(self, peer: Peer, link: OutgoingLink) -> None:
        self._peer: Final[Peer] = peer
        self._container: Final[Container] = peer.container
        self._container_id: Final = peer.container_id
        self._link: Final = link
        self._identity: SubscriptionIdentity | None = None

    def attach(self, attach: Attach) -> None:
        """Answer with the subscription's source.

        Raise LinkFault for an attach with neither terminus, RoutingError if there is no such
        subscription, or if the name is in use.
        """
        if attach.target is None:
            raise LinkFault(INVALID_FIELD, "an attach has a source or a target (2.6.3)")
        container = self._container
        container_id = self._container_id
        traits = lookup_traits(attach)
        row = row_of(traits, link_name=attach.name, container_id=container_id)
        if row.identity is not None:
            self._peer.demand(USE, subscription_resource(row.identity))
        subscriptions = container.router.subscriptions
        there = subscriptions.find(row)
        if there is not None:
            demand_ownership(self._peer, there)
        holder = container.holder(container_id, attach.name)
        subscriptions.check(
            traits,
            row,
            None,
            link=None if holder is None else holder.traits,
            held=None if holder is None else holder.subscription,
        )
        assert there is not None  # `check` has raised otherwise
        if not container.journal.is_durable(there.begun_on):
            self._peer.withhold()
        self._identity = row.identity
        container.hold(container_id, self._link, incoming=False, traits=traits)
        self._link.accept(
            self,
            source=source_of(there),
            target=attach.target if isinstance(attach.target, Target) else None,
            offered_capabilities=list(OFFERED_BY_SUBSCRIPTIONS),
        )

    def credit_changed(self, drain: bool) -> None:
        if drain:
            self._link.drained()

    def accepted(self, deliveries: list[Delivery]) -> None:
        """Do nothing: this link has no deliveries."""

    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None:
        """Do nothing: this link has no deliveries."""

    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None:
        """Do nothing: this link has no deliveries."""

    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None:  # noqa: ARG002
        container = self._container
        container.forget_link(self._container_id, self._link, incoming=False)
        identity = self._identity
        if not closed or identity is None:
            return
        try:
            self._peer.demand(END, subscription_resource(identity))
            ended = container.router.subscriptions.unsubscribe(identity, container.journal.batch)
        except (HeldExclusively, NotPermitted) as refusal:
            self._link.detach_error = as_link_fault(refusal)
            return
        if not ended:  # another client has ended it, maybe not durably yet
            self._peer.withhold()
