"""The consumer that a queue sees behind an outgoing link: it sends messages within the credit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.delivery import Delivery
from broker.amqp.errors import LinkFault
from broker.amqp.limits import UNSETTLED_MAP_MAX
from broker.amqp.outcomes import TransactionalState
from broker.amqp.outgoing_link import OutgoingLink
from broker.journal import YIELD_EVERY
from broker.links.large import LargeSupply
from broker.links.slices import placed
from broker.log_events import QUARANTINED
from broker.message import Message
from broker.routing.credit.memory import UNSETTLED_MAX
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import Consumer, Label
from broker.routing.entries.record_mapping import stored_position

if TYPE_CHECKING:
    from broker.links.acquisition import Acquisitions
    from broker.links.outgoing import ConsumerEndpoint
    from broker.links.peer import Peer
    from broker.routing.termini.acquisition_records import AcquisitionRecord

UNSETTLED: Final[i64] = 0
SETTLED: Final[i64] = 1
ACQUIRED: Final[i64] = 2
KEPT: Final[i64] = 3
"""The manners in which messages are sent: acquired by a transaction, they are settled or not; kept
beyond the link, they have the tags by which a later link resumes them.

One number, so that links without transactions compare it where they compared the settlement.
"""


def tag_of(entry: QueueEntry) -> bytes:
    """Return the tag under which `entry` can be resumed: its place in its queue, over restarts."""
    return int(stored_position(entry)).to_bytes(8, "big")


@final
class CreditedConsumer(Consumer):
    """The consumer of one outgoing link, as its queue sees it: it sends the queue's messages.

    `owner` is set from the acceptance of the link to its end. `tells_place`: each copy carries
    the position of its message in the queue, and its arrival time. `takes_new`: the queue may
    deliver; not while deliveries of an earlier link wait, or a map was incomplete (core 2.7.3).
    `record` is what the store has of its unsettled deliveries, None if they are in memory alone.
    """

    def __init__(self, peer: Peer, link: OutgoingLink) -> None:
        self.owner: ConsumerEndpoint | None = None
        self.tells_place = False
        self.takes_new = True
        self.record: AcquisitionRecord | None = None
        self._peer: Final = peer
        self._container: Final = peer.container
        self._stats: Final = peer.container.stats
        self._clock: Final = peer.container.clock
        self._memory: Final = peer.container.router.memory
        self._link: Final = link
        self._acquisitions: Acquisitions | None = None
        self._manner: i64 = SETTLED if link.sends_settled else UNSETTLED
        self._keeps = False
        self._unsettled_max: i64 = UNSETTLED_MAX

    def keep(self) -> None:
        """Send messages under tags by which a later link can resume them (core 2.6.13)."""
        self._keeps = True
        self._manner = KEPT
        self._unsettled_max = UNSETTLED_MAP_MAX

    def has_room(self) -> bool:
        # Here, in `deliver` and in the queue no local variable repeats an attribute that is Final:
        # compiled code would count references for it, some six instructions for each message.
        if (
            self.owner is not None
            and self.owner.unsettled > 0
            and (self.owner.unsettled >= self._unsettled_max or self._memory.held_is_full())
        ):
            self._memory.consumers[self] = None
            self.owner.awaits_settlement = True
            return False
        return self.takes_new and self._link.has_room()

    def memory_freed(self) -> None:
        owner = self.owner
        if owner is not None:
            owner.go_on()

    def has_credit(self) -> bool:
        return self._link.credit > 0

    def deliver(self, entry: QueueEntry) -> None:
        message = entry.message
        self._stats.delivered += 1
        if self._stats.delivered % YIELD_EVERY == 0:
            self._container.sample_delivery(entry)
        header = message.header(
            entry.delivery_count, self._clock, acquired_before=entry.history is not None
        )
        if message.optional_fields is not None:
            self._deliver_particular(entry, header)
            return
        if self._manner == UNSETTLED:
            entry.sent_to = self.owner
            self._link.send(entry, header, message.encoded)
        elif self._manner == SETTLED:
            self._link.send(None, header, message.encoded)
            entry.queue.accept(entry, self._container.journal.batch)
        else:
            self._deliver_tagged(entry, header)

    def browsed(self, entry: QueueEntry) -> None:
        message = entry.message
        self._stats.delivered += 1
        header = message.header(
            entry.delivery_count, self._clock, acquired_before=entry.history is not None
        )
        if self.tells_place:
            header += placed(entry)
        copy: Delivery | None = None
        if not self._link.sends_settled:
            copy = Delivery()
            copy.sent_to = self.owner
        if message.optional_fields is None:
            self._link.send(copy, header, message.encoded)
        else:
            self._send(copy, header, message)

    def _deliver_particular(self, entry: QueueEntry, header: bytes) -> None:
        """Like `deliver`, for a message that may be large, or of another format."""
        if self._manner >= ACQUIRED:
            self._deliver_tagged(entry, header)
        elif self._manner == SETTLED:
            self._send(None, header, entry.message)
            entry.queue.accept(entry, self._container.journal.batch)
        else:
            entry.sent_to = self.owner
            self._send(entry, header, entry.message)

    def acquire_within(self, acquisitions: Acquisitions | None) -> None:
        """Acquire messages within a transaction from now on, None for none (core 4.4.3)."""
        self._acquisitions = acquisitions
        if acquisitions is not None:
            self._manner = ACQUIRED
        elif self._keeps:
            self._manner = KEPT
        else:
            self._manner = SETTLED if self._link.sends_settled else UNSETTLED

    def _deliver_tagged(self, entry: QueueEntry, header: bytes) -> None:
        acquisitions = self._acquisitions
        state: TransactionalState | None = None
        if acquisitions is None:
            entry.sent_to = self.owner
            if self.record is not None:
                self.record.acquired(entry)
        else:
            acquisitions.acquire(entry)
            state = acquisitions.state
        self._send_tagged(entry, header, tag=tag_of(entry) if self._keeps else b"", state=state)

    def resend(self, entry: QueueEntry, tag: bytes) -> None:
        """Send `entry`, which an earlier link has delivered, as a resumed delivery of that tag."""
        entry.sent_to = self.owner
        message = entry.message
        header = message.header(
            entry.delivery_count, self._container.clock, acquired_before=entry.history is not None
        )
        self._send_tagged(entry, header, tag=tag, resume=True)

    def _send_tagged(
        self,
        entry: QueueEntry,
        header: bytes,
        *,
        tag: bytes,
        state: TransactionalState | None = None,
        resume: bool = False,
    ) -> None:
        message = entry.message
        large = message.large
        supply: LargeSupply | None = None
        size: i64 = 0
        if large is not None:
            contents = self._container.contents
            assert contents is not None
            supply = LargeSupply(self, large, contents)
            size = i64(large.size)
        self._link.send_tagged(
            entry,
            header + message.encoded,
            tag=tag,
            state=state,
            resume=resume,
            supply=supply,
            supplied=size,
            message_format=message.message_format,
        )
        if supply is not None:
            supply.begin()

    def _send(self, delivery: Delivery | None, header: bytes, message: Message) -> None:
        """Send any message; it may be large, or of another format."""
        link = self._link
        message_format = message.message_format
        large = message.large
        if large is None:
            link.send(delivery, header, message.encoded, message_format=message_format)
            return
        contents = self._container.contents
        assert contents is not None
        supply = LargeSupply(self, large, contents)
        first = header + message.encoded
        size = i64(len(first)) + i64(large.size)
        link.send_large(delivery, first, supply, size=size, message_format=message_format)
        supply.begin()

    def supplied(self) -> None:
        """Continue to send a large message: more of its body has been read."""
        self._link.supplied()

    def broken_off(self, fault: LinkFault) -> None:
        """Break off the large message that is being sent, and quarantine it: it is damaged."""
        owner = self.owner
        delivery = self._link.take_unfinished()
        if isinstance(delivery, QueueEntry) and owner is not None:
            owner.drop(delivery)
        self._link.break_off(fault)
        if isinstance(delivery, QueueEntry):
            self._quarantine(delivery, fault.description)

    def _quarantine(self, entry: QueueEntry, reason: str) -> None:
        container = self._container
        batch = container.journal.batch
        if entry.stored_number != NOT_STORED:
            batch.content_changes().quarantined.append((int(entry.stored_number), reason))
            container.stats.quarantined += 1
        container.router.notices.append(
            QUARANTINED.notice(f"a message of {entry.queue.address} is quarantined: {reason}")
        )
        # it leaves the queue as if it had been consumed, but its rows stay in the store
        entry.stored_number = NOT_STORED
        entry.queue.accept(entry, batch)
        container.stats.acknowledged -= 1

    def nothing_waits(self) -> None:
        self._link.drained()

    def label(self) -> Label:
        peer, link = self._peer, self._link
        return Label(peer.container_id, link.name, f"{peer.id}/{link.session.channel}")

    def node_deleted(self) -> None:
        owner = self.owner
        if owner is not None:
            owner.node_deleted()
