"""Entry points for bytes before AMQP: WebSocket's handshake and frames, and PROXY headers.

Neither has a peer behind it: both are read without I/O, and in the same way however bytes are cut.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from websockets.frames import Opcode

from broker.net.proxy_header import (
    BEGIN_BYTES,
    COUNTED_BYTES_MAX,
    ProxyError,
    ProxyHeaderReader,
)
from broker.websocket.connection import WebSocketConnection
from tests.support.proxy_headers import version_1, version_2
from tests.support.websocket_frames import REQUEST, frame, request

PIECES: Final = 40
"""Maximum pieces of an input."""

SIZE_MAX: Final = 512
"""The largest AMQP frame in bytes: so small that inputs reach the limits of frames and messages."""


def pieces_of(data: bytes) -> list[bytes]:
    size = max(1 + len(data) % 13, len(data) // PIECES)
    return [data[at : at + size] for at in range(0, len(data), size)]


class _Conversation:
    """A client's bytes on one connection, with the AMQP in them and what was sent."""

    def __init__(self, pieces: list[bytes]) -> None:
        made = WebSocketConnection(path="/", origins=["https://a.b"], max_frame_size=SIZE_MAX)
        self.amqp = b""
        self.sent = b""
        for number, piece in enumerate(pieces):
            if number == 1 and made.is_open:
                made.lift_limits()
            got = made.receive(piece)
            while made.is_behind:
                got += made.go_on()
            self.amqp += got
            self.sent += made.to_send()
        self.is_over = made.is_over
        self.was_opened = self.sent.startswith(b"HTTP/1.1 101 ")
        assert made.is_over or not made.failure, "it fails and goes on"
        if made.is_over:
            assert made.receive(frame(data=b"more")) == b"", "it goes on after its end"
            assert made.to_send() == b""


def websocket(data: bytes) -> None:
    """Run bytes as a whole connection, and as the frames behind a handshake."""
    for begin in (b"", REQUEST):
        given = [begin, data] if begin else [data]
        whole = _Conversation(given)
        cut = _Conversation([*([begin] if begin else []), *pieces_of(data)])
        if begin:
            assert (whole.amqp, whole.is_over) == (cut.amqp, cut.is_over), (
                "it matters how it is cut"
            )
        assert len(whole.amqp) <= len(data)
        for each in (whole, cut):
            _has_manners(each)


def _has_manners(conversation: _Conversation) -> None:
    """Check that only one answer was sent, and then pongs and at most one close frame."""
    if not conversation.sent:
        return
    head, _, rest = conversation.sent.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 "), head
    if not conversation.was_opened:
        assert conversation.is_over
        assert conversation.amqp == b""
        return
    while rest:
        opcode, size = rest[0], rest[1]
        assert opcode in (0x80 | Opcode.PONG, 0x80 | Opcode.CLOSE), opcode
        assert size < 126
        rest = rest[2 + size :]
        if opcode == 0x80 | Opcode.CLOSE:
            assert rest == b"", "something follows the close frame"


def websocket_seeds() -> list[bytes]:
    sent = frame(data=b"AMQP") + frame(Opcode.PING, b"now") + frame(Opcode.PONG)
    parts = frame(data=b"A", fin=False) + frame(Opcode.PING) + frame(Opcode.CONT, b"MQP")
    return [
        REQUEST,
        REQUEST + sent,
        request(changed={"Origin": "https://a.b"}) + parts,
        request(method="POST", path="/x?y"),
        sent,
        parts,
        frame(Opcode.TEXT, b"AMQP"),
        frame(data=bytes(1025)),
        frame(data=bytes(300)),
        frame(data=b"AMQP", masked=False),
        frame(Opcode.CLOSE, b"\x03\xe8bye"),
        frame(data=bytes(70_000))[:2000],
    ]


def websocket_extremes() -> list[bytes]:
    """Return inputs with as much work for each byte as there can be."""
    return [
        frame() * 10_000,
        frame(Opcode.PING) * 10_000,
        (frame(data=b"", fin=False) + frame(Opcode.CONT) * 10_000)[:60_000],
        b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 15_000,
        request(changed={"Connection": "a," * 4000, "Sec-WebSocket-Protocol": "a," * 4000}),
    ]


def proxy(data: bytes) -> None:
    """Read a PROXY header, at once and in pieces."""
    whole = _read([data])
    assert whole == _read(pieces_of(data)), "it matters how a header is cut"
    if isinstance(whole, str):
        return
    taken, host = whole
    assert taken <= min(len(data), BEGIN_BYTES + COUNTED_BYTES_MAX)
    assert _read([data[:taken]]) == whole
    if host:
        assert str(ip_address(host)) == host


def _read(pieces: list[bytes]) -> tuple[int, str] | str:
    """Return the bytes of a header and its host, `wrong`, or nothing if bytes are missing."""
    reader = ProxyHeaderReader()
    taken = 0
    try:
        for piece in pieces:
            taken += reader.feed(piece)
    except ProxyError:
        return "wrong"
    if not reader.is_complete:
        return ""
    return taken, "" if reader.client is None else reader.client.host


def proxy_seeds() -> list[bytes]:
    return [
        version_1("192.0.2.7", 40_000) + b"AMQP",
        version_1("2001:db8::7", 1),
        b"PROXY UNKNOWN\r\n",
        version_2("192.0.2.7", 40_000) + b"\x16\x03\x01",
        version_2("2001:db8::7", 1, extra=b"\x20\x00\x05\x01\x00\x00\x00\x00"),
        version_2("192.0.2.7", 1, command=0x20),
    ]
