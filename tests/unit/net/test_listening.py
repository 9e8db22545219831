"""The listening sockets of a host: one for each of its addresses, all on one port."""

from __future__ import annotations

import os
import socket

import pytest

from broker.net.listening import listening_sockets

PORT = 20_000 + os.getpid() % 10_000
"""A port that the kernel gives to no other program: it is below those that it chooses itself."""


async def test_all_addresses_have_the_port_that_the_kernel_has_chosen() -> None:
    opened = await listening_sockets("localhost", 0, backlog=7)
    try:
        ports = {each.getsockname()[1] for each in opened}
        assert len(ports) == 1
        assert ports != {0}
        assert not any(each.getblocking() for each in opened)
        with socket.create_connection(("127.0.0.1", ports.pop())):
            pass
    finally:
        for each in opened:
            each.close()


async def test_the_address_of_ipv6_leaves_that_of_ipv4_alone() -> None:
    (first,) = await listening_sockets("::", PORT, backlog=7)
    with first:
        (second,) = await listening_sockets("0.0.0.0", PORT, backlog=7)
        second.close()


async def test_an_error_names_the_address_and_leaves_nothing_open() -> None:
    (first,) = await listening_sockets("127.0.0.1", 0, backlog=7)
    with first:
        port = int(first.getsockname()[1])
        with pytest.raises(OSError, match=f"Address already in use: 127.0.0.1 port {port}"):
            await listening_sockets("127.0.0.1", port, backlog=7)
    with pytest.raises(OSError, match=r"(?i)name|address"):
        await listening_sockets("no such host.invalid", 0, backlog=7)
