"""A connection without its socket: bytes in, calls to its owner, bytes out.

    connection = Connection(handler, limits, ...)
    connection.receive(data, now_ms)        what came; calls the handler's methods
    connection.data_to_send()               what is to be written, pulled when the last is gone
    connection.tick(now_ms)                 when `next_deadline_ms` has come
    connection.receive_eof()                the peer has gone

Once `is_over`, the owner writes what `data_to_send` still has and closes the
socket. A `Fault` ends what its class says; any other exception is a bug and
closes the connection with `amqp:internal-error`, without detail.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from broker.amqp.decode import descriptor_at, u16_at, u32_at
from broker.amqp.descriptors import (
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    SASL_INIT,
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
from broker.amqp.events import ConnectionHandler
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
from broker.amqp.lifecycle import (
    ConnectionEvent,
    ConnectionState,
    SessionState,
    connection_after,
)
from broker.amqp.limits import BUFFER_BEFORE_OPEN, FRAME_BEFORE_OPEN, FRAME_SIZE_MIN, Limits
from broker.amqp.outcomes import error_of
from broker.amqp.performatives import (
    Close,
    Disposition,
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
    SASL_AUTH,
    SASL_OK,
    SaslMechanisms,
    SaslOutcome,
    read_sasl_init,
)
from broker.amqp.session import Session

OUTPUT_FULL: Final[i64] = 1024 * 1024
"""So much output waits at most before deliveries stop (`reliability.md` R4)."""

WRITER_KEPT: Final[i64] = 128 * 1024
"""A writer that grew beyond this is given back once it is empty."""

NO_DEADLINE: Final[i64] = -1

HEARTBEAT_MIN_MS: Final[i64] = 50
"""However short a peer's idle time-out, we send no empty frames more often than this."""

CLOSE_GRACE_MS: Final[i64] = 2000
"""So long we wait for the answer to our close."""


