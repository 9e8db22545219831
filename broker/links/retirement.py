"""Outcomes that a consumer gives within transactions, as its link knows them (core 4.4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.delivery import Delivery
from broker.amqp.errors import UNKNOWN_ID, Fault, LinkFault
from broker.amqp.outcomes import (
    RELEASED,
    DeliveryState,
    Modified,
    Outcome,
    Received,
    TransactionalState,
)
from broker.amqp.outgoing_link import OutgoingLink
from broker.journal import Waiter
from broker.links.acquisition import Acquisitions
from broker.links.credited_consumer import tag_of
from broker.links.outcome import cause_of, disposal
from broker.links.transactions import OpenTransaction
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import rolled_back
from broker.routing.termini.kept_deliveries import KeptDeliveries, KeptDelivery
from broker.routing.transaction import Retirement, RetirementListener, Transaction

if TYPE_CHECKING:
    from broker.links.outgoing import ConsumerEndpoint
    from broker.links.peer import Peer


@final
class PendingSettlement(Waiter):
    """A delivery that the broker settles once the outcome given by its consumer is durable."""

    def __init__(self, link: OutgoingLink, delivery_id: i64, outcome: Outcome) -> None:
        self._link: Final = link
        self._delivery_id: Final[i64] = delivery_id
        self._outcome: Final = outcome

    def committed(self) -> None:
        self._link.settle(self._delivery_id, self._outcome)


@final
class TransactionalOutcome:
    """The outcome, within `transaction`, of a delivery that its consumer has not settled."""

    def __init__(self, transaction: OpenTransaction, outcome: Outcome) -> None:
        self.transaction: Final = transaction
        self.outcome: Final = outcome


@final
class Retirements(RetirementListener):
    """Deliveries that the client of one link has retired within transactions.

    Once a delivery is settled, only the transaction knows it. Until then it is in the session's
    unsettled map like any other, and the client may change its outcome.
    """

    def __init__(self, peer: Peer, link: OutgoingLink, default_outcome: Outcome | None) -> None:
        self._peer: Final = peer
        self._link: Final = link
        self._default_outcome: Final[Outcome] = default_outcome or RELEASED
        self._unsettled: Final[dict[QueueEntry, TransactionalOutcome]] = {}
        self.acquisitions: Acquisitions | None = None

    def acquire_within(self, txn_id: bytes | None, endpoint: ConsumerEndpoint) -> None:
        """Acquire messages within that transaction from now on, None for none (core 4.4.3).

        Raise LinkFault if there is no such transaction.
        """
        if self.acquisitions is None:
            self.acquisitions = Acquisitions(
                self._peer, self._link, endpoint, default=self._default_outcome
            )
        self.acquisitions.name(txn_id)

    def retire(self, entry: QueueEntry, state: TransactionalState, *, settled: bool) -> None:
        """Give `entry` an outcome within a transaction; raise LinkFault if that is not possible."""
        if self.acquisitions is not None:
            holder = self.acquisitions.holder_of(entry)
            if holder is not None and holder.id != state.txn_id:
                if settled:
                    self.settles(entry, None)
                self.acquisitions.refuse(holder, state.txn_id)
                return
            if settled:
                self.acquisitions.forget(entry)
        outcome = state.outcome or self._default_outcome
        joined = self._peer.transactions.join(state.txn_id)
        if joined is None:
            if settled:
                self._return(entry, outcome)
            raise LinkFault(UNKNOWN_ID, "no such transaction on this connection")
        before = self._unsettled.get(entry)
        if before is not None:
            if before.transaction is not joined:
                if settled:
                    self._settle(entry)
                joined.coordinator.give_up("an outcome belongs to another transaction (4.4.2)")
                return
            self.withdraw(entry)
        if settled:
            entry.sent_to = None
        else:
            self._unsettled[entry] = TransactionalOutcome(joined, outcome)
        fault = retire_within(joined.work, entry, outcome, holder=None if settled else self)
        if fault is not None:
            raise fault

    def _return(self, entry: QueueEntry, outcome: Outcome) -> None:
        """Return `entry` as a rollback does: its transaction has ended without this outcome."""
        entry.sent_to = None
        wanted = rolled_back(disposal(outcome))
        entry.queue.dispose(entry, wanted, self._peer.container.journal.batch)

    def accepts(self, entry: QueueEntry) -> bool:
        """Return whether `entry`, accepted outside of any transaction, is to be removed.

        That withdraws an outcome that the client gave it within a transaction. An outcome of
        another delivery may just have rolled the acquisition of this one back.
        """
        if entry.sent_to is None:
            return False
        self.withdraw(entry)
        return self.acquisitions is None or not self.acquisitions.retires_outside(entry)

    def drop(self, entry: QueueEntry) -> None:
        """Take `entry`, whose message is damaged, out of its transactions."""
        self.withdraw(entry)
        if self.acquisitions is not None:
            self.acquisitions.drop(entry)

    def withdraw(self, entry: QueueEntry) -> None:
        """Withdraw the outcome that the client gave `entry` within a transaction, if any."""
        before = self._unsettled.pop(entry, None)
        if before is not None:
            before.transaction.work.withdraw(entry)

    def settles(self, entry: QueueEntry, state: DeliveryState | None) -> bool:
        """Return whether settling `entry` in `state` leaves it to a transaction.

        That knows its outcome or has acquired it, and alone knows `entry` from now on. Otherwise
        `state` replaces an outcome given before, which is withdrawn.
        """
        is_final = state is not None and not isinstance(state, Received)
        acquisitions = self.acquisitions
        if is_final:
            self.withdraw(entry)
            return acquisitions is not None and acquisitions.retires_outside(entry)
        if entry in self._unsettled:
            self._settle(entry)
            return True
        return acquisitions is not None and acquisitions.settles(entry)

    def _settle(self, entry: QueueEntry) -> None:
        entry.sent_to = None
        if self.acquisitions is not None:
            self.acquisitions.forget(entry)
        self._unsettled.pop(entry).transaction.work.settled(entry)

    def without(self, ended: list[Delivery], kept: KeptDeliveries | None = None) -> list[Delivery]:
        """Return the deliveries `ended` with their link that no transaction keeps acquired.

        With `kept`, those that have an outcome within a transaction stay unsettled there.
        """
        acquisitions = self.acquisitions
        left: list[Delivery] = []
        for delivery in ended:
            if delivery.sent_to is None:
                continue  # a transaction that ended before, with the same session, has returned it
            if isinstance(delivery, QueueEntry) and delivery in self._unsettled:
                if kept is None or self._is_acquired(delivery):
                    self._settle(delivery)
                else:
                    self._keep(delivery, kept)
            elif (
                acquisitions is None
                or not isinstance(delivery, QueueEntry)
                or not acquisitions.settles(delivery)
            ):
                left.append(delivery)
        if acquisitions is not None:
            acquisitions.link_ended()
            self.acquisitions = None  # it knows the link's owner, which knows this
        return left

    def _is_acquired(self, entry: QueueEntry) -> bool:
        """Return whether a transaction has acquired `entry`, so that it decides about that, too."""
        return self.acquisitions is not None and self.acquisitions.holder_of(entry) is not None

    def _keep(self, entry: QueueEntry, kept: KeptDeliveries) -> None:
        """Leave the delivery of `entry` to `kept`, which hears of its transaction's end."""
        given = self._unsettled.pop(entry)
        delivery = KeptDelivery(tag_of(entry), entry)
        delivery.within = given.transaction.work
        delivery.wanted = given.outcome
        kept.add(delivery)

    # -- from the transaction

    def committed(self, entry: QueueEntry) -> None:
        outcome = self._unsettled.pop(entry).outcome
        self._link.session.unsettled_out.take(entry.delivery_id)
        entry.sent_to = None
        journal = self._peer.container.journal
        journal.submit(PendingSettlement(self._link, entry.delivery_id, outcome))

    def rolled_back(self, entry: QueueEntry) -> None:
        del self._unsettled[entry]


def retire_within(
    work: Transaction,
    entry: QueueEntry,
    outcome: Outcome,
    *,
    holder: RetirementListener | None = None,
) -> LinkFault | None:
    """Give `entry` that outcome once `work` commits; return what is wrong, which dooms `work`."""
    annotations: bytes | None = None
    fault: LinkFault | None = None
    if isinstance(outcome, Modified) and outcome.message_annotations is not None:
        fault = fault_of(entry, outcome.message_annotations)
        annotations = outcome.message_annotations if fault is None else None
    work.retire(
        Retirement(
            entry,
            disposal(outcome),
            cause=cause_of(outcome),
            annotations=annotations,
            holder=holder,
        )
    )
    if fault is not None:
        work.doom(fault)
    return fault


def fault_of(entry: QueueEntry, annotations: bytes) -> LinkFault | None:
    """Return the fault, if any, of adding `annotations`; checked now, so that no commit fails."""
    try:
        entry.message.annotated(annotations)
    except Fault as fault:
        return LinkFault(fault.condition, fault.description)
    return None
