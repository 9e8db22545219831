"""The TLS layer of one open connection, between its socket's transport and its protocol.

Data of the protocol is encrypted and written in one piece a round; received data is decrypted and
handed over in one piece a read. The event loops have a layer of their own, which copies once more,
and performs the handshake in the loop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any, Final, cast

from broker.net.tls_handshake import TlsState

READ_MAX: Final = 128 * 1024
"""Maximum bytes read from a socket at once."""

PIECE: Final = 64 * 1024
"""Maximum bytes that OpenSSL gets at once: its buffers keep the size that they once needed."""

RECORD_MAX: Final = 16 * 1024
"""Maximum bytes of data in one record of TLS (RFC 8446 5.1)."""

CLOSE_NOTIFY_S: Final = 2.0
"""Maximum seconds that a closed connection waits for the client's end of TLS."""

# The event loop fills `_received` and has it handled before it reads from another connection.
_received: Final = memoryview(bytearray(READ_MAX))
_decrypted: Final = memoryview(bytearray(READ_MAX + RECORD_MAX))


class TlsTransport(asyncio.BufferedProtocol, asyncio.Transport):
    """The transport of `protocol`, and itself the protocol of its socket's transport.

    A connection that is closed sends its output and the end of TLS (`close_notify`), then waits for
    the client's for at most CLOSE_NOTIFY_S: were the socket closed with data of the client unread,
    the client might lose the output.
    """

    __slots__ = (
        *("_deadline", "_error", "_has_ended", "_is_closing", "_protocol", "_state", "_transport"),
    )

    def __init__(self, state: TlsState, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self._state: Final = state
        self._protocol = cast(asyncio.Protocol, protocol)
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._error: ssl.SSLError | None = None
        self._is_closing = False
        self._has_ended = False
        """Whether the client sends no more."""

    # -- as the protocol of the socket's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._flush()
        self._protocol.connection_made(self)
        # data may have come together with the end of the handshake
        self._receive(b"")

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's name
        return _received

    def buffer_updated(self, nbytes: int) -> None:
        self._receive(_received[:nbytes])

    def eof_received(self) -> bool:
        if not self._has_ended:
            self._has_ended = True
            self._ended()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._is_closing = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._protocol.connection_lost(self._error or exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _receive(self, data: bytes | memoryview) -> None:
        """Decrypt what has arrived, and hand it over, unless the connection is closed."""
        size = 0
        try:
            for begin in range(0, len(data) or 1, PIECE):
                self._state.incoming.write(data[begin : begin + PIECE])
                size = self._decrypt(size)
        except ssl.SSLError as error:
            self._break(error)
            return
        if size and not self._is_closing:
            self._protocol.data_received(bytes(_decrypted[:size]))
        if self._state.outgoing.pending:  # an answer of TLS itself, as to a new key
            self._flush()
        if self._has_ended:
            self._ended()

    def _decrypt(self, size: int) -> int:
        """Decrypt behind the first `size` bytes; return the new size."""
        read = self._state.tls.read
        try:
            # with a buffer it returns a number of bytes, which the declared type does not say
            while got := cast(int, read(RECORD_MAX, _decrypted[size:])):
                size += got
        except ssl.SSLWantReadError:
            return size  # the rest of a record has not arrived
        except ssl.SSLZeroReturnError:
            pass  # as `read` tells the client's end behind our own
        self._has_ended = True
        return size

    def _ended(self) -> None:
        """Close: the client sends no more."""
        if self._is_closing:
            self._close_socket()
        else:
            self._protocol.eof_received()
            self.close()

    def _break(self, error: ssl.SSLError) -> None:
        """End a connection whose client broke the protocol of TLS, with an alert."""
        self._error, self._has_ended, self._is_closing = error, True, True
        self._flush()
        self._close_socket()

    # -- as the transport of the protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data or self._is_closing or self._transport is None:
            return
        tls, outgoing = self._state.tls, self._state.outgoing
        if len(data) <= PIECE:
            tls.write(data)
            self._transport.write(outgoing.read())
            return
        encrypted, view = [], memoryview(data)
        for begin in range(0, len(data), PIECE):
            tls.write(view[begin : begin + PIECE])
            encrypted.append(outgoing.read())
        self._transport.writelines(encrypted)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(self._state.outgoing.read())

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        try:
            self._state.tls.unwrap()
        except ssl.SSLWantReadError:
            pass  # the client's end has not arrived
        except ssl.SSLError:
            self._has_ended = True  # TLS is at its end: nothing more is to be read
        self._flush()
        if self._has_ended or self._transport is None:
            self._close_socket()
            return
        self._transport.resume_reading()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(CLOSE_NOTIFY_S, self.abort)

    def _close_socket(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._transport is None or self._transport.is_closing()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._is_closing:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._is_closing:
            self._transport.resume_reading()

    def is_reading(self) -> bool:
        return self._transport is not None and self._transport.is_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def can_write_eof(self) -> bool:
        """Return False: TLS has no end of only one direction that all clients understand."""
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._state.tls
        if name == "sslcontext":
            return self._state.tls.context
        if self._transport is None:
            return default
        return self._transport.get_extra_info(name, default)
