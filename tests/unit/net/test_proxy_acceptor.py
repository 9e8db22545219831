"""Connections before their PROXY header has arrived: whose is read, for how long, how many.

Attacks are those of docs/design/hostile-input.md A9.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker.listener_settings import ListenerSettings
from broker.net import proxy_acceptor
from broker.net.proxy_acceptor import ProxyAcceptor
from broker.net.proxy_header import ClientAddress
from tests.support.broker import Broker
from tests.support.loops import on_both_loops
from tests.support.proxy_headers import version_1, version_2
from tests.support.tls_listening import PATIENCE_S, ended, until

pytestmark = [pytest.mark.requirement("SEC-06"), pytest.mark.attack("A9")]

HEADER = version_1("192.0.2.7", 40_000)


class Reading:
    """An acceptor on a free port, with the connections that it has handed over."""

    def __init__(self, *networks: str) -> None:
        settings = ListenerSettings.model_validate(
            {
                "name": "behind",
                "port": 0,
                "proxy_protocol": "require",
                "proxy_from": networks or ["127.0.0.1"],
            }
        )
        self.broker = Broker()
        self.given: list[tuple[socket.socket, str, ClientAddress | None]] = []
        self.acceptor = ProxyAcceptor(settings, self.broker.container, self._take)
        self.port = 0

    def _take(self, accepted: socket.socket, host: str, client: ClientAddress | None) -> None:
        self.given.append((accepted, host, client))

    def connect(self, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), source_address=(source, 0))
        client.setblocking(False)
        if sent:
            client.send(sent)
        return client

    @property
    def refused(self) -> int:
        return int(self.broker.stats.proxy_headers_refused)


@asynccontextmanager
async def reading(*networks: str) -> AsyncIterator[Reading]:
    here = Reading(*networks)
    here.port = await here.acceptor.listen("127.0.0.1", 0, backlog=100)
    try:
        yield here
    finally:
        here.acceptor.stop_accepting()
        assert here.acceptor.pending() == 0
        for accepted, _, _ in here.given:
            accepted.close()


@pytest.mark.parametrize("header", [HEADER, version_2("192.0.2.7", 40_000)], ids=["1", "2"])
@on_both_loops
async def test_the_bytes_behind_the_header_stay_in_the_socket(header: bytes) -> None:
    async with reading() as here:
        client = here.connect(header + b"\x16\x03\x01")
        await until(lambda: bool(here.given))
        accepted, host, address = here.given[0]
        assert (host, address) == ("192.0.2.7", ClientAddress("192.0.2.7", 40_000))
        assert accepted.recv(100) == b"\x16\x03\x01"
        client.close()
    assert here.refused == 0


@on_both_loops
async def test_a_header_may_come_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading() as here:
        client = here.connect()
        for each in HEADER[:-1]:
            client.send(bytes([each]))
            await asyncio.sleep(0)
        assert not here.given
        client.send(HEADER[-1:])
        await until(lambda: bool(here.given))
        client.close()
        monkeypatch.setattr(proxy_acceptor, "HEADER_S", 0.05)
        late = here.connect(HEADER[:-1])
        assert await ended(late) == b""
        assert here.refused == 1
        assert "it did not arrive within 0.05 s" in here.broker.watcher.events[0]


@on_both_loops
async def test_only_proxies_of_the_settings_may_connect() -> None:
    async with reading("127.0.0.2", "10.0.0.0/8") as here:
        stranger = here.connect(HEADER)
        assert await ended(stranger) == b""
        assert not here.given
        assert here.refused == 1
        (told,) = here.broker.watcher.events
        assert told.startswith("noticed listener behind: 127.0.0.1 is no proxy of the setting")
        proxy = here.connect(HEADER, source="127.0.0.2")
        await until(lambda: bool(here.given))
        proxy.close()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"AMQP\x00\x01\x00\x00", id="AMQP without a header"),
        pytest.param(b"\x16\x03\x01\x02\x00", id="TLS without a header"),
        pytest.param(b"P" + b"\0" * 100_000, id="much of nothing"),
        pytest.param(b"PROXY TCP4 " + b"1" * 100_000, id="a line without an end"),
        pytest.param(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", id="64 KiB announced"),
    ],
)
@on_both_loops
async def test_a_wrong_header_ends_the_connection(sent: bytes) -> None:
    async with reading() as here:
        client = here.connect()
        loop = asyncio.get_running_loop()
        await asyncio.wait_for(loop.sock_sendall(client, sent), PATIENCE_S)
        assert await ended(client) == b""
        assert here.refused == 1
        assert "because of its PROXY header: " in here.broker.watcher.events[0]
        good = here.connect(HEADER)
        await until(lambda: bool(here.given))
        good.close()


@on_both_loops
async def test_a_proxy_that_only_looks_is_no_failure() -> None:
    async with reading() as here:
        here.connect().close()
        here.connect(HEADER[:5]).close()
        await until(lambda: here.refused == 1)
        assert here.acceptor.pending() == 0
        assert "in the middle of it" in here.broker.watcher.events[0]


async def test_only_so_many_wait_for_their_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_acceptor, "PENDING_MAX", 3)
    async with reading() as here:
        clients = [here.connect() for _ in range(4)]
        assert await ended(clients[0]) == b"", "the oldest"
        assert here.acceptor.pending() == 3
        clients[3].send(HEADER)
        await until(lambda: bool(here.given))
        for each in clients[1:]:
            each.close()


async def test_a_stop_closes_those_that_wait() -> None:
    async with reading() as here:
        client = here.connect(HEADER[:5])
        await until(lambda: here.acceptor.pending() == 1)
        here.acceptor.stop_accepting()
        assert await ended(client) == b""


@pytest.mark.parametrize(
    ("proxy", "stated", "allowed"),
    [
        pytest.param("127.0.0.1", "127.0.0.1", True, id="a proxy on this machine"),
        pytest.param("198.51.100.1", "127.0.0.1", False, id="one elsewhere"),
        pytest.param("2001:db8::1%eth0", "::1", False, id="one elsewhere, by IPv6"),
        pytest.param("198.51.100.1", "192.0.2.7", True, id="any other address"),
    ],
)
def test_only_a_proxy_on_this_machine_has_clients_on_it(
    proxy: str, stated: str, allowed: bool
) -> None:
    """The socket of a proxy elsewhere cannot be had in a test: the check itself is called."""
    address = ClientAddress(stated, 1)
    acceptor = Reading("0.0.0.0/0").acceptor
    if allowed:
        assert acceptor._checked(address, proxy) == address
        return
    with pytest.raises(ValueError, match="the proxy's own machine"):
        acceptor._checked(address, proxy)
