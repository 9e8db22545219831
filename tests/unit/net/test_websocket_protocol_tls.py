"""AMQP over WebSocket over TLS: the same certificates and logins as without WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from broker.amqp.frames import SASL_HEADER
from broker.amqp.sasl_frames import SASL_OK, SaslMechanisms, SaslOutcome
from broker.app import App
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until
from tests.support.websocket_client import WebSocketClient
from tests.support.websocket_frames import REQUEST, request
from tests.unit.net.test_tls_listener import Site, port_of, reports

pytestmark = pytest.mark.requirement("SEC-06")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
async def app(site: Site) -> AsyncIterator[App]:
    running = site.app(kind="wss")
    await running.start()
    yield running
    await running.stop()


async def test_a_client_logs_in_by_its_certificate(site: Site, app: App) -> None:
    assert app.listeners.each[1].url().startswith("wss://127.0.0.1:")
    shown = site.authority.issue("ada.example")
    async with WebSocketClient(port_of(app), tls=site.authority.client(shown)) as client:
        client.login("EXTERNAL", b"")
        assert await client.header() == SASL_HEADER
        assert isinstance(await client.next(), SaslMechanisms)
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        assert outcome.code == SASL_OK
        await client.open("shop")
        (peer,) = app.container.peers()
        assert (peer.entrance.kind, peer.entrance.is_tls) == ("wss", True)
        assert (peer.identity.user, peer.identity.mechanism) == ("ada", "EXTERNAL")


async def test_a_stop_closes_with_going_away(site: Site, app: App) -> None:
    async with WebSocketClient(port_of(app), tls=site.authority.client()) as client:
        client.send_bytes(SASL_HEADER)
        await client.header()
        await app.stop()
        assert await client.closed_with() == 1001


@pytest.mark.parametrize(("asked", "status"), [("no", 101), ("ask", 403)])
async def test_a_page_cannot_use_the_certificate_of_a_browser(
    site: Site, asked: str, status: int
) -> None:
    """Qpid JMS sends the origin of such a page."""
    optional = {"client_ca": None, "user_from": None} if asked == "no" else {}
    app = site.app(kind="wss", client_certificates=asked, **optional)
    await app.start()
    own = {"Host": "localhost:5674", "Origin": "http://localhost:5674"}
    async with SocketClient(port_of(app), tls=site.authority.client()) as client:
        client.send_bytes(request(changed=own))
        begin = await client.reader.readuntil(b"\r\n")
        assert begin.startswith(b"HTTP/1.1 %d " % status)
    await app.stop()


async def test_a_new_certificate_is_used(site: Site, app: App) -> None:
    async with WebSocketClient(port_of(app), tls=site.authority.client()):
        renewed = site.renew()
        app.listeners.watch_tls()
        async with SocketClient(port_of(app), tls=site.authority.client()) as late:
            encrypted = late.writer.get_extra_info("ssl_object")
            assert encrypted.getpeercert(binary_form=True) == renewed


async def test_a_client_without_tls_is_cut_off(app: App) -> None:
    async with SocketClient(port_of(app)) as client:
        client.send_bytes(REQUEST)
        with suppress(ConnectionResetError):
            assert await client.eof()
    assert app.stats.tls_handshakes_failed == 1
    assert app.stats.websocket_failures == 0


async def test_a_refused_request_is_answered_within_tls(site: Site, app: App) -> None:
    async with SocketClient(port_of(app), tls=site.authority.client()) as client:
        client.send_bytes(REQUEST.replace(b"GET / ", b"GET /other "))
        assert (await client.reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 404 ")
    await until(lambda: not app.listeners.connections)
    assert "404 Not Found" in reports(app)[0]
