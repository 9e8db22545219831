"""Passes bytes between one socket whose client speaks WebSocket, and one peer.

Its peer begins with the connection, so that the deadline and the limits of clients that have not
logged in hold from the first byte on. What an AMQP connection over TCP does is unchanged.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.links.peer import Peer
from broker.listener_settings import ListenerSettings
from broker.net.refusal_log import RefusalLog
from broker.net.socket_protocol import SocketProtocol
from broker.websocket.connection import HTTP, HTTPS, WebSocketConnection
from broker.websocket.limits import CLOSE_LOOKS_MAX, CLOSE_S, HANDSHAKE_S, MESSAGE_SENT_MAX

if TYPE_CHECKING:
    from broker.net.listener import Listeners


class WebSocketProtocol(SocketProtocol):
    """The asyncio protocol of one WebSocket connection, and the transport of its peer."""

    def __init__(
        self, listeners: Listeners, listener: ListenerSettings, refusals: RefusalLog
    ) -> None:
        super().__init__(listeners, listener)
        self._refusals: Final = refusals
        self._websocket: Final = WebSocketConnection(
            path=listener.path,
            origins=listener.origins,
            own_schemes=own_schemes(listener),
            max_frame_size=int(listeners.container.limits.max_frame_size),
        )
        self._is_limited = True
        self._is_scheduled = False
        self._is_ended = False
        self._deadline: asyncio.TimerHandle | None = None
        self._unsent_before = 0
        self._looks = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._transport is not None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(HANDSHAKE_S, self._time_out)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        # a client that sends nothing may be a probe of the port
        if self._websocket.is_half_asked and not self._listeners.container.closing:
            self._count_refused("the client left in the middle of its request")
        super().connection_lost(exc)

    # -- in

    def data_received(self, data: bytes) -> None:
        if self._is_ended:
            return
        if self._is_limited and self._peer is not None and self._peer.is_open:
            self._is_limited = False
            self._websocket.lift_limits()
        self._take(self._websocket.receive(data))

    def _go_on(self) -> None:
        """Handle more of the input that was too much for one turn of the event loop."""
        self._is_scheduled = False
        # a peer that pauses is given nothing; `resume` continues
        transport = self._transport
        if transport is None or self._paused:
            return
        self._take(self._websocket.go_on())
        if not self._websocket.is_behind and self._may_read():
            transport.resume_reading()

    def _take(self, payload: bytes) -> None:
        """Answer what the handshake and the control frames need, and give `payload` to the peer."""
        websocket = self._websocket
        if self._deadline is not None and self._peer is not None and not websocket.is_waiting:
            self._cancel_deadline()
        self._flush()
        if payload and self._peer is not None:
            self._peer.receive(payload)
        if websocket.is_over:
            self._end()
        elif websocket.is_behind:
            self._go_on_later()

    def _go_on_later(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def resume(self) -> None:
        super().resume()
        if self._websocket.is_behind:
            self._go_on_later()

    # -- out

    def write(self, chunks: list[bytes]) -> None:
        if self._peer is not None and self._websocket.is_open:
            size_max = min(int(self._peer.connection.output.frame_size_max), MESSAGE_SENT_MAX)
            self._websocket.send(chunks, size_max)
            self._flush()

    def _flush(self) -> None:
        """Write what the WebSocket has to send; stop reading from a client that reads nothing."""
        data = self._websocket.to_send()
        transport = self._transport
        if not data or transport is None:
            return
        transport.write(data)
        if self._reading:
            # without a look at the stall timer: pongs are answers without a peer's limit
            self._stop_reading_when_stalled(transport)

    # -- ends

    def close(self) -> None:
        """Send a close frame, and wait for the client's for a while."""
        self._peer = None
        self._websocket.close(going_away=self._listeners.container.closing)
        self._flush()
        if self._websocket.is_over:
            self._end()
        else:
            self._await_end()

    def broker_stops(self) -> None:
        """Close a connection that no AMQP close can end, since none was opened."""
        if self._peer is not None and not self._peer.is_open:
            self._detach("the broker is stopping")
            self.close()

    def _end(self) -> None:
        """Close the socket: the client has ended the connection, or broken the protocol."""
        self._is_ended = True
        failure = self._websocket.failure
        if failure:
            self._count_refused(failure)
            self._detach(f"WebSocket: {failure}")
        else:
            self._detach(f"WebSocket closed by the client: {self._websocket.closed_by()}")
        transport = self._transport
        if transport is None:
            return
        self._await_end()
        if not failure:
            transport.close()
        elif transport.can_write_eof():
            # closed now, with input that was not read, the client could lose the reason
            transport.write_eof()

    def _detach(self, reason: str) -> None:
        """End the AMQP connection, whose socket ends later."""
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.connection.end_reason = reason
            peer.lost()

    def _await_end(self) -> None:
        """Read what the client still sends, and abort unless it ends the connection soon."""
        transport = self._transport
        if transport is None:
            return
        self._cancel_deadline()
        self._paused = False
        self._reading = True
        if not transport.is_closing():
            transport.resume_reading()
        self._unsent_before = transport.get_write_buffer_size()
        self._deadline = asyncio.get_running_loop().call_later(CLOSE_S, self._look_at_end)

    def _look_at_end(self) -> None:
        """Abort, unless the client has taken some of the output since the last look."""
        self._deadline = None
        self._looks += 1
        unsent = self.unsent_bytes()
        if 0 < unsent < self._unsent_before and self._looks < CLOSE_LOOKS_MAX:
            self._await_end()
        else:
            self.abort()

    def _time_out(self) -> None:
        """Abort a connection whose handshake takes too long."""
        self._deadline = None
        self._count_refused(f"there was no request within {HANDSHAKE_S} s")
        self._detach("WebSocket: no handshake")
        self.abort()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _count_refused(self, reason: str) -> None:
        peer: Peer | None = self._peer
        if peer is not None:  # else it has been counted
            self._listeners.container.stats.websocket_failures += 1
            self._refusals.note(f"WebSocket of {peer.entrance.host} failed: {reason}")


def own_schemes(listener: ListenerSettings) -> tuple[str, ...]:
    """Return the schemes of the broker's own origin that programs may send.

    Qpid JMS sends `http` within TLS, too. An attacker on the network can make a page of that origin
    in a user's browser: it could use the certificate with which that browser logs in.
    """
    if listener.tls is None:
        return (HTTP,)
    return (HTTPS, HTTP) if listener.tls.client_certificates == "no" else (HTTPS,)
