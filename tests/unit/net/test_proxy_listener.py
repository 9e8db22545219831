"""Listeners of every kind behind proxies, on real sockets: what the header changes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self

import pytest

from broker.amqp.frames import SASL_HEADER
from broker.amqp.sasl_frames import SASL_OK, SaslMechanisms, SaslOutcome
from broker.app import App
from broker.settings import MEMORY, given_settings
from tests.support.broker import RecordingWatcher
from tests.support.loops import on_both_loops
from tests.support.proxy_headers import version_1, version_2
from tests.support.socket_client import PATIENCE_S, SocketClient
from tests.support.websocket_client import WebSocketClient
from tests.support.websocket_frames import REQUEST, frame
from tests.unit.net.test_tls_listener import Site

pytestmark = pytest.mark.requirement("SEC-06")

CLIENT: Final = "192.0.2.7"
HEADERS: Final = {"1": version_1(CLIENT, 40_000), "2": version_2(CLIENT, 40_000, extra=bytes(99))}


class Proxied(SocketClient):
    """A client that comes through a proxy: `header` is sent before TLS and everything else."""

    def __init__(
        self, port: int, header: bytes, *, tls: ssl.SSLContext | None = None, pieces: int = 1
    ) -> None:
        super().__init__(port)
        self._header = header
        self._behind = tls
        self._pieces = pieces

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        for at in range(0, len(self._header), max(1, len(self._header) // self._pieces)):
            self.writer.write(self._header[at : at + max(1, len(self._header) // self._pieces)])
            await asyncio.sleep(0)
        if self._behind is not None:
            await self.writer.start_tls(self._behind, server_hostname="localhost")
        return self


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@asynccontextmanager
async def running(site: Site, kind: str, proxy_from: str = "127.0.0.0/8") -> AsyncIterator[App]:
    listener: dict[str, object] = {
        "name": "behind",
        "kind": kind,
        "port": 0,
        "proxy_protocol": "require",
        "proxy_from": [proxy_from],
    }
    if kind in ("amqps", "wss"):
        listener["tls"] = {
            "certificate": site.certificate,
            "key": site.key,
            "client_ca": site.folder / "ca.pem",
            "client_certificates": "ask",
            "user_from": "san:dns",
        }
    settings = given_settings(port=0, users_file=site.users.file, store=MEMORY, listener=[listener])
    app = App(settings, watcher=RecordingWatcher())
    await app.start()
    try:
        yield app
    finally:
        await app.stop(PATIENCE_S)


def port_of(app: App) -> int:
    return app.listeners.each[1].port


def client_addresses(app: App) -> list[str]:
    found = [connection._peer for connection in app.listeners.connections]
    return [peer.entrance.address for peer in found if peer is not None]


async def mechanisms(client: SocketClient) -> list[str]:
    client.send_bytes(SASL_HEADER)
    assert await client.header() == SASL_HEADER
    offered = await client.next()
    assert isinstance(offered, SaslMechanisms)
    return offered.mechanisms


@pytest.mark.parametrize("pieces", [1, 1000], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("version", HEADERS)
@on_both_loops
async def test_the_address_in_the_header_is_that_of_the_client(
    site: Site, version: str, pieces: int
) -> None:
    header = HEADERS[version]
    async with (
        running(site, "amqp") as app,
        Proxied(port_of(app), header, pieces=pieces) as client,
    ):
        offered = await mechanisms(client)
        assert client_addresses(app) == [f"{CLIENT}:40000"]
        assert "PLAIN" not in offered, "the client is on another machine"
    assert app.stats.proxy_headers_refused == 0


@pytest.mark.parametrize("version", HEADERS)
@on_both_loops
async def test_tls_begins_behind_the_header(site: Site, version: str) -> None:
    shown = site.authority.issue("ada.example")
    async with running(site, "amqps") as app:
        tls = site.authority.client(shown)
        async with Proxied(port_of(app), HEADERS[version], tls=tls) as client:
            assert "EXTERNAL" in await mechanisms(client)
            assert client_addresses(app) == [f"{CLIENT}:40000"]
            (connection,) = app.listeners.connections
            assert connection._peer is not None
            assert connection._peer.entrance.is_tls


@on_both_loops
async def test_websocket_begins_behind_the_header(site: Site) -> None:
    async with (
        running(site, "ws") as app,
        WebSocketClient(port_of(app), before=HEADERS["2"]) as client,
    ):
        assert "PLAIN" not in await mechanisms(client)
        assert client_addresses(app) == [f"{CLIENT}:40000"]


async def test_websocket_over_tls_begins_behind_the_header(site: Site) -> None:
    async with running(site, "wss") as app:
        tls = site.authority.client(site.authority.issue("ada.example"))
        async with Proxied(port_of(app), HEADERS["1"], tls=tls) as client:
            client.send_bytes(REQUEST)
            assert b" 101 " in await client.reader.readuntil(b"\r\n\r\n")
            client.send_bytes(frame(data=SASL_HEADER))
            assert (await client.reader.readexactly(10))[2:] == SASL_HEADER
            assert client_addresses(app) == [f"{CLIENT}:40000"]


REAL = [
    pytest.param(b"PROXY UNKNOWN\r\n", id="unknown"),
    pytest.param(version_2(CLIENT, 1, command=0x20), id="local"),
]


@pytest.mark.parametrize("header", REAL)
async def test_without_an_address_that_of_the_proxy_counts(site: Site, header: bytes) -> None:
    async with running(site, "amqp") as app, Proxied(port_of(app), header) as client:
        assert "PLAIN" in await mechanisms(client)
        (address,) = client_addresses(app)
        assert address.startswith("127.0.0.1:")


async def test_rules_and_throttling_see_the_clients_address(site: Site) -> None:
    async with running(site, "amqps") as app:
        for _ in range(2):
            async with Proxied(port_of(app), HEADERS["1"], tls=site.authority.client()) as client:
                client.login("PLAIN", b"\0bob\0wrong")
                await client.header()
                await client.next()
                await client.next()
        other = version_1("192.0.2.8", 1)
        async with Proxied(port_of(app), other, tls=site.authority.client()) as client:
            client.login("PLAIN", b"\0bob\0tulip")
            await client.header()
            await client.next()
            told = await client.next()
            assert isinstance(told, SaslOutcome)
            assert told.code == SASL_OK, "the failures are those of another source"
        assert app.stats.authentication_failures >= 1


async def test_failed_handshakes_are_reported_with_the_clients_address(site: Site) -> None:
    async with running(site, "amqps") as app:
        async with Proxied(port_of(app), HEADERS["2"]) as client:
            client.send_bytes(SASL_HEADER)
            with suppress(ConnectionResetError):
                assert await client.eof()
        assert app.stats.tls_handshakes_failed == 1
        assert isinstance(app.container.watcher, RecordingWatcher)
        assert f"TLS handshake with {CLIENT} failed" in app.container.watcher.events[0]
