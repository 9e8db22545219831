"""Outcomes that come after the detach of their link, while its session goes on (core 2.6.13).

Delivery-ids are those of the session. So a receiver that has detached its link without closing it
may still settle the deliveries that its source has kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.amqp.delivery import Delivery
from broker.amqp.errors import UNKNOWN_ID, Fault, LinkFault
from broker.amqp.events import OutgoingOwner
from broker.amqp.outcomes import (
    RELEASED,
    DeliveryState,
    Outcome,
    Received,
    TransactionalState,
)
from broker.amqp.session import Session
from broker.links.credited_consumer import tag_of
from broker.links.outcome import abandonment, cause_of, disposal, dispose
from broker.links.retirement import retire_within
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import rolled_back
from broker.routing.termini.kept_deliveries import KeptDeliveries, KeptDelivery, SessionEnd

if TYPE_CHECKING:
    from broker.links.peer import Peer


@final
class LateOutcomes(OutgoingOwner, SessionEnd):
    """The owner, in its session, of the deliveries that `kept` has of a link that is detached."""

    def __init__(
        self,
        peer: Peer,
        session: Session,
        *,
        kept: KeptDeliveries,
        default_outcome: Outcome | None,
    ) -> None:
        self._peer: Final = peer
        self.session: Final = session
        self._kept: Final = kept
        self._default_outcome: Final = default_outcome

    def begin(self, unsettled: list[Delivery]) -> None:
        """Leave those of `unsettled` that are kept in the unsettled map of their session."""
        for delivery in unsettled:
            if isinstance(delivery, QueueEntry) and self._kept.find(tag_of(delivery)) is not None:
                delivery.sent_to = self
                self.session.unsettled_out.put_back(delivery)
        self._kept.session_end = self
        self._peer.late_outcomes[self] = None

    # -- from the session

    def credit_changed(self, drain: bool) -> None:
        """Do nothing: there is no link."""

    def outgoing_ended(self, closed: bool, unsettled: list[Delivery]) -> None:
        """Do nothing: the link has ended before."""

    def accepted(self, deliveries: list[Delivery]) -> None:
        batch = self._peer.container.journal.batch
        for each in deliveries:
            if isinstance(each, QueueEntry) and self._take(each) is not None:
                each.queue.accept(each, batch)

    def settled(self, delivery: Delivery, state: DeliveryState | None) -> None:
        if not isinstance(delivery, QueueEntry):
            return
        if state is None or isinstance(state, Received):
            self._settled_without_outcome(delivery)
            return
        if self._take(delivery) is None:
            return
        batch = self._peer.container.journal.batch
        fault = dispose(delivery, state, batch, default=self._default_outcome)
        if fault is not None:
            self.session.end(fault)  # there is no link any more to be ended with it

    def _settled_without_outcome(self, entry: QueueEntry) -> None:
        kept = self._kept
        delivery = kept.find(tag_of(entry))
        if delivery is not None:
            entry.sent_to = None
            default, batch = self._default_outcome, self._peer.container.journal.batch
            kept.give_up_one(delivery, abandonment(default), batch, cause=cause_of(default))

    def _take(self, entry: QueueEntry) -> KeptDelivery | None:
        """Take `entry` out of what is kept, and out of its transaction; None if it is not kept."""
        entry.sent_to = None
        delivery = self._kept.find(tag_of(entry))
        if delivery is not None:
            self._kept.withdraw(delivery)
            self._kept.remove(delivery)
        return delivery

    def retired(self, delivery: Delivery, state: TransactionalState, settled: bool) -> None:
        if not isinstance(delivery, QueueEntry):
            return
        kept = self._kept.find(tag_of(delivery))
        if kept is None:
            return
        fault = self._retire(kept, delivery, state, settled=settled)
        if fault is not None:
            self.session.end(fault)

    def _retire(
        self, kept: KeptDelivery, entry: QueueEntry, state: TransactionalState, *, settled: bool
    ) -> Fault | None:
        """Give a delivery its outcome within a transaction; return what is wrong, if anything."""
        outcome = state.outcome or self._default_outcome or RELEASED
        joined = self._peer.transactions.join(state.txn_id)
        if joined is None:
            if settled and kept.within is None:
                self._take(entry)
                batch = self._peer.container.journal.batch
                entry.queue.dispose(entry, rolled_back(disposal(outcome)), batch)
            return LinkFault(UNKNOWN_ID, "no such transaction on this connection")
        if kept.within is not None and kept.within is not joined.work:
            joined.coordinator.give_up("an outcome belongs to another transaction (4.4.2)")
            return None
        self._kept.withdraw(kept)
        fault = retire_within(joined.work, entry, outcome)
        if settled:
            self._kept.remove(kept)
            entry.sent_to = None
        else:
            kept.wanted = outcome
            self._kept.retire(kept, joined.work)
        return fault

    # -- from what is kept

    def over(self, entry: QueueEntry) -> None:
        self.session.unsettled_out.take(entry.delivery_id)
        entry.sent_to = None

    def withdrawn(self) -> None:
        for delivery in self.session.unsettled_out.take_all_of(self):
            delivery.sent_to = None
        # a session that has ended has no map any more
        for kept in self._kept.all():
            entry = kept.entry
            if entry is not None and entry.sent_to is self:
                entry.sent_to = None
        self._peer.late_outcomes.pop(self, None)

    def session_ended(self) -> None:
        """Forget the session, which has ended: outcomes come by the next attach alone."""
        self._kept.leave_session()
