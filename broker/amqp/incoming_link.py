"""A link on which the peer sends: credit out, deliveries in, outcomes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp import serial
from broker.amqp.errors import (
    DETACH_FORCED,
    ILLEGAL_STATE,
    INVALID_FIELD,
    MESSAGE_SIZE_EXCEEDED,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    TRANSFER_LIMIT_EXCEEDED,
    LinkFault,
    ReattachFault,
)
from broker.amqp.events import IncomingOwner
from broker.amqp.lifecycle import LinkState
from broker.amqp.limits import STREAMED_FROM
from broker.amqp.link import Link
from broker.amqp.outcomes import ACCEPTED, Outcome, Rejected, State, TransactionalState, read_state
from broker.amqp.partial import Partial
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, RECEIVER, Attach, Transfer
from broker.amqp.received_outcomes import ReceivedOutcomes
from broker.amqp.terminus import Coordinator, Source, Target
from broker.amqp.unsettled_map import UnsettledStates

if TYPE_CHECKING:
    from broker.amqp.session import Session


@final
class IncomingLink(Link):
    """A link on which the peer sends; the broker grants credit, counts, assembles and settles.

    `awaited` has the ids of its deliveries in `awaited` of the session.
    """

    def __init__(self, session: Session, attach: Attach, our_handle: i64) -> None:
        super().__init__(session, attach, our_handle)
        self.owner: IncomingOwner | None = None
        self.delivery_count: i64 = max(0, attach.initial_delivery_count)
        self.credit: i64 = 0
        # messages that may be in transit beyond `credit`, if that was reduced
        self._surplus: i64 = 0
        # of the delivery that is arriving, or arrived last; 0 if the peer does not state it (2.7.5)
        self.message_format: i64 = 0
        self.settles_second: Final = attach.rcv_settle_mode == RCV_SECOND
        # the map of either end was incomplete: nothing new until the next attach (2.7.3)
        self._only_resumes = attach.incomplete_unsettled
        self._low: i64 = 0
        self._max_message_size: Final[i64] = session.connection.limits.max_message_size
        self._partial: Partial | None = None
        self._tag: bytes | None = None
        self.kept: ReceivedOutcomes | None = None
        self._kept_tags: Final[dict[int, bytes]] = {}
        self.awaited: Final[dict[int, None]] = {}

    def accept(
        self,
        owner: IncomingOwner,
        *,
        source: Source | None,
        target: Target | Coordinator,
        offered_capabilities: list[str] | None = None,
        properties: dict[str, object] | None = None,
        unsettled: UnsettledStates | None = None,
    ) -> None:
        """Answer with the actual `target`, and what it has kept; pass deliveries to `owner`."""
        asked = self.asked
        assert asked is not None
        self.owner = owner
        self._answer(
            source=source,
            target=target,
            snd_settle_mode=asked.snd_settle_mode,
            max_message_size=self._max_message_size,
            offered_capabilities=offered_capabilities,
            properties=properties,
            unsettled=unsettled,
        )
        if not self.told_all:
            self._only_resumes = True

    def grant(self, credit: i64) -> None:
        """Let the peer send `credit` messages from now on.

        Messages that it has sent with an earlier and larger credit are still accepted (2.6.7).
        """
        if self.state is LinkState.ATTACHED:
            self._surplus = max(i64(0), self.credit + self._surplus - credit)
            self.credit = credit
            self._low = credit >> 1
            self.put_flow()

    def put_flow(self) -> None:
        self.session.put_link_flow(
            handle=self.our_handle,
            delivery_count=self.delivery_count,
            credit=self.credit,
            drain=False,
        )

    def recall(self) -> None:
        """Ask the peer to use its credit now or give it back: a drain (2.6.7)."""
        if self.state is LinkState.ATTACHED and self.credit > 0:
            self.session.put_link_flow(
                handle=self.our_handle,
                delivery_count=self.delivery_count,
                credit=self.credit,
                drain=True,
            )

    def outstanding(self) -> i64:
        """Return the number of messages that may arrive: the credit, plus an unfinished one."""
        return self.credit if self._partial is None else self.credit + 1

    def on_flow(self, peer_delivery_count: i64) -> None:
        """Take over the sender's delivery-count, which has jumped after a drain.

        -1 (absent) changes nothing. Raise LinkFault if it went back, or jumped beyond the credit.
        """
        if peer_delivery_count >= 0:
            jumped = serial.ahead(peer_delivery_count, self.delivery_count)
            if jumped < 0 or jumped > self.credit + self._surplus:
                raise LinkFault(
                    INVALID_FIELD,
                    f"delivery-count {peer_delivery_count} after {self.delivery_count}"
                    f" with credit {self.credit}",
                )
            self.delivery_count = peer_delivery_count
            self._use(jumped)
            if jumped > 0:
                self._ask_for_credit()

    def on_transfer(self, transfer: Transfer, data: bytes, at: i64, end: i64) -> None:
        """Handle one frame of a delivery; its payload is `data[at:end]`.

        Raise LinkFault or SessionFault if the frame is not allowed or the message too large.
        """
        if self.state is not LinkState.ATTACHED:
            # the transfer crossed the broker's detach (2.6.5): it is ignored, but its id counts
            self.session.skip_delivery(transfer.delivery_id)
            if transfer.state_at >= 0:
                gone = LinkFault(DETACH_FORCED, "the link of a message has ended before it came")
                self.lose_posting(transfer, data, at, fault=gone)
            return
        owner = self.owner
        assert owner is not None
        if self._partial is None:
            self._begin(transfer)
            if not transfer.more and not transfer.aborted and not transfer.resume:
                if end - at > self._max_message_size:
                    raise self._too_large()
                self._tag = None
                settled = transfer.settled == 1
                if self.settles_second and not settled and transfer.rcv_settle_mode != RCV_FIRST:
                    self.session.awaited.put(transfer.delivery_id, self)
                    self._keep(transfer, data)
                if transfer.state_at < 0:
                    owner.delivered(transfer.delivery_id, data, at, end, settled)
                else:
                    txn_id = txn_id_of(transfer, data, at)
                    owner.posted(
                        transfer.delivery_id, data, at, end, settled=settled, txn_id=txn_id
                    )
                if self.credit <= self._low:
                    self._ask_for_credit()
                return
            self._tag = transfer.tag(data)
            within: bytes | None = None
            if transfer.state_at >= 0 and not transfer.resume:
                within = txn_id_of(transfer, data, at)
                postings = self.session.connection.partial_postings
                postings[within] = postings.get(within, 0) + 1
            self.session.partial_deliveries += 1
            self._partial = Partial(
                transfer.delivery_id,
                settles_second=self.settles_second and transfer.rcv_settle_mode != RCV_FIRST,
                resumed=transfer.resume,
                txn_id=within,
            )
        self._continue(transfer, data, at, end)

    def _begin(self, transfer: Transfer) -> None:
        """Check the first frame of a delivery, and count the delivery."""
        self.session.expect_delivery(transfer.delivery_id)
        if transfer.tag_at < 0:
            raise LinkFault(INVALID_FIELD, "the first transfer of a delivery has a delivery-tag")
        if self.credit + self._surplus <= 0:
            raise LinkFault(TRANSFER_LIMIT_EXCEEDED, "no credit is left on this link")
        if self._only_resumes and not transfer.resume:
            raise ReattachFault(
                ILLEGAL_STATE, "a new delivery after an incomplete unsettled map: attach again"
            )
        if (
            transfer.rcv_settle_mode == RCV_SECOND
            and not self.settles_second
            and transfer.settled != 1
        ):
            # a delivery may be settled first if its link says second, but not the reverse (2.7.5)
            raise LinkFault(INVALID_FIELD, "rcv-settle-mode second on a link with first")
        self.delivery_count = (self.delivery_count + 1) & 0xFFFF_FFFF
        if self.credit > 0:
            self.credit -= 1
        else:
            self._surplus -= 1
        self.message_format = max(i64(0), transfer.message_format)

    def _use(self, messages: i64) -> None:
        """Reduce credit, then surplus, by `messages`; together they must be large enough."""
        if messages <= self.credit:
            self.credit -= messages
        else:
            self._surplus -= messages - self.credit
            self.credit = 0

    def _continue(self, transfer: Transfer, data: bytes, at: i64, end: i64) -> None:
        """Add a frame to the unfinished delivery (2.6.14)."""
        partial = self._partial
        assert partial is not None
        if transfer.aborted:
            self._forget_partial()
            if partial.resumed:
                self._forget_tag(self._tag)
            return
        self._check_continuation(transfer, data, at, partial=partial)
        connection = self.session.connection
        partial.count(0 if partial.resumed else end - at, settled=transfer.settled == 1)
        if partial.transfers > connection.limits.transfers_per_delivery():
            raise LinkFault(RESOURCE_LIMIT_EXCEEDED, "too many transfers in one delivery")
        if partial.resumed:
            if not transfer.more:
                self._forget_partial()
                self._resume(partial)
            return
        if partial.size > self._max_message_size:
            # before its bytes are held: their limit would close the connection, not the link
            raise self._too_large()
        if partial.intake is not None:
            partial.intake.take(data, at, end)
        else:
            partial.pieces.append(data[at:end])
            partial.held += end - at
            connection.hold_partial(end - at)
            if partial.held > STREAMED_FROM and not partial.stays_in_memory:
                self._stream(partial)
        if not transfer.more:
            self._complete(partial)

    def _stream(self, partial: Partial) -> None:
        """Pass a delivery that has grown large to an intake, if the owner has one for it."""
        owner = self.owner
        assert owner is not None
        intake = owner.large()
        if intake is None:
            partial.stays_in_memory = True
            return
        self.session.connection.hold_partial(-partial.held)
        partial.stream_to(intake)

    def _check_continuation(
        self, transfer: Transfer, data: bytes, at: i64, *, partial: Partial
    ) -> None:
        """Raise LinkFault if a continuation contradicts the first frame (2.7.5)."""
        if transfer.delivery_id >= 0 and transfer.delivery_id != partial.delivery_id:
            self.session.skip_delivery(transfer.delivery_id)
            raise LinkFault(
                NOT_ALLOWED,
                f"delivery {transfer.delivery_id} inside of delivery {partial.delivery_id}",
            )
        if transfer.tag_at >= 0 and transfer.tag(data) != self._tag:
            raise LinkFault(NOT_ALLOWED, "a delivery-tag that changes within its delivery")
        if transfer.message_format >= 0 and transfer.message_format != self.message_format:
            raise LinkFault(NOT_ALLOWED, "a message-format that changes within its delivery")
        if transfer.state_at < 0 or partial.resumed:
            return
        if txn_id_of(transfer, data, at) != partial.txn_id:
            raise LinkFault(NOT_ALLOWED, "a transaction that changes within its delivery")

    def _complete(self, partial: Partial) -> None:
        owner = self.owner
        assert owner is not None
        intake = partial.intake
        partial.intake = None
        self._drop_partial()
        if partial.settles_second and not partial.settled:
            self.session.awaited.put(partial.delivery_id, self)
            if partial.txn_id is None:
                self._keep_tag(partial.delivery_id, self._tag)
        if intake is not None:
            intake.complete(partial.delivery_id, settled=partial.settled, txn_id=partial.txn_id)
        else:
            self._deliver(partial, owner)
        if self.credit <= self._low:
            self._ask_for_credit()

    def _deliver(self, partial: Partial, owner: IncomingOwner) -> None:
        whole = b"".join(partial.pieces)
        if partial.txn_id is None:
            owner.delivered(partial.delivery_id, whole, 0, i64(len(whole)), partial.settled)
        else:
            owner.posted(
                partial.delivery_id,
                whole,
                0,
                i64(len(whole)),
                settled=partial.settled,
                txn_id=partial.txn_id,
            )

    def _ask_for_credit(self) -> None:
        if self.state is LinkState.ATTACHED and self.owner is not None:
            self.owner.credit_low()

    def _too_large(self) -> LinkFault:
        return LinkFault(
            MESSAGE_SIZE_EXCEEDED, f"a message has at most {self._max_message_size} bytes"
        )

    def _forget_partial(self) -> None:
        """End the unfinished delivery without a message; the credit that it used is lost."""
        self._drop_partial()
        if self.credit <= self._low:
            self._ask_for_credit()

    def _drop_partial(self) -> None:
        partial = self._partial
        if partial is None:
            return
        self._partial = None
        self.session.partial_deliveries -= 1
        connection = self.session.connection
        connection.hold_partial(-partial.held)
        if partial.intake is not None:
            partial.intake.abandon()
        if partial.txn_id is not None:
            connection.partial_postings[partial.txn_id] -= 1
            if connection.partial_postings[partial.txn_id] == 0:
                del connection.partial_postings[partial.txn_id]

    def lose_posting(self, transfer: Transfer, data: bytes, at: i64, *, fault: LinkFault) -> None:
        """Fail the transaction of a transfer that failed: it must not be committed without it."""
        state = read_state(data, transfer.state_at, at)
        if isinstance(state, TransactionalState):
            self.session.connection.owner.transaction_failed(state.txn_id, fault)

    def delivery_tag(self) -> bytes:
        """Return the tag of the delivery that the owner is being called for."""
        if self._tag is not None:
            return self._tag
        return self.session.connection.current_tag()

    def _keep(self, transfer: Transfer, data: bytes) -> None:
        """Keep a delivery like `_keep_tag`, unless a transaction has it: that ends with all."""
        if self.kept is not None and transfer.state_at < 0:
            self._keep_tag(transfer.delivery_id, transfer.tag(data))

    def _keep_tag(self, delivery_id: i64, tag: bytes | None) -> None:
        """Keep a delivery beyond the link until its sender settles it; LinkFault for a tag in use.

        No effect if the target does not outlive the link.
        """
        if self.kept is not None and tag is not None:
            self.kept.arrived(tag)
            self._kept_tags[int(delivery_id)] = tag

    def settled_by_sender(self, delivery_id: i64) -> None:
        """Forget a delivery that its sender has settled."""
        self._forget_tag(self._kept_tags.pop(int(delivery_id), None))

    def _forget_tag(self, tag: bytes | None) -> None:
        if self.kept is not None and tag is not None:
            self.kept.settled(tag)
            if self.owner is not None:
                self.owner.settled_by_sender(tag)

    def _resume(self, resumed: Partial) -> None:
        """Report the outcome of a delivery of an earlier link; ignore an unknown one (2.7.5)."""
        kept, tag = self.kept, self._tag
        if kept is None or tag is None:
            return
        if resumed.settled:
            self._forget_tag(tag)
            return
        if kept.knows(tag):
            self._kept_tags[int(resumed.delivery_id)] = tag
            self.session.awaited.put(resumed.delivery_id, self)
            kept.resumed(tag, self, resumed.delivery_id)

    def report(self, delivery_id: i64, outcome: Outcome) -> None:
        """Report the outcome of a resumed delivery, if the link is still there."""
        if self.state is LinkState.ATTACHED:
            self.settle(delivery_id, outcome)

    def _decided(self, delivery_id: i64, outcome: Outcome) -> None:
        """Keep the outcome of a delivery for later links, if the target lasts beyond this one."""
        if self.kept is not None:
            tag = self._kept_tags.get(int(delivery_id))
            if tag is not None:
                self.kept.decided(tag, outcome)

    def tag_of(self, delivery_id: i64) -> bytes | None:
        """Return the tag of a delivery that is kept beyond the link, None if it is not."""
        return self._kept_tags.get(int(delivery_id))

    def accept_delivery(self, delivery_id: i64) -> None:
        """Report to the peer that a delivery is accepted; neighbours join in one range.

        May be called late, once the message is durable: a link that has ended reports nothing.
        """
        if self.kept is not None:
            self._decided(delivery_id, ACCEPTED)
        if self.state is not LinkState.ATTACHED:
            return
        settled = self._settles_now(delivery_id)
        if not self.session.accepted.takes(delivery_id, settled):
            self.session.accept(delivery_id, settled=settled)

    def accept_posting(self, delivery_id: i64, state: TransactionalState) -> None:
        """Report that a delivery is accepted for the end of its transaction (4.4.1).

        Neighbours join in one range if `state` is the same object.
        """
        settled = self._settles_now(delivery_id)
        if not self.session.accepted.takes_posting(delivery_id, settled, state):
            self.session.accept(delivery_id, settled=settled, state=state)

    def reject(self, delivery_id: i64, outcome: Rejected) -> None:
        """Report to the peer that a delivery is rejected."""
        self._decided(delivery_id, outcome)
        self.settle(delivery_id, outcome)

    def settle(self, delivery_id: i64, outcome: State) -> None:
        """Report an outcome other than a plain acceptance to the peer."""
        self.session.put_disposition(
            role=RECEIVER,
            first=delivery_id,
            last=delivery_id,
            settled=self._settles_now(delivery_id),
            state=outcome,
        )

    def _settles_now(self, delivery_id: i64) -> bool:
        """Return False if the sender must settle the delivery first (2.6.12), else True."""
        return not self.settles_second or not self.session.awaited.has(delivery_id)

    def end(self, *, closed: bool) -> None:
        partial = self._partial
        if partial is not None and partial.txn_id is not None:
            unfinished = LinkFault(DETACH_FORCED, "a link has ended in the middle of a message")
            self.session.connection.owner.transaction_failed(partial.txn_id, unfinished)
        self._drop_partial()
        if self.awaited:
            self.session.awaited.forget(self)
        owner = self.owner
        self.owner = None
        if owner is not None:
            owner.incoming_ended(closed)


def txn_id_of(transfer: Transfer, data: bytes, end: i64) -> bytes:
    """Return the transaction in the state of a transfer; `end` is the end of its fields.

    Raise LinkFault if the state is not a transactional one.
    """
    state = read_state(data, transfer.state_at, end)
    if not isinstance(state, TransactionalState):
        raise LinkFault(NOT_IMPLEMENTED, "a delivery that comes with an outcome")
    return state.txn_id
