"""A connection without its socket: bytes in, calls to its owner, bytes out.

    connection = Connection(owner, limits, ...)
    connection.receive(data, now_ms)        bytes from the peer; calls the owner's methods
    connection.data_to_send(now_ms)         bytes to be written; called when the last are written
    connection.tick(now_ms)                 when `next_deadline_ms` is reached
    connection.receive_eof()                the peer has disconnected

Once `is_over`, the owner writes what `data_to_send` still returns and closes the
socket. A `Fault` ends what its class says; any other exception is a bug and
closes the connection with `amqp:internal-error`, without detail.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp import handshake
from broker.amqp.channels import Channels
from broker.amqp.deadlines import NO_DEADLINE, Deadlines, earlier, is_due
from broker.amqp.decode import descriptor_at, u16_at
from broker.amqp.descriptors import (
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    TRANSFER,
)
from broker.amqp.errors import (
    FRAMING_ERROR,
    ILLEGAL_STATE,
    INTERNAL_ERROR,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    ConnectionFault,
    Fault,
    SessionFault,
)
from broker.amqp.events import ENDED, ConnectionOwner
from broker.amqp.frames import (
    AMQP_FRAME,
    EMPTY_FRAME,
    HEAD_SIZE,
    SASL_FRAME,
    body_at,
    frame_size,
)
from broker.amqp.input import Input
from broker.amqp.lifecycle import ConnectionEvent, ConnectionState, connection_after
from broker.amqp.limits import BUFFER_BEFORE_OPEN, Limits
from broker.amqp.outcomes import error_of
from broker.amqp.output import Output
from broker.amqp.performatives import (
    Begin,
    Close,
    Disposition,
    Open,
    Transfer,
    read_attach,
    read_begin,
    read_close,
    read_detach,
    read_end,
    read_flow,
    read_open,
)
from broker.amqp.sasl_frames import SASL_OK, SASL_SYS
from broker.amqp.sasl_server import SaslServer
from broker.amqp.session import Session


@final
class Connection:
    """The server's end of an AMQP connection (core 2.4).

    `is_ending` is True once its sessions have begun to end with it, `closed_in_order` if
    the reason was a close of the peer's without an error.
    """

    def __init__(
        self,
        owner: ConnectionOwner,
        limits: Limits,
        *,
        container_id: str,
        mechanisms: list[str],
        requires_sasl: bool,
        now_ms: i64,
    ) -> None:
        self.owner: ConnectionOwner = owner
        self.limits: Final = limits
        self.state: ConnectionState = ConnectionState.START
        self.is_over = False
        self.end_reason = "connection lost"
        self.is_ending = False
        self.closed_in_order = False
        self.output: Final = Output(owner)
        self.partial_postings: Final[dict[bytes, int]] = {}
        self.next_deadline_ms: i64 = now_ms + limits.handshake_timeout_ms
        self._container_id: Final = container_id
        self._sasl: SaslServer | None = SaslServer(mechanisms)
        self._requires_sasl: Final = requires_sasl
        self._open_sent = False
        self.times: Final = Deadlines(limits, now_ms)
        self._input: Final = Input()
        self._data: bytes = b""
        self._transfer: Final = Transfer()
        self._disposition: Final = Disposition()
        self.partial_bytes: i64 = 0
        self.channels: Final = Channels(limits.channel_max)
        self._owing: list[Session] = []

    # -- input

    def receive(self, data: bytes, now_ms: i64) -> None:
        """Handle the bytes that the peer has sent. An incomplete frame is kept for later calls."""
        if self.is_over:
            return
        self.times.last_input_ms = now_ms
        whole = self._input.join(data)
        if whole is None:
            self._check_input()
        else:
            self._take(whole, now_ms)

    def _take(self, data: bytes, now_ms: i64) -> None:
        self._data = data
        at: i64 = 0
        try:
            at = self._frames(data, now_ms)
        except Fault as fault:
            self.close(fault)
            at = i64(len(data))
        except Exception as error:  # noqa: BLE001 - a bug may end one connection, not the broker
            self.owner.failed(error)
            self.close(ConnectionFault(INTERNAL_ERROR))
            at = i64(len(data))
        self._data = b""
        self._keep(data, at, now_ms)

    def _keep(self, data: bytes, at: i64, now_ms: i64) -> None:
        """Keep the input from `at` on for the next `receive`."""
        times = self.times
        if at == i64(len(data)) or self.is_over:
            times.partial_ms = NO_DEADLINE
            return
        self._input.keep(data, at)
        if not self._input.is_held and (at > 0 or times.partial_ms == NO_DEADLINE):
            times.frame_begun(now_ms)
            self.deadline_at(times.partial_ms)
        self._check_input()

    def go_on(self, now_ms: i64) -> None:
        """Handle the input that was held for SASL's outcome or since `input_rests`."""
        if self.is_over:
            return
        self._input.is_held = False
        if self._input.size > 0:
            self._take(self._input.take(), now_ms)

    def hold_frames(self) -> None:
        """Handle no further frame until `go_on`."""
        self._input.is_held = True

    def _check_input(self) -> None:
        """Close the connection if too much input is kept before the broker has sent its open."""
        if not self._open_sent and self._input.size > BUFFER_BEFORE_OPEN:
            self.close(ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "too much before open"))
            self._input.clear()

    def _frames(self, data: bytes, now_ms: i64) -> i64:
        """Handle every complete frame in `data`; return the position after the last of them."""
        limits, end = self.limits, i64(len(data))
        at: i64 = 0
        while end - at >= HEAD_SIZE and not self._input.is_held and not self.is_over:
            if handshake.expects_header(self.state):
                self._on_header(data[at : at + HEAD_SIZE])
                at += HEAD_SIZE
                continue
            limit = limits.max_frame_size if self._open_sent else limits.early(self._sasl is None)
            size = frame_size(data, at, limit)
            if end - at < size:
                self._input.wanted = size
                return at
            self._on_frame(data, at, at + size, now_ms)
            at += size
        self._input.wanted = HEAD_SIZE
        return at

    def _on_header(self, header: bytes) -> None:
        out = self.output.writer()
        event = handshake.header_event(header, self.state, requires_sasl=self._requires_sasl)
        if event is None:
            out.write(handshake.wanted_header(self.state, requires_sasl=self._requires_sasl))
            self._over()
            return
        self.state = connection_after(self.state, event)
        out.write(header)
        if self.state is ConnectionState.SASL and self._sasl is not None:
            self._sasl.offer(out)
        else:
            self._sasl = None
            self.times.handshake_ms = NO_DEADLINE

    def _on_frame(self, data: bytes, at: i64, end: i64, now_ms: i64) -> None:
        body = body_at(data, at)
        if self.state is ConnectionState.OPENED and data[at + 5] == AMQP_FRAME:
            if body == end:
                self.channels.check_range(u16_at(data, at + 6))
                return
            if end - body > 2 and data[body] == 0 and data[body + 1] == 0x53:
                code = i64(data[body + 2])
                behind = body + 3
            else:
                code, behind = descriptor_at(data, body, end)
            if code == TRANSFER:
                session = self.channels.session(u16_at(data, at + 6))
                if session is not None:
                    self._on_transfer(session, data, behind, end)
            elif code == DISPOSITION:
                session = self.channels.session(u16_at(data, at + 6))
                if session is not None:
                    self._disposition.read(data, behind, end)
                    session.on_disposition(self._disposition, data, end)
            else:
                self._on_control(code, u16_at(data, at + 6), data, behind, end, now_ms)
            return
        self._on_other_frame(data, at, body, end)

    def _on_transfer(self, session: Session, data: bytes, at: i64, end: i64) -> None:
        try:
            payload = self._transfer.read(data, at, end)
            session.on_transfer(self._transfer, data, payload, end)
        except SessionFault as fault:
            session.end(fault)

    def _on_other_frame(self, data: bytes, at: i64, body: i64, end: i64) -> None:
        """Handle a frame that arrives before open or after the broker's close."""
        kind = SASL_FRAME if self.state is ConnectionState.SASL else AMQP_FRAME
        if data[at + 5] != kind:
            text = f"frame type {data[at + 5]} while {self.state.value}"
            raise ConnectionFault(FRAMING_ERROR, text)
        if self.state is ConnectionState.HEADERS_EXCHANGED and u16_at(data, at + 6) != 0:
            raise ConnectionFault(FRAMING_ERROR, "before open there is only channel 0 (2.4.1)")
        if body == end:
            if kind == SASL_FRAME:
                raise ConnectionFault(FRAMING_ERROR, "an empty SASL frame (5.3.1)")
            return
        code, behind = descriptor_at(data, body, end)
        if self.state is ConnectionState.CLOSE_SENT:
            if code == CLOSE:
                self._over()
        elif self._sasl is not None:
            self._input.is_held = True
            self._sasl.receive(code, data, behind, end, owner=self.owner)
        elif code == OPEN:
            self._on_open(read_open(data, behind, end))
        else:
            raise ConnectionFault(ILLEGAL_STATE, f"frame {code:#x} while {self.state.value}")

    def _on_control(
        self, code: i64, channel: i64, data: bytes, at: i64, end: i64, now_ms: i64
    ) -> None:
        if code != FLOW and self._input.count_control():
            self.owner.input_rests()
        if code == BEGIN:
            self._on_begin(channel, read_begin(data, at, end))
            return
        if code == CLOSE:
            self._on_close(read_close(data, at, end))
            return
        if code == OPEN:
            raise ConnectionFault(ILLEGAL_STATE, "a second open")
        session = self.channels.session(channel)
        if code == END:
            read_end(data, at, end)
            self._on_end(channel)
            return
        if session is None:
            return
        try:
            if code == FLOW:
                session.on_flow(read_flow(data, at, end), now_ms)
            elif code == ATTACH:
                session.on_attach(read_attach(data, at, end))
            elif code == DETACH:
                session.on_detach(read_detach(data, at, end))
            else:
                raise ConnectionFault(NOT_IMPLEMENTED, f"no performative has descriptor {code:#x}")
        except SessionFault as fault:
            session.end(fault)

    def _on_end(self, channel: i64) -> None:
        """Free the channel of a session that the peer ends, or whose end the peer answers."""
        session = self.channels.remove(channel)
        if session is not None:
            session.on_end()

    def _on_begin(self, channel: i64, begin: Begin) -> None:
        if begin.remote_channel >= 0:
            raise ConnectionFault(NOT_ALLOWED, "an answer to a begin that was never sent")
        session = Session(self, begin, channel=channel, our_channel=self.channels.claim(channel))
        self.channels.add(session)
        self.owner.session_begun(session)

    # -- open and close

    def sasl_challenge(self, challenge: bytes, now_ms: i64) -> None:
        """Answer `authenticate` or `challenge_answered` with a challenge (5.3.3.3)."""
        if self._sasl is not None and self._sasl.challenge(self.output.writer(), challenge):
            self.go_on(now_ms)
        else:
            self.sasl_outcome(SASL_SYS, now_ms)

    def sasl_outcome(self, code: i64, now_ms: i64) -> None:
        """Answer them with the outcome: 0 admits the peer, others end the connection (5.3.3.6)."""
        if self._sasl is None or not self._sasl.is_deciding():
            return
        self._sasl.decide(self.output.writer(), code)
        self._sasl = None
        if code != SASL_OK:
            self._over()
            return
        self.state = connection_after(self.state, ConnectionEvent.SASL_OUTCOME_OUT)
        self.times.handshake_ms = NO_DEADLINE
        self.go_on(now_ms)

    def _on_open(self, open: Open) -> None:
        self.state = connection_after(self.state, ConnectionEvent.OPEN_IN)
        handshake.check_open(open)
        self.channels.remote_channel_max = open.channel_max
        self.output.frame_size_max = open.max_frame_size
        self.owner.opened(open)
        if not self.is_over:
            self.times.opened(open.idle_time_out)
            self.deadline_at(self.times.earliest())

    def refuse(self, fault: Fault, *, properties: dict[str, object]) -> None:
        """Answer the peer's open with the broker's and a close (CON-03)."""
        self.accept(offered_capabilities=[], properties=properties)
        self.close(fault)

    def accept(self, *, offered_capabilities: list[str], properties: dict[str, object]) -> None:
        """Answer the peer's open with the broker's."""
        ours = handshake.our_open(
            self._container_id,
            self.limits,
            offered_capabilities=offered_capabilities,
            properties=properties,
        )
        self.output.put(0, ours)
        self._open_sent = True

    def close(self, fault: Fault) -> None:
        """Close the connection; all further input but the answer to the close is ignored."""
        if self.is_over or self.state is ConnectionState.CLOSE_SENT:
            return
        if self.state is not ConnectionState.OPENED and (
            self.state is not ConnectionState.HEADERS_EXCHANGED
        ):
            self._over()
            return
        self._drop_sessions()
        if not self._open_sent:
            self.accept(offered_capabilities=[], properties={})
        self.end_reason = str(fault)
        self.state = connection_after(self.state, ConnectionEvent.CLOSE_OUT)
        self.output.put(0, Close(error=error_of(fault)))

    def _on_close(self, close: Close) -> None:
        self.end_reason = "closed by the peer"
        if close.error is not None:
            self.end_reason += f": {close.error.condition}"
        self.state = connection_after(self.state, ConnectionEvent.CLOSE_IN)
        if not self.is_ending:
            self.closed_in_order = close.error is None
        self._drop_sessions()
        self.output.put(0, Close())
        self._over()

    def receive_eof(self) -> None:
        """End the connection, in whatever state, because its stream has ended."""
        self._drop_sessions()
        self._over()

    def _drop_sessions(self) -> None:
        if self.is_ending:
            return
        self.is_ending = True
        self._owing = []
        for session in self.channels.remove_all():
            session.flush_accepted()
            session.lost()
        self.owner.sessions_dropped()

    def _over(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.state = connection_after(self.state, ConnectionEvent.LOST)
            self._input.clear()
            self._sasl = None
            self.output.end()
            self.owner.ended()
            self.owner = ENDED

    # -- deliveries under way

    def hold_partial(self, size: i64) -> None:
        """Count `size` more (or fewer) bytes of partial deliveries. ConnectionFault at a limit."""
        self.partial_bytes += size
        self.owner.unfinished_changed(size)
        limit = self.limits.partial_bytes_max
        if size > 0 and self.partial_bytes > limit:
            text = f"more than {limit} bytes in unfinished deliveries"
            raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, text)

    def current_tag(self) -> bytes:
        """Return the delivery-tag in the transfer that is being handled."""
        return self._transfer.tag(self._data) or b""

    # -- output

    def owes_dispositions(self, session: Session) -> None:
        """Have the accepted deliveries of `session` reported when output is next taken."""
        self.output.touch()
        if session not in self._owing:
            self._owing.append(session)

    def data_to_send(self, now_ms: i64) -> list[bytes]:
        """Return all output, in order. Call it when the result of the last call was written."""
        if self._owing:
            for session in self._owing:
                session.flush_accepted()
            self._owing = []
        self.times.last_output_ms = now_ms
        if self.state is ConnectionState.CLOSE_SENT:
            self.times.close_written(now_ms)
            self.deadline_at(self.times.close_ms)
        return self.output.take(now_ms)

    def written(self) -> None:
        """Continue after the socket took the result of `data_to_send`, unless output is blocked."""
        if self.output.resume():
            self.channels.room_again()

    def output_blocked(self) -> None:
        """Send no deliveries for now: the socket takes no more output."""
        self.output.block()

    def output_drained(self) -> None:
        """Continue to send deliveries: the socket takes output again."""
        self.output.unblock()
        self.written()

    # -- time

    def deadline_at(self, deadline_ms: i64) -> None:
        """Make the owner call `tick` no later than `deadline_ms`."""
        sooner = earlier(self.next_deadline_ms, deadline_ms)
        if sooner != self.next_deadline_ms:
            self.next_deadline_ms = sooner
            self.owner.deadline_changed()

    def tick(self, now_ms: i64) -> None:
        """Send heartbeats and echoes that are due; end the connection if the peer is overdue."""
        self._do_what_is_due(now_ms)
        self.next_deadline_ms = self._earliest()

    def _do_what_is_due(self, now_ms: i64) -> None:
        times = self.times
        if self.is_over:
            return
        if self.state is ConnectionState.CLOSE_SENT:
            if is_due(times.close_ms, now_ms):
                self._over()
        elif is_due(times.handshake_ms, now_ms):
            self._over()
        elif times.is_slow(now_ms):
            self.close(ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "a frame took too long to come"))
        elif times.is_idle(now_ms):
            self.close(ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "local-idle-timeout expired"))
        else:
            if times.owes_heartbeat(now_ms):
                self.output.writer().write(EMPTY_FRAME)
                times.last_output_ms = now_ms
            self.channels.tick(now_ms)

    def _earliest(self) -> i64:
        if self.is_over:
            return NO_DEADLINE
        if self.state is ConnectionState.CLOSE_SENT:
            return self.times.close_ms
        return earlier(self.times.earliest(), self.channels.echo_due_ms())
