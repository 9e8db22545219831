"""Reads the header of the PROXY protocol, in which a proxy states the address of its client.

It has version 1 or 2, and begins a connection, before TLS and everything else. Not one byte behind
it is taken, since TLS must get them all.
"""

from __future__ import annotations

import re
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
"""The first bytes of a header of version 2."""

WORD: Final = b"PROXY "
"""The first bytes of a header of version 1."""

SHORTEST: Final = 15
"""Bytes of the shortest header of any version: `PROXY UNKNOWN` and its line end."""

LINE_BYTES_MAX: Final = 107
"""Maximum bytes of a header of version 1, as its specification says."""

BEGIN_BYTES: Final = 16
"""Bytes of a header of version 2 before those that it counts."""

COUNTED_BYTES_MAX: Final = 4096
"""Maximum bytes that a header of version 2 counts: addresses, and facts about TLS that are skipped.

The specification allows 65,535; proxies send some hundred.
"""

LOCAL: Final = 0x20
STATED: Final = 0x21
"""Version 2 with the commands LOCAL and PROXY."""

UNSPECIFIED: Final = 0x00
TCP4: Final = 0x11
TCP6: Final = 0x21
UNIX: Final = 0x31
"""Address family and transport of a header of version 2."""

SIZES: Final = {UNSPECIFIED: 0, TCP4: 12, TCP6: 36, UNIX: 216}
"""Bytes of both addresses and ports, by family."""

_PORT: Final = re.compile(r"0|[1-9][0-9]{0,4}")


class ProxyError(ValueError):
    """A header is wrong. The message says how, without the bytes that the proxy sent."""


class ClientAddress(NamedTuple):
    """The address of a client, as a proxy has stated it."""

    host: str
    port: int


class ProxyHeaderReader:
    """Reads one header. `client` is what it states; None for the address of the socket itself.

    That is so for a connection of the proxy's own (LOCAL, such as a check whether the broker is
    there), and for a client without an IP address, which is on the proxy's machine.
    """

    def __init__(self) -> None:
        self._head = bytearray()
        self.is_complete = False
        self.client: ClientAddress | None = None

    def feed(self, data: bytes) -> int:
        """Take from `data` the bytes that belong to the header, and return their number.

        Raise ProxyError once it is clear that it is none.
        """
        taken = 0
        while not self.is_complete and taken < len(data):
            size = self._size_of_next(data[taken:])
            self._head += data[taken : taken + size]
            taken += size
            self._look()
        return min(taken, len(data))

    def _size_of_next(self, rest: bytes) -> int:
        """Return how many of the next bytes must belong to the header."""
        have = len(self._head)
        if have < SHORTEST:
            return SHORTEST - have
        if self._head[0] == SIGNATURE[0]:
            return self._size() - have
        return min((rest.find(b"\n") + 1) or len(rest), LINE_BYTES_MAX - have)

    def _size(self) -> int:
        """Return the size of a header of version 2, as far as it is known."""
        if len(self._head) < BEGIN_BYTES:
            return BEGIN_BYTES
        return BEGIN_BYTES + int(struct.unpack_from("!H", self._head, 14)[0])

    def _look(self) -> None:
        """Read the header if it is whole. Raise ProxyError if it cannot become one."""
        head = bytes(self._head)
        if head.startswith(SIGNATURE[: len(head)]):
            if len(head) >= BEGIN_BYTES:
                if self._size() > BEGIN_BYTES + COUNTED_BYTES_MAX:
                    raise ProxyError(f"it is longer than {COUNTED_BYTES_MAX} bytes")
                if len(head) == self._size():
                    self._finish(_client_of_version_2(head))
        elif head.startswith(WORD[: len(head)]):
            if b"\n" in head:
                self._finish(_client_of_version_1(head))
            elif len(head) >= LINE_BYTES_MAX:
                raise ProxyError(f"its line is longer than {LINE_BYTES_MAX} bytes")
        else:
            raise ProxyError("there is none")

    def _finish(self, client: ClientAddress | None) -> None:
        self.client = client
        self.is_complete = True


def _client_of_version_1(line: bytes) -> ClientAddress | None:
    """Return the client that a line states. Raise ProxyError if it is not as specified."""
    if not line.endswith(b"\r\n") or not line.isascii():
        raise ProxyError("its line is not text that ends with CR LF")
    words = line[:-2].decode().split(" ")
    if words[1] == "UNKNOWN":
        return None  # whatever follows it
    family = {"TCP4": IPv4Address, "TCP6": IPv6Address}.get(words[1])
    if family is None or len(words) != 6:
        raise ProxyError("its line has no protocol and two addresses with their ports")
    hosts = [_parsed(word) for word in words[2:4]]
    if not all(isinstance(host, family) for host in hosts):
        raise ProxyError("an address in it is none")
    if not all(_PORT.fullmatch(word) and int(word) < 2**16 for word in words[4:]):
        raise ProxyError("a port in it is none")
    return _stated(words[2], int(words[4]))


def _client_of_version_2(head: bytes) -> ClientAddress | None:
    """Return the client that a header states. Raise ProxyError if it is not as specified."""
    command, family = head[12], head[13]
    if command == LOCAL:
        return None
    if command != STATED:
        raise ProxyError("its version or command does not exist")
    if family not in SIZES:
        raise ProxyError("its addresses are of no family for connections")
    if len(head) < BEGIN_BYTES + SIZES[family]:
        raise ProxyError("it is too short for its addresses")
    if family == TCP4:
        source, _, port, _ = struct.unpack_from("!4s4sHH", head, BEGIN_BYTES)
        return _stated(str(IPv4Address(source)), port)
    if family == TCP6:
        source, _, port, _ = struct.unpack_from("!16s16sHH", head, BEGIN_BYTES)
        return _stated(str(IPv6Address(source)), port)
    return None


def _parsed(word: str) -> IPv4Address | IPv6Address | None:
    try:
        return None if "%" in word else ip_address(word)
    except ValueError:
        return None


def _stated(word: str, port: int) -> ClientAddress:
    """Return an address in its one spelling. Raise ProxyError if no client can have it."""
    host = ip_address(word)
    if isinstance(host, IPv6Address) and host.ipv4_mapped is not None:
        host = host.ipv4_mapped
    if host.is_unspecified or host.is_multicast:
        raise ProxyError("no client can have the address in it")
    return ClientAddress(str(host), port)
