"""One session: its windows, its handles, and the dispatch of each frame to its link.

Transfers and dispositions are read without making objects; all other frames
arrive as performatives. Accepted deliveries are combined into ranges, and window
and credit updates into as few flows as the peer needs not to stall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.accepted import NOTHING, AcceptedRange
from broker.amqp.awaited import AwaitedSettlements
from broker.amqp.delivery import Delivery
from broker.amqp.descriptors import ACCEPTED, RECEIVED, TRANSACTIONAL_STATE
from broker.amqp.echoes import Echoes
from broker.amqp.errors import (
    FRAMING_ERROR,
    HANDLE_IN_USE,
    ILLEGAL_STATE,
    INVALID_FIELD,
    NOT_ALLOWED,
    RESOURCE_LIMIT_EXCEEDED,
    UNATTACHED_HANDLE,
    ConnectionFault,
    Fault,
    LinkFault,
    ReattachFault,
    SessionFault,
)
from broker.amqp.frames import AMQP_FRAME, begin_frame, end_frame
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.lifecycle import SessionEvent, SessionState, session_after
from broker.amqp.link import Link
from broker.amqp.outcomes import ACCEPTED as ACCEPTED_STATE
from broker.amqp.outcomes import DeliveryState, State, TransactionalState, error_of, read_state
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Performative,
    Transfer,
)
from broker.amqp.transfer import put_disposition
from broker.amqp.unsettled import UnsettledDeliveries
from broker.amqp.window import IncomingWindow, OutgoingWindow

if TYPE_CHECKING:
    from broker.amqp.connection import Connection

TXN_ID: Final = "txn-id"
"""Property of a flow: the transaction within which its link acquires messages (4.4.3)."""

OUTGOING_WINDOW: Final[i64] = 0x7FFF_FFFF
"""The outgoing-window that the broker announces; it limits nothing (2.5.6)."""


@final
class Session:
    """A session that the peer began on `channel`; the broker answers on `our_channel`.

    `attached` is the number of its links that are attached.
    """

    def __init__(
        self, connection: Connection, begin: Begin, *, channel: i64, our_channel: i64
    ) -> None:
        self.connection: Final = connection
        self.channel: Final[i64] = channel
        self.our_channel: Final[i64] = our_channel
        self.state: SessionState = session_after(SessionState.UNMAPPED, SessionEvent.BEGIN_IN)
        self.incoming_window: Final = IncomingWindow(
            connection.limits.incoming_window, begin.next_outgoing_id
        )
        self.outgoing_window: Final = OutgoingWindow(begin.incoming_window)
        self.attached: i64 = 0
        self.next_delivery_id: i64 = 0
        self.unsettled_out: Final = UnsettledDeliveries()
        self.awaited: Final = AwaitedSettlements()
        self.accepted: Final = AcceptedRange()
        self.unfinished: list[OutgoingLink] = []
        self.partial_deliveries: i64 = 0  # of which a part has arrived
        self.echoes: Final = Echoes()
        self._expected_delivery_id: i64 = -1
        self._remote_handle_max: Final[i64] = begin.handle_max
        self._links: list[Link | None] = []
        self._ours: Final[set[int]] = set()
        self.put(
            Begin(
                remote_channel=channel,
                next_outgoing_id=0,
                incoming_window=connection.limits.incoming_window,
                outgoing_window=OUTGOING_WINDOW,
                handle_max=connection.limits.handle_max,
            )
        )

    # -- frames in

    def on_transfer(self, transfer: Transfer, data: bytes, at: i64, end: i64) -> None:
        """Handle a transfer with its payload in `data[at:end]`; SessionFault if none is allowed."""
        self.incoming_window.take()
        link = self._link(transfer.handle)
        if not isinstance(link, IncomingLink):
            raise SessionFault(NOT_ALLOWED, f"handle {transfer.handle} is a receiver's")
        try:
            link.on_transfer(transfer, data, at, end)
        except LinkFault as fault:
            if transfer.state_at >= 0:
                link.lose_posting(transfer, data, at, fault=fault)
            link.detach(fault, closed=not isinstance(fault, ReattachFault))
        if self.incoming_window.wants_refill():
            self.put_flow()

    def on_disposition(self, disposition: Disposition, data: bytes, end: i64) -> None:
        """Handle outcomes of sent deliveries, or the sender's settlement of its own (2.7.6)."""
        if disposition.role is SENDER:
            if disposition.settled:
                self.awaited.settle(disposition.first, disposition.last)
            return
        if not disposition.settled and (
            disposition.state_code < 0 or disposition.state_code == RECEIVED
        ):
            return  # there is no final outcome yet
        state: DeliveryState | None = None
        if disposition.state_code == ACCEPTED:
            state = ACCEPTED_STATE
        elif disposition.state_at >= 0:
            if disposition.state_code == TRANSACTIONAL_STATE:
                self._retire(disposition, data, end)
                return
            # before deliveries are taken: after a fault all of them must still be unsettled
            state = read_state(data, disposition.state_at, end)
        if disposition.first == disposition.last:
            delivery = self.unsettled_out.take(disposition.first)
            if delivery is None:
                return  # its link was detached, or it is settled already
            taken = [delivery]
        else:
            taken = self.unsettled_out.take_range(disposition.first, disposition.last)
            if not taken:
                return
        if state is ACCEPTED_STATE:
            _tell_accepted(taken)
        else:
            for delivery in taken:
                owner = delivery.sent_to
                if owner is not None:
                    owner.settled(delivery, state)
        if not disposition.settled and state is not None:
            # the receiver settles second, and waits for the broker (2.6.12)
            self.put_disposition(
                role=SENDER,
                first=disposition.first,
                last=disposition.last,
                settled=True,
                state=state,
            )

    def _retire(self, disposition: Disposition, data: bytes, end: i64) -> None:
        """Handle outcomes for a transaction's end; deliveries not settled stay so (4.4.2)."""
        state = read_state(data, disposition.state_at, end)
        assert isinstance(state, TransactionalState)
        if state.outcome is None and not disposition.settled:
            return  # there is no final outcome yet
        unsettled = self.unsettled_out
        taken = unsettled.take_range(disposition.first, disposition.last)
        if not taken:
            late = LinkFault(ILLEGAL_STATE, "a delivery that is settled, or whose link has ended")
            self.connection.owner.transaction_failed(state.txn_id, late)
        if not disposition.settled:
            for delivery in taken:
                unsettled.put_back(delivery)
        for delivery in taken:
            owner = delivery.sent_to  # None if one of the others has ended the link
            if owner is not None:
                owner.retired(delivery, state, disposition.settled)

    def on_flow(self, flow: Flow, now_ms: i64) -> None:
        """Take over the windows, and the credit if the flow names a link (2.7.4)."""
        was_shut = self.outgoing_window.left <= 0
        self.outgoing_window.offered(flow.next_incoming_id, flow.incoming_window)
        self.incoming_window.announced(flow.next_outgoing_id)
        link: Link | None = None
        if flow.handle >= 0:
            link = self._link(flow.handle)
            try:
                self._flow_of(link, flow)
            except LinkFault as fault:
                link.detach(fault)
        if was_shut or self.unfinished:
            self.room_again()
        if flow.echo:
            self.echoes.request(self, link, now_ms)

    def _flow_of(self, link: Link, flow: Flow) -> None:
        if isinstance(link, OutgoingLink):
            if flow.properties and TXN_ID in flow.properties:
                link.acquire_within(flow.properties[TXN_ID])
            link.on_flow(
                peer_delivery_count=flow.delivery_count,
                link_credit=flow.link_credit,
                drain=flow.drain,
            )
        elif isinstance(link, IncomingLink):
            link.on_flow(flow.delivery_count)

    def on_attach(self, attach: Attach) -> None:
        """Create the link end that answers; the owner decides. SessionFault for a used handle."""
        handle = attach.handle
        self._check_range(handle)
        while i64(len(self._links)) <= handle:
            self._links.append(None)
        if self._links[handle] is not None:
            raise SessionFault(HANDLE_IN_USE, f"handle {handle} is attached")
        our_handle = self._claim_handle(handle)
        if attach.role is SENDER:
            incoming = IncomingLink(self, attach, our_handle)
            self._links[handle] = incoming
            self._judge(incoming, attach)
        else:
            outgoing = OutgoingLink(self, attach, our_handle)
            self._links[handle] = outgoing
            self._judge(outgoing, attach)

    def _claim_handle(self, wanted: i64) -> i64:
        """Return the peer's own number if it is free, to make traces easy to read, else another."""
        ours = int(wanted)
        if wanted > self._remote_handle_max or ours in self._ours:
            ours = 0
            while ours in self._ours:
                ours += 1
            if ours > self._remote_handle_max:
                raise SessionFault(RESOURCE_LIMIT_EXCEEDED, "no handle is left within handle-max")
        self._ours.add(ours)
        return ours

    def _judge(self, link: Link, attach: Attach) -> None:
        try:
            if attach.fault is not None:
                raise attach.fault
            if isinstance(link, IncomingLink):
                self.connection.owner.incoming_attached(link, attach)
            elif isinstance(link, OutgoingLink):
                self.connection.owner.outgoing_attached(link, attach)
        except LinkFault as fault:
            link.refuse(fault)

    def on_detach(self, detach: Detach) -> None:
        """Handle the peer's detach, or its answer to the broker's."""
        link = self._link(detach.handle)
        self._links[detach.handle] = None
        link.on_detach(detach)
        self._ours.discard(int(link.our_handle))
        self.forget(link)

    def _link(self, handle: i64) -> Link:
        if handle < i64(len(self._links)):
            link = self._links[handle]
            if link is not None:
                return link
        self._check_range(handle)
        raise SessionFault(UNATTACHED_HANDLE, f"handle {handle} is not attached")

    def _check_range(self, handle: i64) -> None:
        handle_max = self.connection.limits.handle_max
        if handle > handle_max:
            raise ConnectionFault(FRAMING_ERROR, f"handle {handle} is above {handle_max} (2.7.2)")

    def forget(self, link: Link) -> None:
        """Send nothing more on `link`."""
        self.echoes.forget(link)
        if isinstance(link, OutgoingLink) and link in self.unfinished:
            self.unfinished.remove(link)

    # -- the life of the session

    def on_end(self) -> None:
        """Handle the peer's end, or its answer to the broker's."""
        answer = self.state is SessionState.MAPPED
        self.state = session_after(self.state, SessionEvent.END_IN)
        if answer:
            self._drop_links()
            self.flush_accepted()
            self.put(End())
            self.connection.owner.session_ended(self)

    def end(self, fault: Fault) -> None:
        """End the session from the broker's side; frames that still arrive are ignored."""
        self.state = session_after(self.state, SessionEvent.END_OUT)
        self._drop_links()
        self.flush_accepted()
        self.put(End(error=error_of(fault)))
        self.connection.owner.session_ended(self)

    def lost(self) -> None:
        """End the session because its connection is over."""
        if self.state is SessionState.MAPPED:
            self._drop_links()
        self.state = SessionState.UNMAPPED

    def _drop_links(self) -> None:
        links = self._links
        self._links = []
        self._ours.clear()
        self.echoes.clear()
        self.unfinished = []
        self.unsettled_out.part()
        for link in links:
            if link is not None:
                link.lost()
        self.unsettled_out.clear()
        self.awaited.clear()

    # -- deliveries in

    def expect_delivery(self, delivery_id: i64) -> None:
        """Raise LinkFault or SessionFault unless a new delivery has the next id (2.7.5)."""
        expected = self._expected_delivery_id
        if delivery_id < 0:
            raise LinkFault(INVALID_FIELD, "the first transfer of a delivery has a delivery-id")
        if expected >= 0 and delivery_id != expected:
            raise SessionFault(INVALID_FIELD, f"delivery-id {delivery_id}, {expected} was next")
        self._expected_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF

    def skip_delivery(self, delivery_id: i64) -> None:
        """Count an ignored delivery, if this is its first frame."""
        expected = self._expected_delivery_id
        if delivery_id >= 0 and (expected < 0 or delivery_id == expected):
            self._expected_delivery_id = (delivery_id + 1) & 0xFFFF_FFFF

    def accept(self, delivery_id: i64, *, settled: bool, state: State = ACCEPTED_STATE) -> None:
        """Accept a delivery that does not continue the range `accepted`: begin another with it."""
        self.flush_accepted()
        if self.state is not SessionState.MAPPED:
            return  # accepted late, once durable: the session has ended
        self.accepted.begin(delivery_id, settled, state)
        self.connection.owes_dispositions(self)

    def flush_accepted(self) -> None:
        """Write the disposition of the range `accepted`, if there is one."""
        accepted = self.accepted
        first = accepted.first
        if first != NOTHING:
            accepted.clear()
            self._put_disposition(
                role=RECEIVER,
                first=first,
                last=accepted.last,
                settled=accepted.settled,
                state=accepted.state,
            )

    # -- frames out

    def put(self, performative: Performative) -> None:
        """Send a frame on this session's channel."""
        self.connection.output.put(self.our_channel, performative)

    def put_disposition(
        self, *, role: bool, first: i64, last: i64, settled: bool, state: State
    ) -> None:
        """Send a disposition, after that of the range `accepted`."""
        if not self.takes_frames():
            return
        self.flush_accepted()
        self._put_disposition(role=role, first=first, last=last, settled=settled, state=state)

    def _put_disposition(
        self, *, role: bool, first: i64, last: i64, settled: bool, state: State
    ) -> None:
        output = self.connection.output
        out = output.writer()
        start = begin_frame(out, AMQP_FRAME, self.our_channel)
        put_disposition(out, role=role, first=first, last=last, settled=settled, state=state)
        if i64(len(out)) - start > output.frame_size_max:
            # the peer's own outcome does not fit its frame size: leave it out, the peer knows it
            out.truncate(int(start))
            start = begin_frame(out, AMQP_FRAME, self.our_channel)
            put_disposition(out, role=role, first=first, last=last, settled=settled, state=None)
        end_frame(out, start)

    def takes_frames(self) -> bool:
        """Return whether frames may be written for its links: neither it nor its connection ends.

        A link that ends with them may end others of theirs, by the node that it deletes.
        """
        return self.state is SessionState.MAPPED and not self.connection.is_ending

    def put_flow(self) -> None:
        """Open the whole incoming window again, and announce it."""
        self.put_link_flow(handle=-1, delivery_count=-1, credit=-1, drain=False)

    def put_link_flow(
        self, *, handle: i64, delivery_count: i64, credit: i64, drain: bool, txn_id: bytes = b""
    ) -> None:
        """Send a flow for a link, or for the session alone if `handle` is -1.

        `txn_id` is the transaction within which the link acquires, empty for none.
        """
        if not self.takes_frames():
            return
        self.put(
            Flow(
                next_incoming_id=self.incoming_window.next_id,
                incoming_window=self.incoming_window.refill(),
                next_outgoing_id=self.outgoing_window.next_id,
                outgoing_window=OUTGOING_WINDOW,
                handle=handle,
                delivery_count=delivery_count,
                link_credit=credit,
                drain=drain,
                properties={TXN_ID: txn_id} if txn_id else None,
            )
        )

    def room_again(self) -> None:
        """Continue with deliveries that were stopped: the window or the output has room."""
        if self.outgoing_window.left <= 0:
            return
        if self.unfinished:
            self.unfinished = [link for link in self.unfinished if not link.send_rest()]
        if self.connection.output.request_room():
            for link in self._links:
                if isinstance(link, OutgoingLink):
                    link.room_again()


def _tell_accepted(deliveries: list[Delivery]) -> None:
    """Call the owners of accepted deliveries, once for each run of deliveries of an owner."""
    count = i64(len(deliveries))
    start: i64 = 0
    while start < count:
        owner = deliveries[start].sent_to
        end = start + 1
        while end < count and deliveries[end].sent_to is owner:
            end += 1
        if owner is not None:
            owner.accepted(deliveries if end - start == count else deliveries[start:end])
        start = end
