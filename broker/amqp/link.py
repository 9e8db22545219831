"""One link end: its life, its credit, and the deliveries that pass.

Directions are ours: the peer sends on an `IncomingLink` and receives on an
`OutgoingLink`. Both are made by an attach of the peer's, answered at once by
`accept` or `refuse` (core 2.6.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64, u8

from broker.amqp import credit as credits
from broker.amqp import serial
from broker.amqp.delivery import Delivery
from broker.amqp.encode import put_u32
from broker.amqp.errors import (
    INVALID_FIELD,
    MESSAGE_SIZE_EXCEEDED,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    TRANSFER_LIMIT_EXCEEDED,
    Fault,
    LinkFault,
)
from broker.amqp.events import IncomingHandler, OutgoingHandler
from broker.amqp.lifecycle import LinkEvent, LinkState, link_after
from broker.amqp.outcomes import Error, State, error_of
from broker.amqp.performatives import (
    RCV_SECOND,
    RECEIVER,
    SND_MIXED,
    SND_SETTLED,
    SND_UNSETTLED,
    Attach,
    Detach,
    Transfer,
)
from broker.amqp.terminus import Coordinator, Source, Target

if TYPE_CHECKING:
    from broker.amqp.session import Session

TRANSFER_OVERHEAD: Final[i64] = 40
"""The most that a transfer frame of ours takes beside its payload."""

REFERENCED_FROM: Final[i64] = 4096
"""Payloads of this size on go out by reference; copying smaller ones is faster."""


class Link:
    """What both directions share. `handle` is the peer's number for it, `our_handle` ours."""

    def __init__(self, session: Session, attach: Attach, our_handle: i64) -> None:
        self.session: Final = session
        self.name: Final = attach.name
        self.handle: Final[i64] = attach.handle
        self.our_handle: Final[i64] = our_handle
        self.asked: Attach | None = attach
        self.state: LinkState = link_after(LinkState.DETACHED, LinkEvent.ATTACH_IN)

    def refuse(self, fault: Fault) -> None:
        """Answer the attach with a null terminus, then detach at once (2.6.3)."""
        asked = self.asked
        assert asked is not None
        if asked.role is RECEIVER:
            self._answer(source=None, target=_target(asked), initial_delivery_count=0)
        else:
            self._answer(source=asked.source, target=None)
        self.detach(fault)

    def _answer(
        self,
        *,
        source: Source | None,
        target: Target | None,
        snd_settle_mode: i64 = SND_MIXED,
        initial_delivery_count: i64 = -1,
        max_message_size: i64 = 0,
        offered_capabilities: list[str] | None = None,
        properties: dict[str, object] | None = None,
    ) -> None:
        asked = self.asked
        assert asked is not None
        self.state = link_after(self.state, LinkEvent.ATTACH_OUT)
        self.session.put(
            Attach(
                name=self.name,
                handle=self.our_handle,
                role=not asked.role,
                snd_settle_mode=snd_settle_mode,
                rcv_settle_mode=asked.rcv_settle_mode,
                source=source,
                target=target,
                initial_delivery_count=initial_delivery_count,
                max_message_size=max_message_size,
                offered_capabilities=offered_capabilities,
                properties=properties,
            )
        )
        self.asked = None

    def detach(self, fault: Fault | None, *, closed: bool = True) -> None:
        """End the link from our side, with an error where `fault` says why. Twice is once."""
        if self.state is not LinkState.ATTACHED:
            return
        self.state = link_after(self.state, LinkEvent.DETACH_OUT)
        error: Error | None = None if fault is None else error_of(fault)
        self.session.put(Detach(handle=self.our_handle, closed=closed, error=error))
        self.session.link_ending(self)
        self.end(closed=False)

    def on_detach(self, detach: Detach) -> None:
        """The peer detaches, or answers our detach."""
        answer = self.state is LinkState.ATTACHED
        self.state = link_after(self.state, LinkEvent.DETACH_IN)
        if answer:
            self.end(closed=detach.closed)
            self.session.put(Detach(handle=self.our_handle, closed=detach.closed))

    def lost(self) -> None:
        """The session has ended, and this link with it."""
        attached = self.state is LinkState.ATTACHED
        self.state = LinkState.DETACHED
        if attached:
            self.end(closed=False)

    def end(self, *, closed: bool) -> None:
        """Let go of everything and tell the owner; once in the life of an attached link."""
        raise NotImplementedError


