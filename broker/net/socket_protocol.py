"""Passes bytes between one socket and one peer.

The event loop hands over the bytes that it has read; the peer does a round of work and writes
back through the transport. A full transport stops deliveries to its peer; one that stays full
ends the connection. Nothing here is called per message.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from broker.amqp.frames import EMPTY_FRAME
from broker.links.peer import Peer
from broker.links.transport import Transport
from broker.listener_settings import ListenerSettings
from broker.net.certificate_name import certificate_name
from broker.security.entrance import Entrance

if TYPE_CHECKING:
    from broker.net.listener import Listeners
    from broker.net.proxy_header import ClientAddress

WRITE_BUFFER_HIGH: Final = 1024 * 1024
WRITE_BUFFER_LOW: Final = 256 * 1024

STALLED_AT: Final = 4 * 1024 * 1024
"""Bytes of unsent output above which a peer is not read from: its requests may add to them."""


READ_AT_ONCE: Final = 1024 * 1024
"""Bytes of input in a turn of the event loop after which other connections are served first. The
loop (libuv) would read up to 32 times 256 KiB from a socket that stays full, while others wait."""

LONG_READ: Final = 64 * 1024
"""Bytes from which on a read is counted. A shorter one has emptied the socket, so the loop goes on
to other connections; most reads are short, and to count one costs 0.1 µs."""


class SocketProtocol(asyncio.Protocol, Transport):
    """The asyncio protocol of one connection, and the transport of its peer.

    `client` is the client's address if a proxy has stated it, None for that of the socket.
    """

    _beat_ms = 0
    """The time of the last output, or of the last empty frame since `freeze`."""

    def __init__(self, listeners: Listeners, listener: ListenerSettings) -> None:
        self._listeners = listeners
        self._listener = listener
        self.client: ClientAddress | None = None
        self._stall_timeout_ms = listeners.stall_timeout_ms
        self._stalled: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._peer: Peer | None = None
        self._reading = True
        self._paused = False
        # uvloop's time stands still during a turn; asyncio's loop reads a socket once in a turn
        self._loop_time_s = asyncio.get_running_loop().time
        self._turn_s = 0.0
        self._read_bytes = 0
        self._gone: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do everything that asyncio's do, but are not derived from them
        transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH, low=WRITE_BUFFER_LOW)
        listeners = self._listeners
        container = listeners.container
        entrance = entrance_of(transport, self._listener, self.client)
        # if closing: accepted by the loop before the stop, handed over after it
        if container.closing or not listeners.admit(self, entrance.host):
            transport.abort()
            return
        self._transport = transport
        listeners.connections.add(self)
        self._peer = Peer(container, self, entrance)
        if listeners.is_frozen:
            self.freeze()

    def data_received(self, data: bytes) -> None:
        peer = self._peer
        if peer is not None:
            if len(data) >= LONG_READ:
                self._count_read(len(data))
            peer.receive(data)

    def _count_read(self, size: int) -> None:
        """Count the input of this turn of the event loop, and read on later if it is too much."""
        now_s = self._loop_time_s()
        if now_s != self._turn_s:
            self._turn_s, self._read_bytes = now_s, 0
        self._read_bytes += size
        if self._read_bytes >= READ_AT_ONCE:
            self._read_later()

    def _read_later(self) -> None:
        """Read on in the next turn of the event loop, after other connections."""
        self._read_bytes = 0
        if self._transport is not None and self._may_read():
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        if self._transport is not None and self._may_read():
            self._transport.resume_reading()

    def _may_read(self) -> bool:
        is_there = self._transport is not None and not self._transport.is_closing()
        return is_there and self._reading and not self._paused

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        peer = self._peer
        self._transport = None
        self._peer = None
        self._listeners.connections.discard(self)
        self._listeners.admission.leave(self)
        self._cancel_stall()
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if peer is not None:
            peer.lost()

    # -- flow control of the socket

    def pause_writing(self) -> None:
        if self._peer is not None:
            self._peer.output_blocked()
        if self._stall_timeout_ms > 0 and self._stalled is None:
            loop = asyncio.get_running_loop()
            self._stalled = loop.call_later(self._stall_timeout_ms / 1000, self._cut_stalled)

    def _cut_stalled(self) -> None:
        if self._peer is not None:
            self._peer.stalled(self._stall_timeout_ms)
        self.abort()

    def resume_writing(self) -> None:
        self._cancel_stall()
        if self._transport is not None and not self._reading:
            self._reading = True
            if not self._paused:
                self._transport.resume_reading()
        if self._peer is not None:
            self._peer.output_drained()

    def gone(self) -> asyncio.Future[None]:
        """Return a future that is done once the connection has ended.

        It is made on demand: only a stop of the broker asks for it.
        """
        if self._gone is None:
            self._gone = asyncio.get_running_loop().create_future()
            if self._transport is None:
                self._gone.set_result(None)
        return self._gone

    def broker_stops(self) -> None:
        """Note that the broker stops: open connections have got their AMQP close already."""

    def abort(self) -> None:
        """End the connection at once, and discard unsent output."""
        if self._transport is not None:
            self._transport.abort()

    def cut(self) -> None:
        """Abort, and detach the peer before this returns: the loop would take a turn for that."""
        if self._transport is not None:
            self._transport.abort()
            self.connection_lost(None)

    # -- while it is not proved that this broker leads its group

    def freeze(self) -> None:
        """Read nothing more."""
        if self._peer is not None:
            self._peer.hold_input()
            self._beat_ms = int(self._peer.connection.times.last_output_ms)

    def thaw(self) -> None:
        """Read again; `freeze` has been called before."""
        if self._peer is not None:
            self._peer.release_input()

    def beat(self, now_ms: int) -> None:
        """Send an empty frame if one is due; all other output waits."""
        peer = self._peer
        if peer is None or not peer.is_live():
            return
        pause_ms = int(peer.connection.times.heartbeat_ms)
        if pause_ms > 0 and now_ms - self._beat_ms >= pause_ms:
            self._beat_ms = now_ms
            self.write([EMPTY_FRAME])

    def _cancel_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    # -- as the peer's transport

    def write(self, chunks: list[bytes]) -> None:
        transport = self._transport
        if transport is None:
            return
        if len(chunks) == 1:
            transport.write(chunks[0])
        else:
            transport.writelines(chunks)
        if self._reading and self._stalled is not None:
            self._stop_reading_when_stalled(transport)

    def _stop_reading_when_stalled(self, transport: asyncio.Transport) -> None:
        if transport.get_write_buffer_size() > STALLED_AT:
            self._reading = False
            if not self._paused:
                transport.pause_reading()

    def entered(self) -> None:
        self._listeners.admission.leave(self)

    def unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def pause(self) -> None:
        self._paused = True
        if self._transport is not None and self._reading:
            self._transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        if self._transport is not None and self._reading:
            self._transport.resume_reading()

    def close(self) -> None:
        self._peer = None
        if self._transport is not None:
            self._transport.close()


def entrance_of(
    transport: asyncio.BaseTransport,
    listener: ListenerSettings,
    client: ClientAddress | None = None,
) -> Entrance:
    """Return how a new client has connected; its host is "unknown" if it has no address.

    `client` is its address as a proxy has stated it, None without a proxy.
    """
    name = transport.get_extra_info("peername") if client is None else client
    known = isinstance(name, tuple) and len(name) >= 2
    encrypted = transport.get_extra_info("ssl_object")
    return Entrance(
        listener=listener.name,
        kind=listener.kind,
        host=str(name[0]) if known else "unknown",
        port=int(name[1]) if known else 0,
        is_tls=encrypted is not None,
        certificate_name=certificate_name(encrypted),
    )
