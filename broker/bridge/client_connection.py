"""The client's end of an AMQP connection, without I/O: bytes in, bytes out.

    connection = ClientConnection(container_id=..., host=..., logs_in=True)
    connection.receive(data)    bytes from the broker; changes what the attributes say
    connection.take()           bytes to be written

The owner looks at the attributes after each call of `receive`. Once `failure` is set, the
connection is over. There is one session, on channel 0.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import (
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    SASL_CHALLENGE,
    SASL_MECHANISMS,
    SASL_OUTCOME,
    TRANSFER,
)
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import FRAMING_ERROR, NOT_ALLOWED, ConnectionFault, Fault
from broker.amqp.frames import (
    AMQP_FRAME,
    AMQP_HEADER,
    EMPTY_FRAME,
    HEAD_SIZE,
    SASL_FRAME,
    SASL_HEADER,
    body_at,
    frame_size,
    put_frame,
    put_sasl_frame,
)
from broker.amqp.handshake import check_open
from broker.amqp.outcomes import DeliveryState, Error, Received, read_state
from broker.amqp.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Close,
    Detach,
    Disposition,
    Flow,
    Open,
    Performative,
    Transfer,
    read_attach,
    read_begin,
    read_close,
    read_detach,
    read_end,
    read_flow,
    read_open,
)
from broker.amqp.sasl_frames import (
    SASL_OK,
    SaslInit,
    SaslResponse,
    read_sasl_challenge,
    read_sasl_mechanisms,
    read_sasl_outcome,
)
from broker.amqp.terminus import Source, Target
from broker.bridge.client_frames import (
    FRAME_SIZE_MAX,
    HANDLE_MAX,
    put_flow,
    put_opening,
    put_settled,
)
from broker.bridge.client_links import RESPONSES, ReceivingLink, SendingLink

OUTPUT_FULL: Final[i64] = 256 * 1024
"""Bytes of unwritten output above which no message is added."""

LOST: Final = "connection lost"


@final
class ClientConnection:
    """The state of one connection; `failure` says why it is over, empty while it is not.

    `condition` is the AMQP error condition of the failure, if it has one. `mechanisms` are those
    of the broker's list of SASL mechanisms, `challenge` its latest challenge, until it is taken;
    `outcome` is the code of the login, -1 before. `remote` is the broker's open. `is_blocked`: the
    socket takes no more output.
    """

    def __init__(self, *, container_id: str, host: str, logs_in: bool) -> None:
        self.failure = ""
        self.condition = ""
        self.mechanisms: list[str] | None = None
        self.challenge: bytes | None = None
        self.outcome: i64 = -1
        self.outcome_data: bytes = b""
        self.remote: Open | None = None
        self.has_begun = False
        self.is_blocked = False
        self.window_left: i64 = 0
        self.frame_size_max: i64 = 512
        self.next_delivery_id: i64 = 0
        self.out: BytesWriter = BytesWriter()
        self._container_id: Final = container_id
        self._host: Final = host
        self._kept: bytes = b""
        self._in_sasl = logs_in
        self._expects_header = True
        self._next_outgoing_id: i64 = 0
        self._next_incoming_id: i64 = 0
        self._arrived: i64 = 0
        self._transfer: Final = Transfer()
        self._disposition: Final = Disposition()
        self._senders: Final[dict[int, SendingLink]] = {}
        self._receivers: Final[dict[int, ReceivingLink]] = {}
        self._by_remote: Final[dict[int, SendingLink | ReceivingLink]] = {}
        self.out.write(SASL_HEADER if logs_in else AMQP_HEADER)
        if not logs_in:
            put_opening(self.out, container_id=self._container_id, host=self._host)

    # -- output

    def take(self) -> bytes:
        """Remove and return all output."""
        data = self.out.getvalue()
        if i64(len(data)) > 2 * OUTPUT_FULL:
            self.out = BytesWriter()
        else:
            self.out.truncate(0)
        return data

    def has_output_room(self) -> bool:
        """Return whether messages may be added to the output."""
        return not self.is_blocked and i64(len(self.out)) < OUTPUT_FULL

    def beat(self) -> None:
        """Write an empty frame, by which the other broker sees that this one lives."""
        if self.remote is not None and not self.failure:
            self.out.write(EMPTY_FRAME)

    def _put(self, performative: Performative) -> None:
        put_frame(self.out, 0, performative)

    def count_transfer(self) -> None:
        """Count a transfer frame that has been written."""
        self._next_outgoing_id = (self._next_outgoing_id + 1) & 0xFFFF_FFFF
        self.window_left -= 1

    # -- login and open

    def choose(self, mechanism: str, response: bytes | None) -> None:
        """Answer the list of mechanisms."""
        put_sasl_frame(
            self.out,
            SaslInit(mechanism=mechanism, initial_response=response, hostname=self._host),
        )

    def take_challenge(self) -> bytes | None:
        """Return the challenge, once; None if there is none."""
        challenge = self.challenge
        self.challenge = None
        return challenge

    def respond(self, response: bytes) -> None:
        """Answer the challenge."""
        put_sasl_frame(self.out, SaslResponse(response))

    def close(self) -> None:
        """Write a close, if the connection is open."""
        if self.remote is not None and not self.failure:
            self._put(Close())

    # -- links

    def sender(
        self, name: str, address: str, properties: dict[str, object], *, settled: bool
    ) -> SendingLink:
        """Attach a link on which messages are sent, `settled` or not."""
        handle = self._free_handle()
        link = SendingLink(self, name, handle, is_settled=settled)
        self._senders[handle] = link
        self._put(
            Attach(
                name=name,
                handle=handle,
                role=SENDER,
                snd_settle_mode=1 if settled else 0,
                source=Source(address=self._container_id),
                target=Target(address=address),
                initial_delivery_count=0,
                properties=properties,
            )
        )
        return link

    def receiver(self, name: str, address: str, target: str) -> ReceivingLink:
        """Attach a link on which answers are received; requests name it by its `target`."""
        handle = self._free_handle()
        link = ReceivingLink(name, handle)
        self._receivers[handle] = link
        self._put(
            Attach(
                name=name,
                handle=handle,
                role=RECEIVER,
                source=Source(address=address),
                target=Target(address=target),
            )
        )
        self._put_credit(link)
        return link

    def detach(self, link: SendingLink) -> None:
        """Detach a link; its handle is free once the other broker has answered."""
        if not link.is_detaching:
            link.is_detaching = True
            self._put(Detach(handle=link.handle, closed=True))
            if link.is_over:
                self._forget(link.handle)

    def _free_handle(self) -> int:
        handle = 0
        while handle in self._senders or handle in self._receivers:
            handle += 1
        if handle > HANDLE_MAX:
            raise ConnectionFault(NOT_ALLOWED, "too many links of one bridge")
        return handle

    def _forget(self, handle: i64) -> None:
        self._senders.pop(int(handle), None)
        self._receivers.pop(int(handle), None)

    def _put_credit(self, link: ReceivingLink) -> None:
        self._arrived = 0
        link.granted = RESPONSES
        put_flow(
            self.out,
            next_incoming_id=self._next_incoming_id if self.has_begun else -1,
            next_outgoing_id=self._next_outgoing_id,
            handle=link.handle,
            delivery_count=link.delivery_count,
            link_credit=RESPONSES,
        )

    # -- input

    def receive(self, data: bytes) -> None:
        """Handle the bytes that the other broker has sent."""
        if self.failure:
            return
        if self._kept:
            data = self._kept + data
            self._kept = b""
        at: i64 = 0
        try:
            at = self._frames(data)
        except Fault as fault:
            self.fail(str(fault), fault.condition)
        except Exception as error:  # noqa: BLE001 - a bug may end a connection, not the bridge
            self.fail(f"what the other broker has sent cannot be read: {error!r}"[:500], "")
        if at < i64(len(data)):
            self._kept = data[at:]

    def lost(self) -> None:
        """End the connection, because its stream has ended."""
        self.fail(LOST, "")

    def fail(self, failure: str, condition: str) -> None:
        """End the connection with that failure; the first one counts."""
        if not self.failure:
            self.failure = failure or LOST
            self.condition = condition

    def _frames(self, data: bytes) -> i64:
        at: i64 = 0
        end = i64(len(data))
        while end - at >= HEAD_SIZE and not self.failure:
            if self._expects_header:
                self._on_header(data[at : at + HEAD_SIZE])
                at += HEAD_SIZE
                continue
            size = frame_size(data, at, FRAME_SIZE_MAX)
            if end - at < size:
                break
            self._on_frame(data, at, at + size)
            at += size
        return at

    def _on_header(self, header: bytes) -> None:
        wanted = SASL_HEADER if self._in_sasl else AMQP_HEADER
        if header != wanted:
            raise ConnectionFault(FRAMING_ERROR, "what answers is no broker of AMQP 1.0")
        self._expects_header = False

    def _on_frame(self, data: bytes, at: i64, end: i64) -> None:
        body = body_at(data, at)
        kind = SASL_FRAME if self._in_sasl else AMQP_FRAME
        if data[at + 5] != kind:
            raise ConnectionFault(FRAMING_ERROR, f"a frame of type {data[at + 5]}")
        if body == end:
            return
        code, behind = descriptor_at(data, body, end)
        if self._in_sasl:
            self._on_sasl(code, data, behind, end)
        elif code == TRANSFER:
            self._on_transfer(data, behind, end)
        elif code == DISPOSITION:
            self._on_disposition(data, behind, end)
        elif code == FLOW:
            self._on_flow(read_flow(data, behind, end))
        else:
            self._on_control(code, data, behind, end)

    def _on_sasl(self, code: i64, data: bytes, at: i64, end: i64) -> None:
        if code == SASL_MECHANISMS:
            self.mechanisms = read_sasl_mechanisms(data, at, end).mechanisms
        elif code == SASL_CHALLENGE:
            self.challenge = read_sasl_challenge(data, at, end).challenge
        elif code == SASL_OUTCOME:
            outcome = read_sasl_outcome(data, at, end)
            self.outcome_data = outcome.additional_data or b""
            self.outcome = outcome.code
            if outcome.code == SASL_OK:
                self._in_sasl = False
                self._expects_header = True
                self.out.write(AMQP_HEADER)
                put_opening(self.out, container_id=self._container_id, host=self._host)
        else:
            raise ConnectionFault(FRAMING_ERROR, f"SASL frame {code:#x}")

    def _on_control(self, code: i64, data: bytes, at: i64, end: i64) -> None:
        if code == OPEN:
            remote = read_open(data, at, end)
            check_open(remote)
            self.remote = remote
            self.frame_size_max = remote.max_frame_size
        elif code == BEGIN:
            begin = read_begin(data, at, end)
            self.window_left = begin.incoming_window
            self._next_incoming_id = begin.next_outgoing_id
            self.has_begun = True
        elif code == ATTACH:
            self._on_attach(read_attach(data, at, end))
        elif code == DETACH:
            self._on_detach(read_detach(data, at, end))
        elif code == END:
            self._ended("the session", read_end(data, at, end).error)
        elif code == CLOSE:
            error = read_close(data, at, end).error
            self._put(Close())
            self._ended("the connection", error)
        else:
            raise ConnectionFault(FRAMING_ERROR, f"no performative has descriptor {code:#x}")

    def _ended(self, what: str, error: Error | None) -> None:
        if error is None:
            self.fail(f"the other broker has ended {what}", "")
        else:
            self.fail(
                f"{error.condition}: {error.description or 'no reason given'}"[:500],
                error.condition,
            )

    def _on_attach(self, attach: Attach) -> None:
        wanted: SendingLink | ReceivingLink | None = None
        if attach.role is RECEIVER:
            for sender in self._senders.values():
                if sender.name == attach.name:
                    wanted = sender
        else:
            for receiver in self._receivers.values():
                if receiver.name == attach.name:
                    wanted = receiver
        handle = int(attach.handle)
        if wanted is None or wanted.is_over or wanted in self._by_remote.values():
            raise ConnectionFault(NOT_ALLOWED, "an attach that nobody has asked for")
        if handle > HANDLE_MAX or handle in self._by_remote:
            raise ConnectionFault(NOT_ALLOWED, f"an attach with the handle {handle}")
        if isinstance(wanted, SendingLink):
            wanted.is_attached = attach.target is not None
            wanted.max_message_size = attach.max_message_size
            wanted.properties = attach.properties
        else:
            wanted.is_attached = attach.source is not None
        self._by_remote[handle] = wanted

    def _on_detach(self, detach: Detach) -> None:
        link = self._by_remote.pop(int(detach.handle), None)
        if link is None:
            return
        link.is_over = True
        link.is_attached = False
        error = detach.error
        if error is not None:
            link.condition = error.condition
            link.refusal = f"{error.condition}: {error.description or 'no reason given'}"[:500]
        if isinstance(link, SendingLink):
            if link.is_detaching:
                self._forget(link.handle)
            return
        self._put(Detach(handle=link.handle, closed=True))
        self._forget(link.handle)

    def _on_flow(self, flow: Flow) -> None:
        start = flow.next_incoming_id if flow.next_incoming_id >= 0 else i64(0)
        sent = (self._next_outgoing_id - start) & 0xFFFF_FFFF
        self.window_left = flow.incoming_window - sent
        if flow.handle >= 0:
            link = self._by_remote.get(int(flow.handle))
            if isinstance(link, SendingLink) and flow.link_credit >= 0:
                count = flow.delivery_count if flow.delivery_count >= 0 else i64(0)
                ahead = (link.delivery_count - count) & 0xFFFF_FFFF
                link.credit = flow.link_credit - ahead
                if flow.drain:
                    self._drained(link)
        if flow.echo:
            put_flow(
                self.out,
                next_incoming_id=self._next_incoming_id,
                next_outgoing_id=self._next_outgoing_id,
            )

    def _drained(self, link: SendingLink) -> None:
        """Give up the credit of `link`: the other broker takes nothing more for now (2.6.7)."""
        link.delivery_count = (link.delivery_count + max(link.credit, 0)) & 0xFFFF_FFFF
        link.credit = 0
        put_flow(
            self.out,
            next_incoming_id=self._next_incoming_id,
            next_outgoing_id=self._next_outgoing_id,
            handle=link.handle,
            delivery_count=link.delivery_count,
            link_credit=0,
            drain=True,
        )

    def _on_transfer(self, data: bytes, at: i64, end: i64) -> None:
        transfer = self._transfer
        payload = transfer.read(data, at, end)
        self._next_incoming_id = (self._next_incoming_id + 1) & 0xFFFF_FFFF
        self._arrived += 1
        link = self._by_remote.get(int(transfer.handle))
        if not isinstance(link, ReceivingLink):
            raise ConnectionFault(NOT_ALLOWED, "a transfer on a link that receives nothing")
        if transfer.delivery_id >= 0:
            link.delivery_id = transfer.delivery_id
        if not link.take(data[payload:end], more=transfer.more):
            return
        if transfer.settled <= 0:
            put_settled(self.out, link.delivery_id, link.delivery_id, role=RECEIVER)
        if link.granted <= RESPONSES >> 1:
            self._put_credit(link)

    def _on_disposition(self, data: bytes, at: i64, end: i64) -> None:
        disposition = self._disposition
        disposition.read(data, at, end)
        if not disposition.role:
            return
        state: DeliveryState | None = None
        if disposition.state_at >= 0:
            state = read_state(data, disposition.state_at, end)
        is_settled = disposition.settled
        for link in self._senders.values():
            if link.unsettled:
                link.outcome(disposition.first, disposition.last, state, is_settled=is_settled)
        if not is_settled and state is not None and not isinstance(state, Received):
            put_settled(self.out, disposition.first, disposition.last, role=SENDER)
