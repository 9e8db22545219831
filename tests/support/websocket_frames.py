"""Requests and frames of WebSocket clients, right and wrong, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.frames import Opcode
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

MASK: Final = b"\x01\x02\x03\x04"

HEADERS: Final = {
    "Host": "127.0.0.1",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "AQIDBAUGBwgJCgsMDQ4PEA==",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Protocol": "amqp",
}


def request(
    *,
    method: str = "GET",
    path: str = "/",
    version: str = "HTTP/1.1",
    changed: Mapping[str, str | None] | None = None,
) -> bytes:
    """Return a request with `changed` headers; None leaves one out."""
    headers = {
        name: value for name, value in {**HEADERS, **(changed or {})}.items() if value is not None
    }
    lines = [f"{method} {path} {version}", *(f"{name}: {headers[name]}" for name in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


REQUEST: Final = request()


def frame(
    opcode: Opcode = Opcode.BINARY, data: bytes = b"", *, fin: bool = True, masked: bool = True
) -> bytes:
    """Return a frame as a client sends it; unless `masked`, as a server does."""
    first = (0x80 if fin else 0) | opcode
    mask = 0x80 if masked else 0
    if len(data) < 126:
        head = struct.pack("!BB", first, mask | len(data))
    elif len(data) < 2**16:
        head = struct.pack("!BBH", first, mask | 126, len(data))
    else:
        head = struct.pack("!BBQ", first, mask | 127, len(data))
    if not masked:
        return head + data
    key = (MASK * (len(data) // 4 + 1))[: len(data)]
    hidden = int.from_bytes(data, "big") ^ int.from_bytes(key, "big")
    return head + MASK + hidden.to_bytes(len(data), "big")


def close_code(sent: bytes) -> int | None:
    """Return the code of a close frame that a server has sent; None if `sent` is no such frame."""
    if sent[:1] != bytes([0x80 | Opcode.CLOSE]):
        return None
    return int.from_bytes(sent[2:4], "big")


def client_of(
    url: str = "ws://127.0.0.1/",
    *,
    subprotocols: Sequence[str] = ("amqp",),
    compressing: bool = False,
) -> ClientProtocol:
    """Return the library's client, which has made its request."""
    made = ClientProtocol(
        parse_uri(url),
        subprotocols=[Subprotocol(each) for each in subprotocols],
        extensions=[ClientPerMessageDeflateFactory()] if compressing else None,
    )
    made.send_request(made.connect())
    return made


@dataclass(frozen=True)
class Answer:
    """The answer of an HTTP server."""

    status: int
    headers: dict[str, str]
    body: str


def response_of(data: bytes) -> Answer:
    """Return the response that `data` is."""
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["Content-Length"]) == len(body)
    return Answer(int(status.split(" ")[1]), headers, body.decode())
