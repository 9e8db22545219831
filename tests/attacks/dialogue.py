"""A blocking connection that logs in or begins TLS, and many of them in turn from one thread.

asyncio costs the attacker more for each connection than the broker needs for a login.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from broker.amqp.frames import HEAD_SIZE
from tests.attacks.plan import Reached
from tests.conformance.frames import Body, read_frame

AT_ONCE: Final = 32
SOURCES: Final = 8
HOST: Final = "127.0.0.1"
ANSWER_S: Final = 60.0
"""Maximum seconds for the next bytes; without any in this time, the broker hangs."""

RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)
"""A value of SO_LINGER: a closed socket leaves no TIME_WAIT, so that its port can be used again."""

PORT_AT_CONNECT: Final = 24
"""IP_BIND_ADDRESS_NO_PORT of Linux: `bind` takes no port, so that `connect` finds any free one."""

CHUNK: Final = 4096

decoded = lru_cache(maxsize=16)(read_frame)
"""Decodes a frame; most of those that a broker sends during logins are the same."""


class Dialogue:
    """A connection from an address of this machine; it is reset when it is closed."""

    def __init__(self, port: int, number: int) -> None:
        """Connect from one of SOURCES addresses, by the `number` of the connection."""
        self.near: Final = socket.socket()
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self.near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.near.setsockopt(socket.IPPROTO_IP, PORT_AT_CONNECT, 1)
        self.near.settimeout(ANSWER_S)
        self.near.bind((f"127.0.0.{2 + number % SOURCES}", 0))
        self.near.connect((HOST, port))
        self._rest = b""

    def send(self, data: bytes) -> None:
        self.near.sendall(data)

    def next_body(self) -> Body:
        """Return the body of the next frame; skip protocol headers."""
        while True:
            head = self._take(HEAD_SIZE)
            if head[:4] != b"AMQP":
                return decoded(head + self._take(int.from_bytes(head[:4]) - HEAD_SIZE)).body

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            came = self.near.recv(CHUNK)
            if not came:
                raise ConnectionError("the broker has closed a connection that logs in")
            self._rest += came
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def read_to_end(self) -> None:
        """Read until the broker closes or resets the connection."""
        try:
            while self.near.recv(CHUNK):
                pass
        except ConnectionResetError:
            return


Exchange = Iterator[str]
"""The steps of one connection: it yields "" before it reads an answer, at last its result."""


def hold(port: int, count: int, begin: Callable[[Dialogue], Exchange]) -> Reached:
    """Hold `count` dialogues, AT_ONCE at a time; return how often each result was reached."""
    results: Counter[str] = Counter()
    for first in range(0, count, AT_ONCE):
        dialogues = [Dialogue(port, number) for number in range(first, min(first + AT_ONCE, count))]
        going = [begin(dialogue) for dialogue in dialogues]
        while going:
            said = [next(exchange) for exchange in going]
            results.update(filter(None, said))
            going = [each for each, result in zip(going, said, strict=True) if not result]
        for dialogue in dialogues:
            dialogue.near.close()
    return Reached(told=results)