@final
class Connection:
    """The server's end of an AMQP connection (core 2.4)."""

    def __init__(
        self,
        handler: ConnectionHandler,
        limits: Limits,
        *,
        container_id: str,
        mechanisms: list[str],
        requires_sasl: bool,
        now_ms: i64,
    ) -> None:
        self.handler: Final = handler
        self.limits: Final = limits
        self.state: ConnectionState = ConnectionState.START
        self.is_over = False
        self.end_reason = "connection lost"
        self.remote_max_frame_size: i64 = FRAME_SIZE_MIN
        self.next_deadline_ms: i64 = now_ms + limits.handshake_timeout_ms
        self._container_id: Final = container_id
        self._mechanisms: Final = mechanisms
        self._requires_sasl: Final = requires_sasl
        self._answering = False
        self._open_sent = False
        # input
        self._pieces: list[bytes] = []
        self._have: i64 = 0
        self._need: i64 = HEAD_SIZE
        self._awaiting_outcome = False
        self._data: bytes = b""
        self._transfer: Final = Transfer()
        self._disposition: Final = Disposition()
        self._partial_bytes: i64 = 0
        # sessions by the peer's channel
        self._sessions: list[Session | None] = []
        self._our_channels: Final[set[int]] = set()
        self._remote_channel_max: i64 = 0
        # output
        self._writer = BytesWriter()
        self._chunks: list[bytes] = []
        self._chunk_bytes: i64 = 0
        self._touched = False
        self._full = False
        self._blocked = False
        self._owing: list[Session] = []
        # time
        self._handshake_deadline_ms: i64 = now_ms + limits.handshake_timeout_ms
        self._last_input_ms: i64 = now_ms
        self._last_output_ms: i64 = now_ms
        self._partial_since_ms: i64 = NO_DEADLINE
        self._heartbeat_ms: i64 = 0
        self._close_deadline_ms: i64 = NO_DEADLINE

    # -- input

    def receive(self, data: bytes, now_ms: i64) -> None:
        """Take what the peer has sent. Frames that are not complete wait for the rest."""
        if self.is_over:
            return
        self._last_input_ms = now_ms
        if self._pieces:
            self._pieces.append(data)
            self._have += i64(len(data))
            if self._have < self._need or self._awaiting_outcome:
                self._check_buffer()
                return
            data = b"".join(self._pieces)
            self._pieces = []
        self._take(data, now_ms)

    def _take(self, data: bytes, now_ms: i64) -> None:
        self._data = data
        at: i64 = 0
        try:
            at = self._frames(data, now_ms)
        except Fault as fault:
            self.close(fault)
            at = i64(len(data))
        except Exception as error:
            self.handler.failed(error)
            self.close(ConnectionFault(INTERNAL_ERROR))
            at = i64(len(data))
        self._data = b""
        self._keep(data, at, now_ms)

    def _keep(self, data: bytes, at: i64, now_ms: i64) -> None:
        """Keep what lies behind `at` for the next `receive`."""
        self._have = i64(len(data)) - at
        if self._have == 0 or self.is_over:
            self._partial_since_ms = NO_DEADLINE
            return
        self._pieces.append(data[at:])
        if not self._awaiting_outcome:
            self._partial_since_ms = now_ms
            self.deadline_at(now_ms + self.limits.handshake_timeout_ms)
        self._check_buffer()

    def _check_buffer(self) -> None:
        """An unauthenticated peer may not make us hold more than a little."""
        if not self._open_sent and self._have > BUFFER_BEFORE_OPEN:
            self.close(ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "too much before open"))
            self._pieces = []

    def _frames(self, data: bytes, now_ms: i64) -> i64:
        """Handle every whole frame in `data`; the position behind the last of them."""
        end = i64(len(data))
        at: i64 = 0
        while end - at >= HEAD_SIZE and not self._awaiting_outcome and not self.is_over:
            if self._expects_header():
                self._on_header(data[at : at + HEAD_SIZE])
                at += HEAD_SIZE
                continue
            limit = self.limits.max_frame_size if self._open_sent else FRAME_BEFORE_OPEN
            size = frame_size(data, at, limit)
            if end - at < size:
                self._need = size
                return at
            self._on_frame(data, at, at + size, now_ms)
            at += size
        self._need = HEAD_SIZE
        return at

    def _expects_header(self) -> bool:
        return self.state is ConnectionState.START or self.state is ConnectionState.AUTHENTICATED

    def _on_header(self, header: bytes) -> None:
        """Core 2.2 and 5.3.1: an unacceptable header is answered with the one we want."""
        if header == SASL_HEADER and self.state is ConnectionState.START:
            self.state = connection_after(self.state, ConnectionEvent.SASL_HEADER_IN)
            self._write(SASL_HEADER)
            put_sasl_frame(self.writer_for(0), SaslMechanisms(self._mechanisms))
            return
        bypass = self.state is ConnectionState.START and self._requires_sasl
        if header == AMQP_HEADER and not bypass:
            self.state = connection_after(self.state, ConnectionEvent.AMQP_HEADER_IN)
            self._write(AMQP_HEADER)
            if not self._answering:
                self._handshake_deadline_ms = NO_DEADLINE
            return
        self._write(SASL_HEADER if self._requires_sasl else AMQP_HEADER)
        self._over()

    def _on_frame(self, data: bytes, at: i64, end: i64, now_ms: i64) -> None:
        body = body_at(data, at)
        if self.state is ConnectionState.OPENED and data[at + 5] == AMQP_FRAME:
            if body == end:
                return
            if data[body] == 0 and data[body + 1] == 0x53:
                code = i64(data[body + 2])
                behind = body + 3
            else:
                code, behind = descriptor_at(data, body, end)
            if code == TRANSFER:
                session = self._session(u16_at(data, at + 6))
                if session is not None:
                    self._on_transfer(session, data, behind, end)
            elif code == DISPOSITION:
                session = self._session(u16_at(data, at + 6))
                if session is not None:
                    self._disposition.read(data, behind, end)
                    self._on_disposition(session, data, end)
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

    def _on_disposition(self, session: Session, data: bytes, end: i64) -> None:
        try:
            session.on_disposition(self._disposition, data, end)
        except SessionFault as fault:
            session.end(fault)

    def _on_other_frame(self, data: bytes, at: i64, body: i64, end: i64) -> None:
        """Frames before open, and after our close."""
        kind = SASL_FRAME if self.state is ConnectionState.SASL else AMQP_FRAME
        if data[at + 5] != kind:
            raise ConnectionFault(FRAMING_ERROR, f"frame type {data[at + 5]} while {self.state.value}")
        if body == end:
            return
        code, behind = descriptor_at(data, body, end)
        if self.state is ConnectionState.CLOSE_SENT:
            if code == CLOSE:
                self._over()
        elif self.state is ConnectionState.SASL:
            if code != SASL_INIT:
                raise ConnectionFault(NOT_ALLOWED, "sasl-init was expected")
            self._awaiting_outcome = True
            init = read_sasl_init(data, behind, end)
            self.handler.authenticate(init.mechanism, init.initial_response or b"")
        elif code == OPEN:
            self._on_open(read_open(data, behind, end))
        else:
            raise ConnectionFault(ILLEGAL_STATE, f"frame {code:#x} while {self.state.value}")

    def _on_control(
        self, code: i64, channel: i64, data: bytes, at: i64, end: i64, now_ms: i64
    ) -> None:
        if code == BEGIN:
            self._on_begin(channel, data, at, end)
            return
        if code == CLOSE:
            error = read_close(data, at, end).error
            self.end_reason = "closed by the peer" if error is None else f"closed by the peer: {error.condition}"
            self.state = connection_after(self.state, ConnectionEvent.CLOSE_IN)
            self._drop_sessions()
            self.put(0, Close())
            self._over()
            return
        if code == OPEN:
            raise ConnectionFault(ILLEGAL_STATE, "a second open")
        session = self._session(channel)
        if code == END:
            read_end(data, at, end)
            ending = self._sessions[channel]
            if ending is not None:
                self._sessions[channel] = None
                ending.on_end()
                self._our_channels.discard(int(ending.our_channel))
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

    def _session(self, channel: i64) -> Session | None:
        """The session on `channel`; None where we have ended it and the peer does not know yet."""
        if channel < i64(len(self._sessions)):
            session = self._sessions[channel]
            if session is not None:
                return session if session.state is SessionState.MAPPED else None
        raise ConnectionFault(NOT_ALLOWED, f"no session on channel {channel}")

    def _on_begin(self, channel: i64, data: bytes, at: i64, end: i64) -> None:
        if channel > self.limits.channel_max:
            raise ConnectionFault(
                FRAMING_ERROR, f"channel {channel} is above {self.limits.channel_max}"
            )
        begin = read_begin(data, at, end)
        if begin.remote_channel >= 0:
            raise ConnectionFault(NOT_ALLOWED, "an answer to a begin that was never sent")
        while i64(len(self._sessions)) <= channel:
            self._sessions.append(None)
        if self._sessions[channel] is not None:
            raise ConnectionFault(NOT_ALLOWED, f"channel {channel} has a session")
        self._sessions[channel] = Session(self, begin, channel, self._claim_channel(channel))

    def _claim_channel(self, wanted: i64) -> i64:
        ours = int(wanted)
        if wanted > self._remote_channel_max or ours in self._our_channels:
            ours = 0
            while ours in self._our_channels:
                ours += 1
            if ours > self._remote_channel_max:
                raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "no channel is left within channel-max")
        self._our_channels.add(ours)
        return ours

    # -- open and close

    def sasl_outcome(self, code: i64, now_ms: i64) -> None:
        """Answer `authenticate`: 0 lets the peer in, anything else ends the connection (5.3.3.6)."""
        if self.is_over or self.state is not ConnectionState.SASL:
            return
        self._awaiting_outcome = False
        put_sasl_frame(self.writer_for(0), SaslOutcome(code))
        if code != SASL_OK:
            self._over()
            return
        self.state = connection_after(self.state, ConnectionEvent.SASL_OUTCOME_OUT)
        self._handshake_deadline_ms = NO_DEADLINE
        if self._pieces and not self._data:
            waiting = b"".join(self._pieces)
            self._pieces = []
            self._take(waiting, now_ms)

    def sasl_failed(self, now_ms: i64) -> None:
        """The peer is not who it says."""
        self.sasl_outcome(SASL_AUTH, now_ms)

    def _on_open(self, open: Open) -> None:
        self.state = connection_after(self.state, ConnectionEvent.OPEN_IN)
        if open.max_frame_size < FRAME_SIZE_MIN:
            raise ConnectionFault(NOT_ALLOWED, f"max-frame-size is at least {FRAME_SIZE_MIN}")
        self._remote_channel_max = open.channel_max
        self.handler.opened(open)
        self.remote_max_frame_size = open.max_frame_size
        if open.idle_time_out > 0:
            self._heartbeat_ms = max(HEARTBEAT_MIN_MS, open.idle_time_out >> 1)
            self.deadline_at(self._last_output_ms + self._heartbeat_ms)
        if self.limits.idle_time_out_ms > 0:
            self.deadline_at(self._last_input_ms + self.limits.idle_time_out_ms)

    def accept(self, *, offered_capabilities: list[str], properties: dict[str, object]) -> None:
        """Answer the peer's open."""
        self._send_open(offered_capabilities, properties)

    def refuse(self, fault: Fault, *, properties: dict[str, object]) -> None:
        """Answer the peer's open with ours and a close (CON-03)."""
        self._send_open([], properties)
        self.close(fault)

    def _send_open(self, offered_capabilities: list[str], properties: dict[str, object]) -> None:
        self._open_sent = True
        self.put(
            0,
            Open(
                container_id=self._container_id,
                max_frame_size=self.limits.max_frame_size,
                channel_max=self.limits.channel_max,
                # half of what we bear, so that a punctual peer is never late (2.4.5)
                idle_time_out=self.limits.idle_time_out_ms >> 1
                if self.limits.idle_time_out_ms > 0
                else -1,
                offered_capabilities=offered_capabilities,
                properties=properties,
            ),
        )

    def close(self, fault: Fault) -> None:
        """Close the connection from our side; input is ignored from now on, but for the answer."""
        if self.is_over or self.state is ConnectionState.CLOSE_SENT:
            return
        if self.state is not ConnectionState.OPENED and (
            self.state is not ConnectionState.HEADERS_EXCHANGED
        ):
            self._over()
            return
        self._drop_sessions()
        if not self._open_sent:
            self._send_open([], {})
        self.end_reason = str(fault)
        self.state = connection_after(self.state, ConnectionEvent.CLOSE_OUT)
        self.put(0, Close(error=error_of(fault)))
        self._close_deadline_ms = self._last_input_ms + CLOSE_GRACE_MS
        self.deadline_at(self._close_deadline_ms)

    def receive_eof(self) -> None:
        """The stream has ended, in whatever state."""
        self._drop_sessions()
        self._over()

    def _drop_sessions(self) -> None:
        sessions = self._sessions
        self._sessions = []
        self._owing = []
        for session in sessions:
            if session is not None:
                session.flush_accepted()
                session.lost()
        self._our_channels.clear()

    def _over(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._pieces = []
            self._touch()
            self.handler.ended()

    # -- deliveries under way

    def hold_partial(self, size: i64) -> None:
        """Count `size` more bytes (or fewer) in deliveries of which not all frames have come."""
        self._partial_bytes += size
        if size > 0 and self._partial_bytes > self.limits.partial_bytes_max:
            raise ConnectionFault(
                RESOURCE_LIMIT_EXCEEDED,
                f"more than {self.limits.partial_bytes_max} bytes in unfinished deliveries",
            )

    def current_tag(self) -> bytes:
        """The delivery-tag in the transfer that is being handled."""
        return self._transfer.tag(self._data) or b""

    # -- output

    def may_write(self) -> bool:
        """Whether deliveries may go out; where not, sessions are called once they may."""
        if self._blocked or self._chunk_bytes + i64(len(self._writer)) >= OUTPUT_FULL:
            self._full = True
            return False
        return True

    def writer_for(self, size: i64) -> BytesWriter:
        """The writer that the next frame goes to."""
        if not self._touched:
            self._touch()
        return self._writer

    def put_reference(self, payload: bytes) -> None:
        """Send `payload` next, without copying it."""
        head = self._writer.getvalue()
        self._writer.truncate(0)
        self._chunks.append(head)
        self._chunks.append(payload)
        self._chunk_bytes += i64(len(head) + len(payload))

    def put(self, channel: i64, performative: Performative) -> None:
        """Send a control frame."""
        put_frame(self.writer_for(0), channel, performative)

    def owes_dispositions(self, session: Session) -> None:
        """`session` has accepted deliveries to tell of when output is pulled."""
        if not self._touched:
            self._touch()
        if session not in self._owing:
            self._owing.append(session)

    def _write(self, data: bytes) -> None:
        self.writer_for(0).write(data)

    def _touch(self) -> None:
        if not self._touched:
            self._touched = True
            self.handler.output_ready()

    def data_to_send(self, now_ms: i64) -> list[bytes]:
        """Everything that is to be written, in order. Call when the last has been."""
        if self._owing:
            for session in self._owing:
                session.flush_accepted()
            self._owing = []
        self._touched = False
        self._last_output_ms = now_ms
        last = self._writer.getvalue()
        if i64(len(last)) > WRITER_KEPT:
            self._writer = BytesWriter()
        else:
            self._writer.truncate(0)
        if not self._chunks:
            return [last]
        chunks = self._chunks
        self._chunks = []
        self._chunk_bytes = 0
        chunks.append(last)
        return chunks

    def written(self) -> None:
        """What `data_to_send` gave has gone to the socket: more may follow, unless it is blocked."""
        if self._full and not self._blocked:
            self.output_drained()

    def output_blocked(self) -> None:
        """The socket takes no more for now."""
        self._blocked = True

    def output_drained(self) -> None:
        """The socket takes output: whoever was held up may go on."""
        self._blocked = False
        if self._full:
            self._full = False
            for session in self._sessions:
                if session is not None:
                    session.room_again()

    # -- time

    def deadline_at(self, deadline_ms: i64) -> None:
        """Be called by `tick` no later than that."""
        if self.next_deadline_ms == NO_DEADLINE or deadline_ms < self.next_deadline_ms:
            self.next_deadline_ms = deadline_ms
            self.handler.deadline_changed()

    def tick(self, now_ms: i64) -> None:
        """Do what is due: heartbeats, echoes, and the end of peers that keep silent."""
        if self.is_over:
            return
        if self._close_deadline_ms != NO_DEADLINE and now_ms >= self._close_deadline_ms:
            self._over()
            return
        if self._is_late(self._handshake_deadline_ms, now_ms):
            self._over()
            return
        if self._partial_since_ms != NO_DEADLINE and self._is_late(
            self._partial_since_ms + self.limits.handshake_timeout_ms, now_ms
        ):
            self.close(ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "a frame took too long to come"))
            return
        if self.state is ConnectionState.OPENED:
            self._tick_open(now_ms)
        self.next_deadline_ms = self._earliest()

    def _tick_open(self, now_ms: i64) -> None:
        patience = self.limits.idle_time_out_ms
        if patience > 0 and now_ms - self._last_input_ms >= patience:
            self.close(ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "local-idle-timeout expired"))
            return
        if self._heartbeat_ms > 0 and now_ms - self._last_output_ms >= self._heartbeat_ms:
            self._write(EMPTY_FRAME)
            self._last_output_ms = now_ms
        for session in self._sessions:
            if session is not None:
                session.tick(now_ms)

    def _is_late(self, deadline_ms: i64, now_ms: i64) -> bool:
        return deadline_ms != NO_DEADLINE and now_ms >= deadline_ms

    def _earliest(self) -> i64:
        deadlines: list[i64] = [self._handshake_deadline_ms, self._close_deadline_ms]
        if self._partial_since_ms != NO_DEADLINE:
            deadlines.append(self._partial_since_ms + self.limits.handshake_timeout_ms)
        if self.state is ConnectionState.OPENED:
            if self.limits.idle_time_out_ms > 0:
                deadlines.append(self._last_input_ms + self.limits.idle_time_out_ms)
            if self._heartbeat_ms > 0:
                deadlines.append(self._last_output_ms + self._heartbeat_ms)
            for session in self._sessions:
                if session is not None:
                    deadlines.append(session.echo_due_ms)
        earliest: i64 = NO_DEADLINE
        for deadline in deadlines:
            if deadline != NO_DEADLINE and (earliest == NO_DEADLINE or deadline < earliest):
                earliest = deadline
        return earliest
