"""Many nodes or durable subscriptions, made by one client as fast as a broker answers.

A library would keep state for each of them. So this is a plain socket with hand-made frames.
"""

import socket
import struct
import time
from typing import Final

from tests.bench.places import BenchError

AT_ONCE: Final = 200
"""Number of links whose attaches and detaches are sent together."""

ANSWER_SECONDS: Final = 60.0
READ_BYTES: Final = 1 << 16

SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"

NULL: Final = b"\x40"
TRUE, FALSE = b"\x41", b"\x42"
ZERO: Final = b"\x43"
NEVER: Final = b"\xa3\x05never"
UNSETTLED_STATE: Final = b"\x52\x02"

OPEN, BEGIN, ATTACH, DETACH, SASL_INIT = 0x10, 0x11, 0x12, 0x16, 0x41
SASL_OUTCOME, SOURCE, TARGET = 0x44, 0x28, 0x29


def composite(descriptor: int, *fields: bytes) -> bytes:
    """Return a described list."""
    content = b"".join(fields)
    head = struct.pack(">BBBBII", 0, 0x53, descriptor, 0xD0, len(content) + 4, len(fields))
    return head + content


def text(words: str) -> bytes:
    encoded = words.encode()
    return struct.pack(">BI", 0xB1, len(encoded)) + encoded


def capability(name: str) -> bytes:
    encoded = name.encode()
    return struct.pack(">BB", 0xA3, len(encoded)) + encoded


def frame(body: bytes, kind: int = 0) -> bytes:
    return struct.pack(">IBBH", len(body) + 8, 2, kind, 0) + body


def to_queue(number: int, prefix: str) -> bytes:
    """Return the frames that attach a sender to a queue of its own and close it again."""
    address = f"{prefix}{number}"
    target = composite(TARGET, text(address), ZERO, NULL, ZERO, FALSE, NULL, capability("queue"))
    name = text(f"to-{address}")
    attach = composite(
        *(ATTACH, name, ZERO, FALSE, NULL, NULL, composite(SOURCE), target, NULL, NULL, ZERO)
    )
    return frame(attach) + frame(composite(DETACH, ZERO, TRUE))


def subscriber(number: int, topic: str) -> bytes:
    """Return the frames that attach and detach a durable subscription with its own name."""
    source = composite(
        *(SOURCE, text(topic), UNSETTLED_STATE, NEVER, ZERO, FALSE, NULL, NULL, NULL, NULL, NULL),
        capability("topic"),
    )
    name = text(f"subscription-{number}")
    attach = composite(ATTACH, name, ZERO, TRUE, NULL, NULL, source, composite(TARGET))
    return frame(attach) + frame(composite(DETACH, ZERO, FALSE))


class Declaring:
    """One connection with one session, on which links are attached and detached."""

    def __init__(self, port: int) -> None:
        self._socket: Final = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread: Final = bytearray()
        self._socket.sendall(SASL_HEADER)
        self._header(SASL_HEADER)
        self._socket.sendall(frame(composite(SASL_INIT, capability("ANONYMOUS")), kind=1))
        while self._descriptor() != SASL_OUTCOME:
            pass
        self._socket.sendall(AMQP_HEADER)
        self._header(AMQP_HEADER)
        self._socket.sendall(frame(composite(OPEN, text("declaring"))))
        self._socket.sendall(frame(composite(BEGIN, NULL, ZERO, b"\x60\x08\x00", b"\x60\x08\x00")))

    def close(self) -> None:
        self._socket.close()

    def declare(self, links: list[bytes]) -> float:
        """Attach and detach each link; return the rate per s. Raise BenchError on a refusal."""
        begun = time.perf_counter()
        for first in range(0, len(links), AT_ONCE):
            some = links[first : first + AT_ONCE]
            self._socket.sendall(b"".join(some))
            left = len(some)
            while left:
                left -= self._descriptor() == DETACH
        return len(links) / (time.perf_counter() - begun)

    def _descriptor(self) -> int:
        """Return the next performative's descriptor; raise BenchError for one with an error."""
        size = 0
        while size == 0 or len(self._unread) < size:
            if size == 0 and len(self._unread) >= 4:
                size = int.from_bytes(self._unread[:4])
                continue
            self._read()
        body = bytes(self._unread[8:size])
        del self._unread[:size]
        if b"amqp:" in body and body[2:3] != bytes([ATTACH]):
            raise BenchError(f"the broker refused a link: {body!r}")
        return body[2] if body else 0

    def _header(self, expected: bytes) -> None:
        while len(self._unread) < len(expected):
            self._read()
        if self._unread[: len(expected)] != expected:
            raise BenchError(f"not a broker: {bytes(self._unread)!r}")
        del self._unread[: len(expected)]

    def _read(self) -> None:
        data = self._socket.recv(READ_BYTES)
        if not data:
            raise BenchError("the broker closed the connection")
        self._unread.extend(data)
