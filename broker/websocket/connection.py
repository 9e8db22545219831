"""One WebSocket connection of a client: bytes in, AMQP out, and the reverse.

AMQP WebSocket Binding 1.0: the subprotocol is `amqp`, messages are binary, and their boundaries
mean nothing to AMQP (2.4). The library `websockets` reads and writes the handshake and all frames;
here are the limits, and what each end leads to. Extensions are not offered: nothing is compressed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from websockets.exceptions import HeaderLineTooLong, RequestLineTooLong, TooManyHeaders
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Origin, Subprotocol

from broker.websocket.limits import (
    FEW_FRAMES,
    FRAME_BEFORE_OPEN_MAX,
    FRAME_FACTOR,
    FRAMES_AT_ONCE,
    HEAD_BYTES_MAX,
    MESSAGE_FACTOR,
    SLICE_BYTES,
)

SUBPROTOCOL: Final = Subprotocol("amqp")

_PORT: Final = re.compile(r":[0-9]{1,5}$")

HTTP: Final = "http"
HTTPS: Final = "https"

SHORTEST_METHOD: Final = 3
"""Bytes of the shortest method of HTTP."""

REASON_MAX: Final = 200
"""Maximum characters of the library's own words in a failure; it repeats what the client sent."""

ANSWERS: Final = {
    HTTPStatus.BAD_REQUEST: "This is not a WebSocket handshake for the subprotocol amqp.",
    HTTPStatus.FORBIDDEN: "Pages of this origin may not connect.",
    HTTPStatus.NOT_FOUND: "There is nothing at this path.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The method must be GET.",
    HTTPStatus.REQUEST_URI_TOO_LONG: "The request line is too long.",
    HTTPStatus.UPGRADE_REQUIRED: "Only WebSocket clients can connect here.",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "The request is too large.",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "The version must be HTTP/1.1.",
}
"""The text for a refused client: nothing of the broker, and nothing that it has sent."""

