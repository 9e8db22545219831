"""Attack classes A7 to A9 (docs/design/hostile-input.md): TLS, WebSocket, PROXY headers.

A healthy client is served beside each attack, at the listener that is attacked.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from websockets.frames import Opcode

from broker.amqp.frames import SASL_HEADER
from broker.amqp.limits import BUFFER_BEFORE_OPEN
from broker.app import App
from broker.settings import MEMORY, given_settings
from tests.support.healthy import NoHarm
from tests.support.proxy_headers import version_1, version_2
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import BROKEN, HALF, LONG, until
from tests.support.websocket_client import WebSocketClient
from tests.support.websocket_frames import frame, request
from tests.unit.net.test_proxy_listener import Proxied
from tests.unit.net.test_tls_listener import Site, port_of

BOB: Final = ("PLAIN", b"\0bob\0tulip")
HEALTHY: Final = "127.0.0.9"
ATTACKER: Final = "127.0.0.2"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@asynccontextmanager
async def running(app: App) -> AsyncIterator[App]:
    await app.start()
    try:
        yield app
    finally:
        await app.stop(5)


async def cut_off(port: int, sent: bytes) -> bytes:
    """Send bytes; return what the broker sends before it ends the connection."""
    async with SocketClient(port, local=ATTACKER) as client:
        client.send_bytes(sent)
        with suppress(ConnectionError):
            return await asyncio.wait_for(client.reader.read(), 5)
        return b""


# -- A7


def over_tls(site: Site, app: App) -> Callable[[], SocketClient]:
    """Return what makes the connections of the healthy client."""
    trusting = site.authority.client()
    return lambda: SocketClient(port_of(app), local=HEALTHY, tls=trusting)


NO_TLS: Final = (SASL_HEADER, BROKEN, b"GET / HTTP/1.1\r\n\r\n", b"\x15\x03\x01\x00\x02\x01\x00")


@pytest.mark.attack("A7")
async def test_no_handshake_keeps_others_from_theirs(no_harm: NoHarm, site: Site) -> None:
    """A7: what is no TLS ends; handshakes that stall take the places of their source alone."""
    async with (
        running(site.app()) as app,
        no_harm.beside_sockets(over_tls(site, app), BOB) as healthy,
    ):
        for sent in NO_TLS:
            assert len(await cut_off(port_of(app), sent)) <= 7, "no more than an alert"
            await healthy.exchange()
        assert app.stats.tls_handshakes_failed == len(NO_TLS)
        with ExitStack() as stack:
            for number in range(60):
                stalled = stack.enter_context(connect_to(port_of(app)))
                stalled.send(HALF if number % 2 else LONG)
            await healthy.newcomer()
            await healthy.exchange()
        await until(lambda: app.container.peer_count() == 1)


def connect_to(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), source_address=(ATTACKER, 0))
    made.setblocking(False)
    return made


NEEDS_OPENSSL: Final = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed"
)
KEY_UPDATES: Final = 300


@asynccontextmanager
async def openssl(site: Site, port: int, version: str) -> AsyncIterator[Process]:
    """Have the command `openssl s_client` connected; its letters R and K are commands."""
    started = await asyncio.create_subprocess_exec(
        *("openssl", "s_client", "-connect", f"127.0.0.1:{port}", f"-tls{version}"),
        *("-CAfile", str(site.folder / "ca.pem"), "-servername", "localhost"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            started.kill()
        await started.communicate()


async def told(process: Process, text: bytes) -> bytes:
    """Return the output of a process up to `text`, which must come."""
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.readuntil(text), 10)


def command(process: Process, letter: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(letter + b"\n")


@NEEDS_OPENSSL
@pytest.mark.attack("A7")
async def test_a_renegotiation_is_refused(no_harm: NoHarm, site: Site) -> None:
    """A7: TLS 1.2, in which a client can ask for a handshake again and again."""
    async with (
        running(site.app()) as app,
        no_harm.beside_sockets(over_tls(site, app), BOB) as healthy,
        openssl(site, port_of(app), "1_2") as attacker,
    ):
        await told(attacker, b"Extended master secret")
        command(attacker, b"R")
        await told(attacker, b"RENEGOTIATING")
        await told(attacker, b"no renegotiation")
        await healthy.exchange()


@NEEDS_OPENSSL
@pytest.mark.attack("A7")
async def test_a_flood_of_key_updates_harms_nobody(no_harm: NoHarm, site: Site) -> None:
    """A7: each asks the broker for an update of its own key, too."""
    async with (
        running(site.app()) as app,
        no_harm.beside_sockets(over_tls(site, app), BOB) as healthy,
        openssl(site, port_of(app), "1_3") as attacker,
    ):
        await told(attacker, b"Verify return code: 0 (ok)")
        for number in range(KEY_UPDATES):
            command(attacker, b"K")
            await told(attacker, b"KEYUPDATE\n")
            if number % 50 == 0:
                await healthy.exchange()
        await healthy.newcomer()
        assert attacker.returncode is None, "a connection may update its keys"


# -- A8


def web_app(folder: Path) -> App:
    listener = {
        "name": "web",
        "kind": "ws",
        "port": 0,
        "path": "/amqp",
        "origins": ["https://shop.example"],
    }
    settings = given_settings(port=0, users_file=folder / "none", store=MEMORY, listener=[listener])
    return App(settings)


EVIL: Final = {"Origin": "https://evil.example"}
UPGRADE: Final = request(path="/amqp")
NO_WEBSOCKET: Final = (
    request(path="/other"),
    request(path="/amqp", changed=EVIL),
    request(path="/amqp", method="POST"),
    SASL_HEADER,
    b"\x16\x03\x01\x02\x00" + bytes(100_000),
    b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000_000,
    b"GET /amqp HTTP/1.1\r\n" + b"a: b\r\n" * 10_000,
    UPGRADE + frame(Opcode.TEXT, b"AMQP"),
    UPGRADE + frame(data=SASL_HEADER, masked=False),
    UPGRADE + frame(data=bytes(BUFFER_BEFORE_OPEN + 1)),
    UPGRADE + b"\xc2\x80\x01\x02\x03\x04",
    UPGRADE + frame(Opcode.CONT, b"AMQP"),
    UPGRADE + frame(data=b"AM", fin=False) + frame(data=b"QP"),
    UPGRADE + b"\x83\x80\x01\x02\x03\x04",
    UPGRADE + frame(Opcode.PING, b"x" * 126),
)


@pytest.mark.attack("A8")
async def test_what_is_no_websocket_ends_one_connection(no_harm: NoHarm, tmp_path: Path) -> None:
    """A8: requests that are refused, and frames that break a rule."""
    async with running(web_app(tmp_path)) as app:
        port = app.listeners.each[1].port
        dial = lambda: WebSocketClient(port, path="/amqp")  # noqa: E731
        async with no_harm.beside_sockets(dial) as healthy:
            for sent in NO_WEBSOCKET:
                got = await cut_off(port, sent)
                assert b"AMQP\3" not in got, sent[:100]
                assert b"AMQP\0" not in got, sent[:100]
                await healthy.exchange()
            await healthy.newcomer()
            assert app.stats.websocket_failures == len(NO_WEBSOCKET)
            await until(lambda: app.container.peer_count() == 1)


@pytest.mark.attack("A8")
async def test_websocket_is_spoken_nowhere_else(no_harm: NoHarm, tmp_path: Path) -> None:
    """A8: at a listener of AMQP a request is a wrong protocol header."""
    async with (
        running(web_app(tmp_path)) as app,
        no_harm.beside_sockets(lambda: SocketClient(app.port, local=HEALTHY)) as healthy,
    ):
        assert (await cut_off(app.port, UPGRADE)).startswith(b"AMQP\0\1\0\0")
        await healthy.newcomer()


# -- A9


STATED: Final = "192.0.2.7"
"""The address that the attacker claims to have."""

NO_HEADER: Final = (
    SASL_HEADER,
    b"PROXY TCP4 192.0.2.7 192.0.2.7 99999 5672\r\n",
    b"PROXY TCP4 192.0.2.7\r\n",
    b"PROXY " + b"x" * 200,
    version_1(STATED, 1)[:-2] + b"\n\n",
    version_1(STATED, 1) * 2,
    version_2(STATED, 1, command=0x22),
    version_2(STATED, 1, family=0x99),
    version_2(STATED, 1, extra=bytes(5000)),
    version_2(STATED, 1)[:12] + b"\x11\x11\xff\xff",
)


def proxied_app(site: Site) -> App:
    """Return a broker with a listener behind a proxy at 127.0.0.9."""
    listener = {
        "name": "behind",
        "port": 0,
        "proxy_protocol": "require",
        "proxy_from": [HEALTHY],
    }
    return App(
        given_settings(
            port=0, users_file=site.users.file, store=MEMORY, plain="always", listener=[listener]
        )
    )


class ThroughProxy(Proxied):
    """A client that comes through the proxy, which has an address of its own."""

    def __init__(self, port: int, header: bytes) -> None:
        super().__init__(port, header)
        self._local = (HEALTHY, 0)


@pytest.mark.attack("A9")
async def test_no_header_is_believed_but_that_of_a_proxy(no_harm: NoHarm, site: Site) -> None:
    """A9: right headers of others, and wrong headers of the proxy, end one connection each."""
    async with running(proxied_app(site)) as app:
        port = port_of(app)
        honest = version_1("192.0.2.8", 40_000)
        async with no_harm.beside_sockets(lambda: ThroughProxy(port, honest), BOB) as healthy:
            for header in (version_1(STATED, 1), version_2(STATED, 1)):
                assert await cut_off(port, header + SASL_HEADER) == b""
                assert (await cut_off(app.port, header + SASL_HEADER)).startswith(b"AMQP\3\1\0\0")
                await healthy.exchange()
            for sent in NO_HEADER:
                async with ThroughProxy(port, sent) as attacker:
                    attacker.send_bytes(SASL_HEADER)
                    with suppress(ConnectionError):
                        got = await asyncio.wait_for(attacker.reader.read(), 5)
                        assert got in (b"", SASL_HEADER), "no mechanisms"
                await healthy.exchange()
            await healthy.newcomer()
            seen = {peer.entrance.host for peer in app.container.peers()}
            assert seen <= {"192.0.2.8"}