def _target(asked: Attach) -> Target | None:
    """The target of an attach, where it is one that a receiver may have."""
    target = asked.target
    return None if isinstance(target, Coordinator) else target


@final
class IncomingLink(Link):
    """A link on which the peer sends; we grant credit, count, assemble and settle."""

    def __init__(self, session: Session, attach: Attach, our_handle: i64) -> None:
        super().__init__(session, attach, our_handle)
        self.handler: IncomingHandler | None = None
        self.delivery_count: i64 = max(0, attach.initial_delivery_count)
        self.credit: i64 = 0
        self.settles_second: Final = attach.rcv_settle_mode == RCV_SECOND
        self._low: i64 = 0
        self._max_message_size: Final[i64] = session.connection.limits.max_message_size
        self._partial: Partial | None = None
        self._tag: bytes | None = None

    def accept(
        self,
        handler: IncomingHandler,
        *,
        source: Source | None,
        target: Target,
        offered_capabilities: list[str] | None = None,
    ) -> None:
        """Answer the attach with the real `target`; deliveries go to `handler`."""
        asked = self.asked
        assert asked is not None
        self.handler = handler
        self._answer(
            source=source,
            target=target,
            snd_settle_mode=asked.snd_settle_mode,
            max_message_size=self._max_message_size,
            offered_capabilities=offered_capabilities,
        )

    def grant(self, credit: i64) -> None:
        """Let the peer send `credit` messages from now on."""
        if self.state is LinkState.ATTACHED:
            self.credit = credit
            self._low = credit >> 1
            self.session.put_link_flow(
                handle=self.our_handle,
                delivery_count=self.delivery_count,
                credit=credit,
                drain=False,
            )

    def on_flow(self, peer_delivery_count: i64) -> None:
        """The sender tells where it stands; after a drain its delivery-count has jumped."""
        if peer_delivery_count >= 0:
            jumped = serial.ahead(peer_delivery_count, self.delivery_count)
            if jumped < 0 or jumped > self.credit:
                raise LinkFault(
                    INVALID_FIELD,
                    f"delivery-count {peer_delivery_count} after {self.delivery_count}"
                    f" with credit {self.credit}",
                )
            self.delivery_count = peer_delivery_count
            self.credit -= jumped
            if jumped > 0:
                self._ask_for_credit()

    def on_transfer(self, transfer: Transfer, data: bytes, at: i64, end: i64) -> None:
        """One frame of a delivery; its payload is `data[at:end]`."""
        if self.state is not LinkState.ATTACHED:
            return  # our detach and the peer's transfer have crossed (2.6.5)
        handler = self.handler
        assert handler is not None
        if self._partial is None:
            self._begin(transfer)
            if not transfer.more and not transfer.aborted:
                if end - at > self._max_message_size:
                    raise self._too_large()
                self._tag = None
                settled = transfer.settled == 1
                handler.delivered(transfer.delivery_id, data, at, end, settled)
                if self.credit <= self._low:
                    self._ask_for_credit()
                return
            self._tag = transfer.tag(data)
            self._partial = Partial(transfer.delivery_id)
        self._continue(transfer, data, at, end)

    def _begin(self, transfer: Transfer) -> None:
        """Check the first frame of a delivery, and count it."""
        if transfer.tag_at < 0:
            raise LinkFault(INVALID_FIELD, "the first transfer of a delivery has a delivery-tag")
        self.session.expect_delivery(transfer.delivery_id)
        if self.credit <= 0:
            raise LinkFault(TRANSFER_LIMIT_EXCEEDED, "no credit is left on this link")
        if transfer.state_at >= 0:
            raise LinkFault(NOT_IMPLEMENTED, "deliveries in a transaction, or resumed with a state")
        if transfer.resume:
            raise LinkFault(NOT_IMPLEMENTED, "resuming deliveries")
        self.delivery_count = (self.delivery_count + 1) & 0xFFFF_FFFF
        self.credit -= 1

    def _continue(self, transfer: Transfer, data: bytes, at: i64, end: i64) -> None:
        """Add a frame to the delivery under way (2.6.14)."""
        partial = self._partial
        assert partial is not None
        if transfer.aborted:
            self._drop_partial()
            return
        if transfer.delivery_id >= 0 and transfer.delivery_id != partial.delivery_id:
            raise LinkFault(
                NOT_ALLOWED,
                f"delivery {transfer.delivery_id} inside of delivery {partial.delivery_id}",
            )
        partial.add(data[at:end], settled=transfer.settled == 1)
        if partial.size > self._max_message_size:
            raise self._too_large()
        connection = self.session.connection
        if partial.transfers > connection.limits.transfers_per_delivery():
            raise LinkFault(RESOURCE_LIMIT_EXCEEDED, "too many transfers in one delivery")
        connection.hold_partial(end - at)
        if not transfer.more:
            self._complete(partial)

    def _complete(self, partial: Partial) -> None:
        handler = self.handler
        assert handler is not None
        self._partial = None
        self.session.connection.hold_partial(-partial.size)
        whole = b"".join(partial.pieces)
        handler.delivered(partial.delivery_id, whole, 0, i64(len(whole)), partial.settled)
        if self.credit <= self._low:
            self._ask_for_credit()

    def _ask_for_credit(self) -> None:
        if self.state is LinkState.ATTACHED and self.handler is not None:
            self.handler.credit_low()

    def _too_large(self) -> LinkFault:
        return LinkFault(
            MESSAGE_SIZE_EXCEEDED, f"a message has at most {self._max_message_size} bytes"
        )

    def _drop_partial(self) -> None:
        if self._partial is not None:
            self.session.connection.hold_partial(-self._partial.size)
            self._partial = None

    def delivery_tag(self) -> bytes:
        """The tag of the delivery that `delivered` is being called for."""
        if self._tag is not None:
            return self._tag
        return self.session.connection.current_tag()

    def accept_delivery(self, delivery_id: i64) -> None:
        """Tell the peer that a delivery is accepted; neighbours join in one range."""
        if self.settles_second:
            self.session.await_settlement(delivery_id)
        self.session.accept(delivery_id, settled=not self.settles_second)

    def settle(self, delivery_id: i64, outcome: State) -> None:
        """Tell the peer any other outcome of a delivery."""
        if self.settles_second:
            self.session.await_settlement(delivery_id)
        self.session.put_disposition(
            role=RECEIVER,
            first=delivery_id,
            last=delivery_id,
            settled=not self.settles_second,
            state=outcome,
        )

    def end(self, *, closed: bool) -> None:
        self._drop_partial()
        handler = self.handler
        self.handler = None
        if handler is not None:
            handler.incoming_ended(closed)


