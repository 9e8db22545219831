"""A link on which the peer receives: it grants credit, the broker sends within it and a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64

from broker.amqp import credit as credits
from broker.amqp.delivery import Delivery
from broker.amqp.encode import put_u32
from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.events import AbortListener, OutgoingOwner, Supply
from broker.amqp.frames import AMQP_FRAME, begin_frame, end_frame
from broker.amqp.lifecycle import LinkState
from broker.amqp.link import Link
from broker.amqp.outcomes import State
from broker.amqp.output import Output
from broker.amqp.performatives import RCV_SECOND, SENDER, SND_SETTLED, SND_UNSETTLED, Attach
from broker.amqp.terminus import Source, Target
from broker.amqp.transfer import put_aborted, put_transfer
from broker.amqp.unsettled_map import UnsettledStates

if TYPE_CHECKING:
    from broker.amqp.session import Session

TRANSFER_OVERHEAD: Final[i64] = 40
"""Maximum bytes of a transfer frame beside its payload, if the tag is that of its delivery-id."""

STATE_OVERHEAD: Final[i64] = 96
"""Maximum bytes of a transfer frame with a tag of its own, and a state, beside its payload."""

REFERENCED_FROM: Final[i64] = 4096
"""Payloads of at least this many bytes are sent by reference; copying smaller ones is faster."""


@final
class OutgoingLink(Link):
    """A link on which the peer receives; it grants credit, and the broker sends within it.

    `_rest` is the part of an unfinished delivery that is at hand, None if there is none. Large
    messages get it piece by piece from `_supply`, which still has to give `_supply_left` bytes.
    If there is an `_aborting`, the abort of the delivery waits for the window instead of the rest.
    `txn_id` is the transaction within which messages are acquired now, empty for none.
    """

    def __init__(self, session: Session, attach: Attach, our_handle: i64) -> None:
        super().__init__(session, attach, our_handle)
        self.owner: OutgoingOwner | None = None
        self.output: Final[Output] = session.connection.output
        self.delivery_count: i64 = 0
        self.credit: i64 = 0
        self.drain = False
        self.sends_settled: Final = attach.snd_settle_mode == SND_SETTLED
        self.settles_second: Final = attach.rcv_settle_mode == RCV_SECOND
        self._rest: bytes | None = None
        self._rest_at: i64 = 0
        self._rest_id: i64 = 0
        self._rest_settled = False
        self._rest_format: i64 = 0
        self._rest_tag = b""
        self._rest_first: bytes = b""
        self._supply: Supply | None = None
        self._supply_left: i64 = 0
        self._aborting: AbortListener | None = None
        self.txn_id = b""

    def accept(
        self,
        owner: OutgoingOwner,
        *,
        source: Source,
        target: Target | None,
        offered_capabilities: list[str] | None = None,
        unsettled: UnsettledStates | None = None,
    ) -> None:
        """Answer with the actual `source`, and what it has kept `unsettled`; call `owner` later."""
        self.owner = owner
        self._answer(
            source=source,
            target=target,
            snd_settle_mode=SND_SETTLED if self.sends_settled else SND_UNSETTLED,
            initial_delivery_count=0,
            offered_capabilities=offered_capabilities,
            unsettled=unsettled,
        )

    def on_flow(self, *, peer_delivery_count: i64, link_credit: i64, drain: bool) -> None:
        """Take over the credit that the receiver grants or takes back."""
        owner = self.owner
        if owner is None:
            return
        if link_credit >= 0:
            self.credit = credits.left(
                peer_delivery_count=peer_delivery_count,
                link_credit=link_credit,
                delivery_count=self.delivery_count,
            )
        self.drain = drain
        if drain and self.credit == 0 and self._rest is None:
            self.put_flow()  # a second drain, or one sent while the last of the credit was used
        owner.credit_changed(drain)

    def room_again(self) -> None:
        """Let the owner continue within the credit: the window or the output has room."""
        owner = self.owner
        if owner is not None and self.credit > 0:
            owner.credit_changed(self.drain)

    def drained(self) -> None:
        """Give up the remaining credit and report that, since nothing more is to be sent (2.6.7).

        No effect while a delivery is unfinished: `credit_changed` is called again after it.
        """
        if self.drain and self.state is LinkState.ATTACHED and self._rest is None:
            self.delivery_count = credits.drained(self.delivery_count, self.credit)
            self.credit = 0
            self.put_flow()

    def put_flow(self) -> None:
        self.session.put_link_flow(
            handle=self.our_handle,
            delivery_count=self.delivery_count,
            credit=self.credit,
            drain=self.drain,
            txn_id=self.txn_id,
        )

    def acquire_within(self, txn_id: object) -> None:
        """Acquire messages within that transaction, None for none; LinkFault if that cannot be."""
        if txn_id is not None and not isinstance(txn_id, bytes):
            raise LinkFault(INVALID_FIELD, "the txn-id of a flow is a binary (4.4.3)")
        if self.owner is not None:
            self.owner.acquire_within(txn_id)

    def has_room(self) -> bool:
        """Return whether `send` may be called: credit, window, output, no unfinished delivery."""
        return (
            self.credit > 0
            and self.session.outgoing_window.left > 0
            and self._rest is None
            and self.output.request_room()
        )

    def send(
        self, delivery: Delivery | None, header: bytes, payload: bytes, *, message_format: i64 = 0
    ) -> None:
        """Send a message; `has_room` must be true. Without `delivery` it is sent settled.

        The rest of a message that does not fit into one frame, the window or
        the output is sent as soon as they have room.
        """
        session = self.session
        output = self.output
        # `begin_delivery`, written out here: each message passes
        delivery_id = session.next_delivery_id
        session.next_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF
        self.delivery_count = (self.delivery_count + 1) & 0xFFFF_FFFF
        self.credit -= 1
        size = i64(len(header)) + i64(len(payload))
        if delivery is not None:
            delivery.delivery_id = delivery_id
            session.unsettled_out.put(delivery)
            if not session.unsettled_out.is_noted:
                output.note(session.unsettled_out)
        if size + TRANSFER_OVERHEAD > output.frame_size_max:
            self._rest = header + payload
            self._rest_at = 0
            self._rest_id = delivery_id
            self._rest_settled = delivery is None
            self._rest_format = message_format
            if not self.send_rest():
                session.unfinished.append(self)
            return
        out = output.writer()
        self._put_transfer(
            out,
            delivery_id,
            settled=delivery is None,
            more=False,
            message_format=message_format,
            size=size,
        )
        out.write(header)
        if i64(len(payload)) >= REFERENCED_FROM:
            output.put_reference(payload)
        else:
            out.write(payload)
        session.outgoing_window.send()

    def send_large(
        self,
        delivery: Delivery | None,
        first: bytes,
        supply: Supply,
        *,
        size: i64,
        message_format: i64 = 0,
    ) -> None:
        """Like `send`, for `first` and the pieces of `supply`, `size` bytes in all.

        Nothing is sent before the supply has returned a piece.
        """
        self._rest_id = self.begin_delivery(delivery)
        self._rest = b""
        self._rest_at = 0
        self._rest_settled = delivery is None
        self._rest_format = message_format
        self._rest_first = first
        self._supply = supply
        self._supply_left = size
        if not self.send_rest():
            self.session.unfinished.append(self)

    def begin_delivery(self, unsettled: Delivery | None) -> i64:
        """Use up one credit; return the id of the delivery that it is for.

        If it is `unsettled`, it gets that id, and is known to the session until it is settled.
        """
        session = self.session
        delivery_id = session.next_delivery_id
        session.next_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF
        self.delivery_count = (self.delivery_count + 1) & 0xFFFF_FFFF
        self.credit -= 1
        if unsettled is not None:
            unsettled.delivery_id = delivery_id
            session.unsettled_out.put(unsettled)
            if not session.unsettled_out.is_noted:
                self.output.note(session.unsettled_out)
        return delivery_id

    def send_tagged(
        self,
        delivery: Delivery,
        payload: bytes,
        *,
        tag: bytes = b"",
        state: State | None = None,
        resume: bool = False,
        supply: Supply | None = None,
        supplied: i64 = 0,
        message_format: i64 = 0,
    ) -> None:
        """Like `send`, with a `tag` or a `state`, and `supplied` bytes of a `supply`.

        The state holds for the whole delivery. On a link that sends settled it is settled.
        `resume`: the peer had the delivery on an earlier link (2.6.13).
        """
        self._rest_id = self.begin_delivery(None if self.sends_settled else delivery)
        delivery.delivery_id = self._rest_id
        self._rest_settled = self.sends_settled
        self._rest_format = message_format
        self._rest_tag = tag
        sent = min(i64(len(payload)), self.output.frame_size_max - STATE_OVERHEAD)
        more = sent < i64(len(payload)) or supply is not None
        self._put_tagged(payload[:sent], more=more, state=state, resume=resume)
        if not more:
            self._rest_tag = b""
            return
        self._rest = payload
        self._rest_at = sent
        self._supply = supply
        self._supply_left = i64(len(payload)) - sent + supplied
        if not self.send_rest():
            self.session.unfinished.append(self)

    def abort(self, delivery: Delivery, listener: AbortListener) -> bool:
        """Abort `delivery` if it is unfinished: its acquisition is rolled back (4.4.3).

        Return whether it was. The abort waits for the window; `listener` is called after it.
        """
        if self._rest is None or self._rest_id != delivery.delivery_id:
            return False
        tag = self._rest_tag
        self._drop_rest()
        self._rest = b""
        self._rest_tag = tag
        self._aborting = listener
        if self.send_rest():
            self.room_again()
        return True

    def supplied(self) -> None:
        """Continue to send: the supply has more pieces."""
        if self._supply is not None and self.state is LinkState.ATTACHED:
            self.session.room_again()

    def take_unfinished(self) -> Delivery | None:
        """Remove the large delivery, whose supply has failed, from the unsettled map; return it.

        None if it was sent settled, the peer has settled it, or no large delivery is being sent.
        """
        if self._supply is None or self.state is not LinkState.ATTACHED or self._rest_settled:
            return None
        return self.session.unsettled_out.take(self._rest_id)

    def break_off(self, fault: LinkFault) -> None:
        """Abort the large delivery, whose supply has failed, and end the link with `fault`.

        The session ends instead if its window has no room for the abort.
        """
        if self._supply is None or self.state is not LinkState.ATTACHED:
            return
        session = self.session
        if session.outgoing_window.left > 0:
            self._put_aborted()
            self.detach(fault)
        else:
            session.end(fault)

    def _put_aborted(self) -> None:
        """Abort the unfinished delivery.

        Written even if nothing of it was sent: the next delivery-id must not leave this one out.
        """
        out = self.output.writer()
        start = begin_frame(out, AMQP_FRAME, self.session.our_channel)
        put_aborted(
            out,
            handle=self.our_handle,
            delivery_id=self._rest_id,
            settled=self._rest_settled,
            message_format=self._rest_format,
            tag=self._rest_tag,
        )
        end_frame(out, start)
        self.session.outgoing_window.send()

    def _put_transfer(
        self,
        out: BytesWriter,
        delivery_id: i64,
        *,
        settled: bool,
        more: bool,
        message_format: i64,
        size: i64,
    ) -> None:
        """Write a transfer frame up to its payload of `size` bytes (2.7.5).

        The tag is the delivery-id, since it needs to be unique only while unsettled.
        """
        handle = self.our_handle
        fields = i64(17) if handle > 255 else i64(14)
        count = i64(6) if more else i64(5)
        if more:
            fields += 1
        if message_format != 0:
            fields += 4
        write_i32_be(out, i32(8 + 3 + 3 + fields + 1 + size))
        write_i32_be(out, i32(0x0200_0000 | self.session.our_channel))
        write_i32_be(out, 0x0053_14C0)
        write_i16_be(out, i16((fields + 2) << 8 | count))
        if handle > 255:
            out.append(0x70)
            write_i32_be(out, i32(handle))
        else:
            write_i16_be(out, i16(0x5200 | handle))
        out.append(0x70)
        put_u32(out, delivery_id)
        write_i16_be(out, i16(-0x5FFC))  # a0 04
        put_u32(out, delivery_id)
        if message_format == 0:
            out.append(0x43)
        else:
            out.append(0x70)
            put_u32(out, message_format)
        out.append(0x41 if settled else 0x42)
        if more:
            out.append(0x41)

    def send_rest(self) -> bool:
        """Send more of the unfinished delivery; return False while something is left."""
        rest = self._rest
        if rest is None:
            return True
        if self._supply is not None:
            return self._send_supplied(self._supply)
        if self._aborting is not None:
            return self._send_abort()
        window = self.session.outgoing_window
        output = self.output
        room = self._room_in_frame()
        while window.left > 0 and output.request_room():
            end = min(self._rest_at + room, i64(len(rest)))
            more = end < i64(len(rest))
            self._put_piece(rest[self._rest_at : end], more=more)
            self._rest_at = end
            if not more:
                self._rest = None
                self._rest_tag = b""
                return True
        return False

    def _room_in_frame(self) -> i64:
        """Return how many bytes of the unfinished delivery fit into its next frame."""
        overhead = STATE_OVERHEAD if self._rest_tag else TRANSFER_OVERHEAD
        return self.output.frame_size_max - overhead

    def _send_supplied(self, supply: Supply) -> bool:
        window = self.session.outgoing_window
        output = self.output
        room = self._room_in_frame()
        rest = self._rest
        assert rest is not None
        while window.left > 0 and output.request_room():
            if self._rest_at == i64(len(rest)):
                more = supply.take()
                if more is None:
                    return False
                rest = self._rest_first + more if self._rest_first else more
                self._rest_first = b""
                self._rest = rest
                self._rest_at = 0
            end = min(self._rest_at + room, i64(len(rest)))
            piece = rest[self._rest_at : end]
            self._supply_left -= end - self._rest_at
            self._rest_at = end
            self._put_piece(piece, more=self._supply_left > 0)
            if self._supply_left == 0:
                self._drop_rest()
                return True
        return False

    def _send_abort(self) -> bool:
        if self.session.outgoing_window.left <= 0:
            return False
        self._put_aborted()
        self._drop_rest()
        return True

    def _put_piece(self, piece: bytes, *, more: bool) -> None:
        if self._rest_tag:
            self._put_tagged(piece, more=more)
            return
        output = self.output
        size = i64(len(piece))
        out = output.writer()
        self._put_transfer(
            out,
            self._rest_id,
            settled=self._rest_settled,
            more=more,
            message_format=self._rest_format,
            size=size,
        )
        if size >= REFERENCED_FROM:
            output.put_reference(piece)
        else:
            out.write(piece)
        self.session.outgoing_window.send()

    def _put_tagged(
        self, piece: bytes, *, more: bool, state: State | None = None, resume: bool = False
    ) -> None:
        """Write a frame of a delivery with a state or a tag of its own: all frames have the tag."""
        out = self.output.writer()
        start = begin_frame(out, AMQP_FRAME, self.session.our_channel)
        put_transfer(
            out,
            handle=self.our_handle,
            delivery_id=self._rest_id,
            settled=self._rest_settled,
            message_format=self._rest_format,
            more=more,
            state=state,
            tag=self._rest_tag,
            resume=resume,
        )
        out.write(piece)
        end_frame(out, start)
        self.session.outgoing_window.send()

    def _drop_rest(self) -> None:
        supply = self._supply
        self._rest = None
        self._rest_tag = b""
        self._rest_first = b""
        self._supply = None
        aborting = self._aborting
        self._aborting = None
        if supply is not None:
            supply.close()
        if aborting is not None:
            aborting.aborted()

    def settle(self, delivery_id: i64, outcome: State) -> None:
        """Settle a delivery whose outcome the peer gave within a transaction (core 4.4.2)."""
        if self.state is LinkState.ATTACHED:
            self.session.put_disposition(
                role=SENDER, first=delivery_id, last=delivery_id, settled=True, state=outcome
            )

    def end(self, *, closed: bool) -> None:
        owner = self.owner
        self.owner = None
        self._drop_rest()
        if owner is not None:
            owner.outgoing_ended(closed, self.session.unsettled_out.take_all_of(owner))
