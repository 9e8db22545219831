"""Messages that a link acquires within transactions (core 4.4.3).

A flow names a transaction; from then on the link's messages are acquired by it, until it is
discharged or another flow names another one. A rollback undoes the acquisition together with the
outcome, so the receiver's delivery is over, while without acquisition it continues (4.4.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.amqp.errors import UNKNOWN_ID, LinkFault
from broker.amqp.outcomes import RELEASED, Outcome, TransactionalState
from broker.amqp.outgoing_link import OutgoingLink
from broker.links.outcome import cause_of, disposal
from broker.links.transactions import AcquiringLink, OpenTransaction
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.transaction import AcquisitionListener, Retirement

if TYPE_CHECKING:
    from broker.links.outgoing import ConsumerEndpoint
    from broker.links.peer import Peer

OTHER_TRANSACTION: Final = "an outcome belongs to another transaction than its delivery (4.4.2)"
NO_TRANSACTION: Final = "an outcome of its delivery belongs to no transaction (4.4.4)"


@final
class Acquisitions(AcquisitionListener, AcquiringLink):
    """The acquisitions of one link within transactions.

    `state` is that of the link's transfers, None while it acquires outside of any transaction.
    """

    def __init__(
        self, peer: Peer, link: OutgoingLink, endpoint: ConsumerEndpoint, *, default: Outcome
    ) -> None:
        self.state: TransactionalState | None = None
        self._peer: Final = peer
        self._link: Final = link
        self._endpoint: Final = endpoint
        self._default: Final = default
        self._current: OpenTransaction | None = None
        # of deliveries that their receiver has not settled, and of those that were sent settled
        self._holders: Final[dict[QueueEntry, OpenTransaction]] = {}

    def name(self, txn_id: bytes | None) -> None:
        """Acquire within that transaction from now on, None for none.

        Raise LinkFault if there is no such transaction.
        """
        named: OpenTransaction | None = None
        if txn_id is not None:
            named = self._peer.transactions.find(txn_id)
            if named is None:
                raise LinkFault(UNKNOWN_ID, "no such transaction on this connection")
            named.acquirers[self] = None
        self._acquire_within(named)

    def _acquire_within(self, named: OpenTransaction | None) -> None:
        self._current = named
        self.state = None if named is None else TransactionalState(txn_id=named.id)
        self._link.txn_id = b"" if named is None else named.id
        self._endpoint.acquires(self if named is not None else None)

    def acquire(self, entry: QueueEntry) -> None:
        """Acquire `entry`, which is to be sent now, within the transaction."""
        current = self._current
        assert current is not None
        self._peer.transactions.join(current.id)
        current.work.acquire(entry, self)
        if self._link.sends_settled:
            # the limits of what a link holds count it like one that is not settled
            self._endpoint.unsettled += 1
            current.work.retire(Retirement(entry, Disposal.REMOVE))
        else:
            entry.sent_to = self._endpoint
        self._holders[entry] = current

    # -- outcomes

    def settles(self, entry: QueueEntry) -> bool:
        """Settle `entry` with the default-outcome, within its transaction; False if it has none."""
        holder = self._holders.pop(entry, None)
        if holder is None:
            return False
        entry.sent_to = None
        default = self._default
        holder.work.retire(Retirement(entry, disposal(default), cause=cause_of(default)))
        return True

    def retires_outside(self, entry: QueueEntry) -> bool:
        """Return whether an outcome of `entry` outside of any transaction must not be applied.

        Its receiver has settled `entry`. If a transaction has acquired it, that is rolled back.
        """
        holder = self._holders.pop(entry, None)
        if holder is None:
            return False
        entry.sent_to = None
        holder.coordinator.give_up(NO_TRANSACTION)
        return True

    def holder_of(self, entry: QueueEntry) -> OpenTransaction | None:
        """Return the transaction that has acquired `entry`, if its receiver has not settled it."""
        return self._holders.get(entry)

    def refuse(self, holder: OpenTransaction, txn_id: bytes) -> None:
        """Roll back `holder`, and the transaction `txn_id`, which has an outcome of its delivery.

        Raise LinkFault if there is no transaction `txn_id`.
        """
        other = self._peer.transactions.find(txn_id)
        holder.coordinator.give_up(OTHER_TRANSACTION)
        if other is None:
            raise LinkFault(UNKNOWN_ID, "no such transaction on this connection")
        other.coordinator.give_up(OTHER_TRANSACTION)

    def forget(self, entry: QueueEntry) -> None:
        """Note that `entry` is settled, and that its transaction knows its outcome."""
        self._holders.pop(entry, None)

    def drop(self, entry: QueueEntry) -> None:
        """Take `entry` out of its transaction: its message is damaged, and leaves the queue."""
        holder = self._holders.pop(entry, None)
        if holder is not None:
            holder.work.unacquire(entry)

    # -- ends

    def link_ended(self) -> None:
        """Acquire no more. What was acquired stays so until the end of its transaction."""
        self._acquire_within(None)

    def transaction_ended(self, ended: OpenTransaction) -> None:
        if ended is self._current:
            self._acquire_within(None)
        endpoint = self._endpoint
        if endpoint.awaits_settlement:
            endpoint.go_on()

    def acquisition_committed(self, entry: QueueEntry) -> None:
        self._holders.pop(entry, None)
        if self._link.sends_settled:
            self._endpoint.unsettled -= 1

    def acquisition_rolled_back(self, entry: QueueEntry) -> None:
        holder = self._holders.pop(entry, None)
        if holder is None:
            return  # its receiver has settled it
        link = self._link
        holder.aborting += 1
        is_aborted = link.abort(entry, holder)
        if not is_aborted:
            holder.aborting -= 1
        if link.sends_settled:
            self._endpoint.unsettled -= 1
            return
        link.session.unsettled_out.take(entry.delivery_id)
        if not is_aborted:  # that settles it, too
            link.settle(entry.delivery_id, RELEASED)
        entry.sent_to = None
