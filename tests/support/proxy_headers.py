"""Headers of the PROXY protocol, as proxies send them."""

from __future__ import annotations

import struct
from ipaddress import ip_address

from broker.net.proxy_header import SIGNATURE, STATED, TCP4, TCP6


def version_1(host: str, port: int) -> bytes:
    """Return the line that states a client; the other end has the same host."""
    family = f"TCP{ip_address(host).version}"
    return f"PROXY {family} {host} {host} {port} 5672\r\n".encode()


def version_2(
    host: str,
    port: int,
    *,
    extra: bytes = b"",
    command: int = STATED,
    family: int | None = None,
) -> bytes:
    """Return the header that states a client; `extra` follows the addresses."""
    packed = ip_address(host).packed
    if family is None:
        family = TCP4 if len(packed) == 4 else TCP6
    counted = packed + packed + struct.pack("!HH", port, 5672) + extra
    return SIGNATURE + bytes([command, family]) + struct.pack("!H", len(counted)) + counted
