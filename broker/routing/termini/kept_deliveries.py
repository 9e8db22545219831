"""Deliveries whose link has ended, and that a later link of their terminus may resume (2.6.13)."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr, trait

from broker.amqp.outcomes import Outcome
from broker.routing.credit.memory import ENTRY_BYTES
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer, Label
from broker.routing.entries.redelivery import Disposal
from broker.routing.transaction import RetirementListener, Transaction
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.amqp.unsettled_map import UnsettledStates
    from broker.routing.termini.acquisition_records import AcquisitionRecord


@final
class AbsentConsumer(Consumer):
    """The consumer of kept entries while no link has them, under the number of the one before.

    It is attached to no queue. Of the connection that has ended, it has the label alone.
    """

    def __init__(self, number: i64, failures: i64, label: Label) -> None:
        self.number = number
        self.failures = failures
        self._label: Final = label

    def has_room(self) -> bool:
        return False

    def has_credit(self) -> bool:
        return False

    def deliver(self, entry: QueueEntry) -> None:  # noqa: ARG002 - never called
        raise AssertionError("a consumer that is absent gets nothing")

    def browsed(self, entry: QueueEntry) -> None:  # noqa: ARG002 - never called
        raise AssertionError("a consumer that is absent gets nothing")

    def nothing_waits(self) -> None:
        """Do nothing: it does not drain."""

    def label(self) -> Label:
        return self._label

    def node_deleted(self) -> None:
        """Do nothing: it is attached to no node."""


@final
class KeptDelivery:
    """One delivery, under its tag.

    `entry` is None once the delivery has its `outcome`, of which the peer is to be told. `within`
    is the open transaction to which an outcome belongs, None without one.
    """

    def __init__(self, tag: bytes, entry: QueueEntry) -> None:
        self.tag: Final = tag
        self.entry: QueueEntry | None = entry
        self.outcome: Outcome | None = None
        self.within: Transaction | None = None
        self.wanted: Outcome | None = None


@mypyc_attr(allow_interpreted_subclasses=True)
class DecisionListener:
    """The link that has resumed a terminus while transactions of its deliveries were open."""

    @abstractmethod
    def decided(self, delivery: KeptDelivery) -> None:
        """Go on with `delivery`, whose transaction has ended."""


@trait
class SessionEnd:
    """The session of a link that is detached: it may still bring outcomes of kept deliveries."""

    @abstractmethod
    def over(self, entry: QueueEntry) -> None:
        """Expect no outcome of `entry` any more: its transaction has one."""

    @abstractmethod
    def withdrawn(self) -> None:
        """Expect no outcomes any more: a link has resumed the deliveries, or their time is over."""


@final
class KeptDeliveries(RetirementListener):
    """The deliveries of one source, by their tags, in the order in which they were sent.

    `bytes` is what they take in memory, with their messages. `listener` is the link that has
    resumed the terminus, None while it is suspended. `session_end` is the session in which outcomes
    may still come, None once that has ended or a link has resumed the terminus. `record` is what
    the store has of them, None if they are in memory alone.
    """

    def __init__(self) -> None:
        self.bytes: i64 = 0
        self.listener: DecisionListener | None = None
        self.session_end: SessionEnd | None = None
        self.record: AcquisitionRecord | None = None
        self._by_tag: Final[dict[bytes, KeptDelivery]] = {}
        self._retired: Final[dict[QueueEntry, KeptDelivery]] = {}

    def count(self) -> int:
        """Return the number of deliveries."""
        return len(self._by_tag)

    def all(self) -> list[KeptDelivery]:
        """Return the deliveries in their order."""
        return list(self._by_tag.values())

    def add(self, delivery: KeptDelivery) -> None:
        """Keep a delivery; if a transaction has an outcome of it, hear of the transaction's end."""
        entry, within = delivery.entry, delivery.within
        if entry is not None:
            entry.sent_to = None
            self.bytes += ENTRY_BYTES + entry.message.encoded_size
        self._by_tag[delivery.tag] = delivery
        if within is not None:
            self.retire(delivery, within)

    def retire(self, delivery: KeptDelivery, within: Transaction) -> None:
        """Hear of the end of the transaction, in which `delivery` has its outcome."""
        entry = delivery.entry
        if entry is not None:
            delivery.within = within
            self._retired[entry] = delivery
            within.hand_over(entry, self)

    def withdraw(self, delivery: KeptDelivery) -> None:
        """Withdraw the outcome of `delivery` within a transaction, if it has one."""
        entry, within = delivery.entry, delivery.within
        if entry is not None and within is not None:
            del self._retired[entry]
            within.withdraw(entry)
            delivery.within = None
            delivery.wanted = None

    def find(self, tag: bytes) -> KeptDelivery | None:
        """Return the delivery of that tag, None if there is none."""
        return self._by_tag.get(tag)

    def leave_session(self) -> None:
        """Take no more outcomes from the session of the link that was detached. Idempotent."""
        session_end = self.session_end
        self.session_end = None
        if self.record is not None:
            self.record.client = None
        if session_end is not None:
            session_end.withdrawn()

    def remove(self, delivery: KeptDelivery) -> None:
        """Keep a delivery no more: it is over, or a link goes on with it."""
        del self._by_tag[delivery.tag]
        entry = delivery.entry
        if entry is not None:
            self.bytes -= ENTRY_BYTES + entry.message.encoded_size

    def end(self, delivery: KeptDelivery, outcome: Outcome) -> None:
        """Note that `delivery` has its outcome, of which the peer is still to be told."""
        entry = delivery.entry
        if entry is not None:
            self.bytes -= ENTRY_BYTES + entry.message.encoded_size
        delivery.entry = None
        delivery.outcome = outcome

    def put_in_place(self, number: i64, failures: i64, label: Label) -> None:
        """Let an absent consumer of that number hold the entries, in place of the link's."""
        absent = AbsentConsumer(number, failures, label)
        for delivery in self._by_tag.values():
            entry = delivery.entry
            if entry is not None:
                entry.consumer = absent

    def states(self) -> UnsettledStates:
        """Return the tags with their states, for the map of an attach (2.7.3)."""
        found: UnsettledStates = []
        for delivery in self._by_tag.values():
            found.append((delivery.tag, delivery.outcome))
        return found

    def give_up(self, disposal: Disposal, batch: Batch, *, cause: Cause) -> None:
        """End all deliveries as `disposal` says; those retired in a transaction stay with it."""
        self.end_record(batch)
        self.leave_session()
        for delivery in self.all():
            self.give_up_one(delivery, disposal, batch, cause=cause)

    def give_up_one(
        self, delivery: KeptDelivery, disposal: Disposal, batch: Batch, *, cause: Cause
    ) -> None:
        """End one delivery, like `give_up`."""
        self.remove(delivery)
        entry, within = delivery.entry, delivery.within
        delivery.entry = None
        if entry is not None and within is not None:
            del self._retired[entry]
            within.settled(entry)
        elif entry is not None:
            entry.queue.dispose(entry, disposal, batch, cause=cause)

    # -- the store

    def record_all(self) -> None:
        """Have the store keep all deliveries whose messages outlive the broker."""
        record = self.record
        if record is not None:
            for delivery in self._by_tag.values():
                if delivery.entry is not None:
                    record.acquired(delivery.entry)

    def end_record(self, batch: Batch) -> None:
        """Keep the deliveries in memory alone from now on, or no more."""
        record = self.record
        self.record = None
        if record is not None:
            record.end(batch)

    def leave_to_store(self) -> None:
        """Remove the deliveries that the store has, for the next start: the broker stops."""
        record = self.record
        self.record = None
        if record is None:
            return
        for delivery in self.all():
            entry = delivery.entry
            if entry is not None and delivery.within is None and record.has(entry):
                self.remove(delivery)
        record.leave_to_store()

    # -- from a transaction

    def committed(self, entry: QueueEntry) -> None:
        delivery = self._retired.pop(entry)
        assert delivery.wanted is not None
        self.end(delivery, delivery.wanted)
        if self.session_end is not None:
            self.session_end.over(entry)
        self._decided(delivery)

    def rolled_back(self, entry: QueueEntry) -> None:
        self._decided(self._retired.pop(entry))

    def _decided(self, delivery: KeptDelivery) -> None:
        delivery.within = None
        delivery.wanted = None
        listener = self.listener
        if listener is not None:
            listener.decided(delivery)