HEADERS: Final = {
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": "GET"},
    HTTPStatus.UPGRADE_REQUIRED: {"Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
    HTTPStatus.BAD_REQUEST: {"Sec-WebSocket-Version": "13"},
}
"""Headers of refusals that say what the client may do instead (RFC 9110, RFC 6455 4.4)."""

SILENT: Final = logging.getLogger("broker.websocket")
"""The logger of the library, which logs nothing: failures are reported by `failure`."""
SILENT.setLevel(logging.CRITICAL + 1)


class WebSocketConnection:
    """One connection, from its first byte on, at `path`, for pages of `origins`.

    `own_schemes` are those of the broker's own origin. `max_frame_size` is that of AMQP. After each
    call, `to_send` returns what is to be written. `failure` says, for the operator, why the
    connection could not begin or go on.
    """

    def __init__(
        self,
        *,
        path: str,
        origins: Sequence[str],
        max_frame_size: int,
        own_schemes: Sequence[str] = (HTTP,),
    ) -> None:
        self._path: Final = path
        self._origins: Final = origins
        self._own_schemes: Final = own_schemes
        self._protocol: Final = ServerProtocol(
            extensions=None,
            subprotocols=[SUBPROTOCOL],
            max_size=(FRAME_BEFORE_OPEN_MAX, FRAME_BEFORE_OPEN_MAX),
            logger=SILENT,
        )
        self._max_frame_size: Final = max_frame_size
        self._unread = b""
        self._answer = b""
        self._is_refused = False
        self._is_closing = False
        self.failure = ""

    @property
    def is_open(self) -> bool:
        """Whether messages may be sent."""
        return self._protocol.state is State.OPEN

    @property
    def is_waiting(self) -> bool:
        """Whether the handshake has not ended."""
        return self._protocol.state is State.CONNECTING and not self._is_refused

    @property
    def is_half_asked(self) -> bool:
        """Whether the client has sent a part of its request, and not all of it."""
        return self.is_waiting and bool(self._unread)

    @property
    def is_over(self) -> bool:
        """Whether the socket is to be closed as soon as everything has been sent."""
        return self._is_refused or self._protocol.eof_sent

    @property
    def is_behind(self) -> bool:
        """Whether input waits for `go_on`, in a later turn of the event loop."""
        return self.is_open and bool(self._unread)

    def closed_by(self) -> str:
        """Return the code and reason of the client's close frame; empty if it sent none."""
        received = self._protocol.close_rcvd
        return "" if received is None else str(received)[:REASON_MAX]

    def lift_limits(self) -> None:
        """Allow the sizes of a client whose AMQP connection is open."""
        self._protocol.max_fragment_size = FRAME_FACTOR * self._max_frame_size
        self._protocol.max_message_size = MESSAGE_FACTOR * self._max_frame_size

    # -- in

    def receive(self, data: bytes) -> bytes:
        """Handle the bytes that the client has sent. Return the AMQP in them."""
        self._unread = self._unread + data if self._unread else data
        return self.go_on()

    def go_on(self) -> bytes:
        """Handle what waits of the input, up to a limit of frames. Return the AMQP in it."""
        if self.is_waiting:
            self._shake_hands()
        unread, at, frames, size = self._unread, 0, 0, SLICE_BYTES
        payloads: list[bytes] = []
        while at < len(unread) and frames < FRAMES_AT_ONCE and not self.is_over:
            if self.is_waiting:
                return b""
            self._protocol.receive_data(unread[at : at + size])
            at += size
            count = self._take_frames(payloads)
            frames += count
            # the next slice may have as many frames as this one, so it may be larger if these are
            size = SLICE_BYTES if count > FEW_FRAMES else 2 * size
        self._unread = b"" if self.is_over else unread[at:]
        return payloads[0] if len(payloads) == 1 else b"".join(payloads)

    def _take_frames(self, payloads: list[bytes]) -> int:
        """Add the content of new frames to `payloads`. Return the number of frames."""
        events = self._protocol.events_received()
        for frame in events:
            assert isinstance(frame, Frame)
            if frame.opcode is Opcode.TEXT:
                self._fail(CloseCode.UNSUPPORTED_DATA, "a text message: AMQP is binary")
                return len(events)
            # after its own close frame the broker only waits for that of the client
            if frame.opcode in (Opcode.BINARY, Opcode.CONT) and not self._is_closing:
                assert isinstance(frame.data, bytes)
                payloads.append(frame.data)
        if self._protocol.parser_exc is not None and not self.failure:
            self.failure = str(self._protocol.parser_exc)[:REASON_MAX]
        return len(events)

    def _fail(self, code: CloseCode, reason: str) -> None:
        self.failure = reason
        self._protocol.fail(code, reason)

    # -- the handshake

    def _shake_hands(self) -> None:
        """Answer the request, once it is whole."""
        unread = self._unread
        if not _begins_as_http(unread):
            hint = " (AMQP: its URL should begin with amqpws)" if unread[:4] == b"AMQP" else ""
            self._refuse(HTTPStatus.BAD_REQUEST, f"the client does not speak HTTP{hint}")
            return
        end = unread.find(b"\r\n\r\n", 0, HEAD_BYTES_MAX) + 4
        if end < 4:
            if len(unread) >= HEAD_BYTES_MAX:
                told = f"the request has more than {HEAD_BYTES_MAX} bytes"
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, told)
            return
        # frames behind the request are none of the handshake's: the library would answer them first
        self._protocol.receive_data(unread[:end])
        self._unread = unread[end:]
        events = self._protocol.events_received()
        if not events:
            self._refuse_unreadable()
            return
        (request,) = events
        assert isinstance(request, Request)
        self._judge(request)

    def _judge(self, request: Request) -> None:
        """Accept a request, or refuse it."""
        if request.path.partition("?")[0] != self._path:
            self._refuse(HTTPStatus.NOT_FOUND, f"the path {request.path!r} is not {self._path}")
            return
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1:
            self._refuse(HTTPStatus.BAD_REQUEST, "the request has not exactly one header Host")
            return
        # a client that is no browser sends no origin, or that of the broker itself
        allowed = [None, *self._origins, *own_origins(hosts[0], self._own_schemes)]
        self._protocol.origins = [each if each is None else Origin(each) for each in allowed]
        response = self._protocol.accept(request)
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self._protocol.send_response(response)
            return
        hint = "; if this page or client may connect, add it to the setting origins"
        told = str(self._protocol.handshake_exc)[: REASON_MAX - len(hint) - 20]
        status = HTTPStatus(response.status_code)
        self._refuse(status, told + hint if status is HTTPStatus.FORBIDDEN else told)

    def _refuse_unreadable(self) -> None:
        """Refuse a request that the library could not read."""
        error = self._protocol.handshake_exc
        status = HTTPStatus.BAD_REQUEST
        if isinstance(error, RequestLineTooLong):
            status = HTTPStatus.REQUEST_URI_TOO_LONG
        elif isinstance(error, HeaderLineTooLong | TooManyHeaders):
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        cause = error.__cause__ if error is not None and error.__cause__ is not None else error
        self._protocol.data_to_send()  # its own answer, which repeats what the client sent
        self._refuse(status, str(cause))

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self.failure = f"{status.value} {status.phrase}: {reason}"[:REASON_MAX]
        self._is_refused = True
        self._unread = b""
        response = self._protocol.reject(status, f"{ANSWERS.get(status, status.phrase)}\n")
        for name, value in HEADERS.get(status, {}).items():
            response.headers[name] = value
        self._answer = response.serialize()

    # -- out

    def send(self, chunks: list[bytes], size_max: int) -> None:
        """Send `chunks` as one binary message; as more, if it would exceed `size_max` bytes."""
        whole = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if len(whole) <= size_max:
            self._protocol.send_binary(whole)
            return
        view = memoryview(whole)
        for at in range(0, len(whole), size_max):
            self._protocol.send_binary(view[at : at + size_max])

    def close(self, *, going_away: bool = False) -> None:
        """Send a close frame; the connection is over when the client has answered it.

        A connection without a handshake is over at once.
        """
        if self.is_open:
            self._is_closing = True
            code = CloseCode.GOING_AWAY if going_away else CloseCode.NORMAL_CLOSURE
            self._protocol.send_close(code, "the broker is stopping" if going_away else "")
        elif self.is_waiting:
            self._is_refused = True

    def to_send(self) -> bytes:
        """Remove and return everything that is to be written to the socket."""
        writes = self._protocol.data_to_send()
        if self._answer:
            writes, self._answer = [self._answer], b""
        return writes[0] if len(writes) == 1 else b"".join(writes)


def own_origins(host: str, schemes: Sequence[str]) -> list[str]:
    """Return the origins of the broker at `host`; none if they prove nothing. Qpid JMS sends one.

    The broker serves no pages, so no page has its origin. But without TLS an attacker can let the
    name of an own site lead to the broker (DNS rebinding), which then is in `host` and the origin
    alike. An address or `localhost` cannot be such a name.
    """
    host = host.lower()
    name = host.rpartition(":")[0] if _PORT.search(host) else host
    if HTTPS not in schemes and name != "localhost" and not _is_address(name):
        return []
    return [f"{scheme}://{host}" for scheme in schemes]


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _begins_as_http(data: bytes) -> bool:
    """Return whether `data` may be the begin of a request, as its first bytes tell."""
    method = data[:SHORTEST_METHOD]
    return method.isalpha() and method.isupper() and b"\0" not in data[:8]