@final
class Partial:
    """A delivery of which not all frames have come."""

    def __init__(self, delivery_id: i64) -> None:
        self.delivery_id: Final[i64] = delivery_id
        self.pieces: Final[list[bytes]] = []
        self.size: i64 = 0
        self.transfers: i64 = 0
        self.settled = False

    def add(self, piece: bytes, *, settled: bool) -> None:
        """Take the payload of one more frame; settled on any of them is settled (2.7.5)."""
        self.pieces.append(piece)
        self.size += i64(len(piece))
        self.transfers += 1
        self.settled = self.settled or settled


@final
class OutgoingLink(Link):
    """A link on which the peer receives; it grants credit, we send within that and the window."""

    def __init__(self, session: Session, attach: Attach, our_handle: i64) -> None:
        super().__init__(session, attach, our_handle)
        self.handler: OutgoingHandler | None = None
        self.delivery_count: i64 = 0
        self.credit: i64 = 0
        self.drain = False
        self.sends_settled: Final = attach.snd_settle_mode == SND_SETTLED
        self.settles_second: Final = attach.rcv_settle_mode == RCV_SECOND
        self._rest: bytes | None = None
        self._rest_at: i64 = 0
        self._rest_id: i64 = 0
        self._rest_settled = False

    def accept(
        self,
        handler: OutgoingHandler,
        *,
        source: Source,
        target: Target | None,
        offered_capabilities: list[str] | None = None,
    ) -> None:
        """Answer the attach with the real `source`; credit and outcomes go to `handler`."""
        self.handler = handler
        self._answer(
            source=source,
            target=target,
            snd_settle_mode=SND_SETTLED if self.sends_settled else SND_UNSETTLED,
            initial_delivery_count=0,
            offered_capabilities=offered_capabilities,
        )

    def on_flow(self, *, peer_delivery_count: i64, link_credit: i64, drain: bool) -> None:
        """The receiver grants credit, or takes it back."""
        handler = self.handler
        if handler is None:
            return
        if link_credit >= 0:
            self.credit = credits.left(
                peer_delivery_count=peer_delivery_count,
                link_credit=link_credit,
                delivery_count=self.delivery_count,
            )
        self.drain = drain
        handler.credit_changed(drain)

    def drained(self) -> None:
        """Nothing more is to be sent: give the rest of the credit up, and say so (2.6.7)."""
        if self.drain and self.state is LinkState.ATTACHED:
            self.delivery_count = credits.drained(self.delivery_count, self.credit)
            self.credit = 0
            self.put_flow()

    def put_flow(self) -> None:
        """Tell the peer where this link stands."""
        self.session.put_link_flow(
            handle=self.our_handle,
            delivery_count=self.delivery_count,
            credit=self.credit,
            drain=self.drain,
        )

    def has_room(self) -> bool:
        """Whether `send` may be called: credit, window, and an output that is not full."""
        session = self.session
        return (
            self.credit > 0
            and session.outgoing_window.left > 0
            and self._rest is None
            and session.connection.may_write()
        )

    def send(self, delivery: Delivery | None, header: bytes, payload: bytes) -> None:
        """Send a message; `has_room` must be true. Without `delivery` it goes settled.

        The rest of a message that does not fit into one frame, the window or
        the output follows as soon as it may.
        """
        session = self.session
        connection = session.connection
        delivery_id = session.next_delivery_id
        session.next_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF
        self.delivery_count = (self.delivery_count + 1) & 0xFFFF_FFFF
        self.credit -= 1
        size = TRANSFER_OVERHEAD + i64(len(header)) + i64(len(payload))
        if delivery is not None:
            delivery.delivery_id = delivery_id
            session.unsettled_out.put(delivery)
        if size > connection.remote_max_frame_size:
            self._rest = header + payload
            self._rest_at = 0
            self._rest_id = delivery_id
            self._rest_settled = delivery is None
            session.unfinished.append(self)
            self.send_rest()
            return
        out = connection.writer_for(size)
        self._put_transfer(
            out, delivery_id, settled=delivery is None, more=False, size=i64(len(header) + len(payload))
        )
        out.write(header)
        if i64(len(payload)) >= REFERENCED_FROM:
            connection.put_reference(payload)
        else:
            out.write(payload)
        session.outgoing_window.send()

    def _put_transfer(
        self, out: BytesWriter, delivery_id: i64, *, settled: bool, more: bool, size: i64
    ) -> None:
        """Write a transfer frame up to its payload of `size` bytes (2.7.5).

        The tag is the delivery-id: unique while unsettled, which is all it must be.
        """
        handle = self.our_handle
        fields: i64 = 17 if handle > 255 else 14
        if more:
            fields += 1
        write_i32_be(out, i32(8 + 3 + 3 + fields + 1 + size))
        write_i32_be(out, i32(0x0200_0000 | self.session.our_channel))
        write_i32_be(out, 0x0053_14C0)
        out.append(u8(fields + 2))
        out.append(6 if more else 5)
        if handle > 255:
            out.append(0x70)
            write_i32_be(out, i32(handle))
        else:
            out.append(0x52)
            out.append(u8(handle))
        out.append(0x70)
        put_u32(out, delivery_id)
        write_i16_be(out, i16(-0x5FFC))  # a0 04
        put_u32(out, delivery_id)
        out.append(0x43)
        out.append(0x41 if settled else 0x42)
        if more:
            out.append(0x41)

    def send_rest(self) -> bool:
        """Send more of an unfinished delivery; False while something is left."""
        rest = self._rest
        if rest is None:
            return True
        session = self.session
        connection = session.connection
        room = connection.remote_max_frame_size - TRANSFER_OVERHEAD
        while session.outgoing_window.left > 0 and connection.may_write():
            end = min(self._rest_at + room, i64(len(rest)))
            more = end < i64(len(rest))
            piece = rest[self._rest_at : end]
            out = connection.writer_for(TRANSFER_OVERHEAD + end - self._rest_at)
            self._put_transfer(
                out, self._rest_id, settled=self._rest_settled, more=more, size=i64(len(piece))
            )
            if i64(len(piece)) >= REFERENCED_FROM:
                connection.put_reference(piece)
            else:
                out.write(piece)
            session.outgoing_window.send()
            self._rest_at = end
            if not more:
                self._rest = None
                return True
        return False

    def end(self, *, closed: bool) -> None:
        handler = self.handler
        self.handler = None
        self._rest = None
        if handler is not None:
            handler.outgoing_ended(closed, self.session.unsettled_out.take_all_of(handler))
