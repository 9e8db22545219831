"""AMQP over WebSocket on real sockets, with both event loops where it is a matter of transports.

Attacks are those of docs/design/hostile-input.md A8; a healthy client is served beside them.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from websockets.asyncio.client import connect
from websockets.frames import Close as CloseFrame
from websockets.frames import Opcode
from websockets.typing import Origin, Subprotocol

from broker.amqp.errors import CONNECTION_FORCED
from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.limits import BUFFER_BEFORE_OPEN
from broker.amqp.performatives import RECEIVER, SENDER, Attach, Close, Flow, Open
from broker.amqp.terminus import Source, Target
from broker.app import App
from broker.net import websocket_protocol
from broker.net.socket_protocol import STALLED_AT
from broker.serving import ready_line
from broker.settings import MEMORY, Settings, given_settings
from tests.interop.broker_process import environment
from tests.support.broker import RecordingWatcher
from tests.support.loops import on_both_loops
from tests.support.socket_client import PATIENCE_S, SocketClient
from tests.support.tls_listening import until
from tests.support.websocket_client import WebSocketClient
from tests.support.websocket_frames import REQUEST, close_code, frame, request, response_of
from tests.unit.net.test_socket_protocol import BODY, COUNT, message

pytestmark = pytest.mark.requirement("SEC-06")


EVIL: Final = {"Origin": "https://evil.example"}


@pytest.fixture
def stall_timeout_ms() -> int:
    return 60_000


@pytest.fixture
def settings(tmp_path: Path, stall_timeout_ms: int) -> Settings:
    listener = {
        "name": "web",
        "kind": "ws",
        "port": 0,
        "origins": ["https://shop.example"],
        "path": "/amqp",
    }
    return given_settings(
        port=0,
        users_file=tmp_path / "users",
        store=MEMORY,
        listener=[listener],
        stall_timeout_ms=stall_timeout_ms,
    )


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[App]:
    app = App(settings, watcher=RecordingWatcher())
    await app.start()
    try:
        yield app
    finally:
        await app.stop(PATIENCE_S)


def port_of(app: App) -> int:
    return app.listeners.each[1].port


def reports(app: App) -> list[str]:
    assert isinstance(app.container.watcher, RecordingWatcher)
    return app.container.watcher.events


def client_of(app: App) -> WebSocketClient:
    return WebSocketClient(port_of(app), path="/amqp")


def raw_client(app: App) -> SocketClient:
    """Return a client that speaks whatever the test says."""
    return SocketClient(port_of(app))


async def read_all(client: SocketClient) -> bytes:
    """Return everything that the broker sends before it ends its half of the connection."""
    return await asyncio.wait_for(client.reader.read(), PATIENCE_S)


@on_both_loops
async def test_a_client_opens_a_connection(settings: Settings) -> None:
    async with running(settings) as app:
        url = app.listeners.each[1].url()
        assert url == f"ws://127.0.0.1:{port_of(app)}/amqp"
        assert ready_line(app).endswith(f" web={url}")
        async with client_of(app) as client:
            await client.open("shop")
            (peer,) = app.container.peers()
            assert (peer.entrance.listener, peer.entrance.kind) == ("web", "ws")
            assert (peer.entrance.host, peer.entrance.is_tls) == ("127.0.0.1", False)
            client.send(Close())
            await client.closed()
            assert await client.closed_with() == 1000
        assert reports(app)[-1] == "closed shop: closed by the peer"
        assert app.container.stats.websocket_failures == 0


async def test_the_librarys_own_client_speaks_to_the_broker(settings: Settings) -> None:
    """It offers compression, and sends a ping."""
    async with running(settings) as app:
        async with connect(
            f"ws://127.0.0.1:{port_of(app)}/amqp",
            subprotocols=[Subprotocol("amqp")],
            origin=Origin("https://shop.example"),
        ) as client:
            assert client.subprotocol == "amqp"
            assert client.protocol.extensions == []
            await client.send(SASL_HEADER)
            assert isinstance(got := await client.recv(), bytes)
            assert got.startswith(SASL_HEADER)
            await (await client.ping())
            await client.close(1000)
            assert client.close_code == 1000
        await until(lambda: not app.listeners.connections)


@pytest.mark.attack("A8")
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(request(path="/"), 404, id="another path"),
        pytest.param(request(path="/amqp", changed=EVIL), 403, id="a page"),
        pytest.param(request(path="/amqp", method="POST"), 405, id="another method"),
        pytest.param(SASL_HEADER, 400, id="AMQP"),
        pytest.param(b"\x16\x03\x01\x02\x00" + bytes(100_000), 400, id="TLS, and much of it"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000_000, 431, id="a megabyte of header"),
    ],
)
@on_both_loops
async def test_a_refused_client_gets_an_answer_and_the_operator_a_line(
    settings: Settings, sent: bytes, status: int
) -> None:
    async with running(settings) as app:
        async with raw_client(app) as client:
            client.send_bytes(sent)
            assert response_of(await read_all(client)).status == status
        assert app.stats.websocket_failures == 1
        (told,) = [event for event in reports(app) if "WebSocket" in event]
        assert told.startswith(f"noticed listener web: WebSocket of 127.0.0.1 failed: {status} ")
        async with client_of(app) as good:
            await good.open()
        await until(lambda: not app.listeners.connections)


@pytest.mark.attack("A8")
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(frame(Opcode.TEXT, b"AMQP"), 1003, id="text"),
        pytest.param(frame(data=SASL_HEADER, masked=False), 1002, id="not masked"),
        pytest.param(frame(data=bytes(BUFFER_BEFORE_OPEN + 1)), 1009, id="too large"),
        pytest.param(b"\xc2\x80\x01\x02\x03\x04", 1002, id="compressed"),
        pytest.param(frame(Opcode.TEXT) + frame(data=b"x" * 9000) * 99, 1003, id="and much more"),
    ],
)
@on_both_loops
async def test_a_broken_rule_ends_the_connection(
    settings: Settings, sent: bytes, code: int
) -> None:
    async with running(settings) as app, client_of(app) as good:
        await good.open("good")
        async with raw_client(app) as client:
            client.send_bytes(request(path="/amqp") + sent)
            handshake, _, rest = (await read_all(client)).partition(b"\r\n\r\n")
            assert handshake.startswith(b"HTTP/1.1 101 ")
            assert close_code(rest) == code
        assert app.stats.websocket_failures == 1
        await until(lambda: len(app.listeners.connections) == 1)
        await good.begin()


async def test_an_open_connection_that_breaks_a_rule_is_reported_with_the_reason(
    settings: Settings,
) -> None:
    async with running(settings) as app:
        async with client_of(app) as client:
            await client.open("shop")
            client.raw.write(frame(Opcode.TEXT, b"AMQP"))
            assert await client.closed_with() == 1003
            assert app.container.peer_count() == 0
        assert reports(app)[-1] == "closed shop: WebSocket: a text message: AMQP is binary"


@pytest.mark.attack("A8")
@pytest.mark.parametrize("sent", [b"", b"GET /amqp HTTP/1.1\r\n"], ids=["silent", "half"])
@on_both_loops
async def test_a_handshake_has_little_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    async with running(settings) as app:
        monkeypatch.setattr(websocket_protocol, "HANDSHAKE_S", 0.05)
        async with raw_client(app) as client:
            client.send_bytes(sent)
            with suppress(ConnectionResetError):
                assert await read_all(client) == b""
        assert app.stats.websocket_failures == 1
        assert "there was no request within 0.05 s" in reports(app)[0]
        await until(lambda: not app.listeners.connections)


async def test_the_time_of_a_handshake_ends_with_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(settings) as app:
        monkeypatch.setattr(websocket_protocol, "HANDSHAKE_S", 0.05)
        async with client_of(app) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.reader.read(1), 0.1)
            await client.open()


async def test_probes_of_the_port_are_no_failures(settings: Settings) -> None:
    async with running(settings) as app:
        async with raw_client(app):
            await until(lambda: len(app.listeners.connections) == 1)
        await until(lambda: not app.listeners.connections)
        assert app.stats.websocket_failures == 0
        async with raw_client(app) as client:
            client.send_bytes(b"GET ")
            await until(lambda: len(app.listeners.connections) == 1)
        await until(lambda: not app.listeners.connections)
        assert app.stats.websocket_failures == 1


@pytest.mark.parametrize("answers", [True, False])
@on_both_loops
async def test_a_stop_says_that_the_broker_goes_away(settings: Settings, answers: bool) -> None:
    """Connections whose AMQP is open are closed by AMQP first."""
    async with running(settings) as app:
        async with client_of(app) as early, client_of(app) as shop:
            await shop.open("shop")
            early.send_bytes(SASL_HEADER)
            assert await early.header() == SASL_HEADER
            stopping = asyncio.create_task(app.stop(0.2))
            close = await shop.closed()
            assert close.error is not None
            assert close.error.condition == CONNECTION_FORCED
            assert await early.closed_with() == 1001
            if answers:
                shop.send(Close())
                assert await shop.closed_with() == 1001
            await stopping
        assert not app.listeners.connections


@on_both_loops
async def test_a_client_that_does_not_answer_a_close_is_cut_off(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(settings) as app:
        monkeypatch.setattr(websocket_protocol, "CLOSE_S", 0.05)
        async with raw_client(app) as client:
            client.send_bytes(request(path="/amqp") + frame(data=b"AMQP\x09\x09\x09\x09"))
            with suppress(ConnectionResetError):
                assert close_code((await read_all(client))[-4:]) == 1000
        await until(lambda: not app.listeners.connections)


@on_both_loops
async def test_a_client_may_leave_without_a_close(settings: Settings) -> None:
    async with running(settings) as app:
        async with client_of(app) as client:
            await client.open("shop")
            client.raw.transport.abort()
            await until(lambda: app.container.peer_count() == 0)
        async with client_of(app) as client:
            await client.open("shop")
            client.protocol.send_close(4000, "enough")
            client.flush()
            assert await client.closed_with() == 4000
        told = "closed shop: WebSocket closed by the client: 4000 (private use) enough"
        assert reports(app)[-1] == told


# -- sizes and floods


async def attached(client: SocketClient, *, max_frame_size: int, credit: int) -> None:
    """Open a connection, and attach a receiver to `q` with `credit`."""
    client.send_bytes(AMQP_HEADER)
    client.send(Open(container_id="reader", max_frame_size=max_frame_size))
    assert await client.header() == AMQP_HEADER
    await client.next()
    await client.begin()
    client.send(
        Attach(name="in", handle=0, role=RECEIVER, source=Source(address="q")),
        Flow(
            next_incoming_id=0,
            incoming_window=10_000,
            next_outgoing_id=0,
            outgoing_window=0,
            handle=0,
            delivery_count=0,
            link_credit=credit,
        ),
    )
    assert isinstance(await client.next(), Attach)


async def sending(client: SocketClient) -> None:
    await client.open("writer")
    await client.begin()
    client.send(Attach(name="out", handle=0, role=SENDER, target=Target(address="q")))
    assert isinstance(await client.next(), Attach)
    assert isinstance(await client.next(), Flow)


@pytest.mark.parametrize("max_frame_size", [512, 100_000, 2**31 - 1])
@on_both_loops
async def test_large_messages_pass_in_messages_that_the_client_takes(
    settings: Settings, max_frame_size: int
) -> None:
    async with running(settings) as app, client_of(app) as reader, client_of(app) as sender:
        await sending(sender)
        for number in range(3):
            sender.send_bytes(message(number))
        await until(lambda: app.stats.published == 3)
        await attached(reader, max_frame_size=max_frame_size, credit=3)
        got = b""
        while len(got) < 3 * len(BODY):
            got += (await reader.frame())[-max_frame_size:]
        assert got.count(b"x") >= 3 * len(BODY) * 0.9
        assert max(reader.messages) <= min(max_frame_size, 2**20)


@pytest.mark.attack("A8")
async def test_a_flood_of_pings_is_answered_until_the_client_must_read(settings: Settings) -> None:
    """Pongs that are not read stop the reading, and a healthy client is served meanwhile."""
    async with running(settings) as app, raw_client(app) as client, client_of(app) as good:
        client.send_bytes(request(path="/amqp"))
        await client.reader.readuntil(b"\r\n\r\n")
        pings = frame(Opcode.PING, b"x" * 100) * 10_000
        accepted = client.writer.get_extra_info("socket")
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        transport = client.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        for _ in range(20):
            client.send_bytes(pings)
        connections = app.listeners.connections
        await until(lambda: any(not each._reading for each in connections))
        await good.open("good")
        assert max(each.unsent_bytes() for each in connections) < 2 * STALLED_AT
        await good.begin()
        transport.abort()


@pytest.mark.parametrize("stall_timeout_ms", [100])
async def test_a_client_that_does_not_read_is_cut_off(settings: Settings) -> None:
    async with running(settings) as app, client_of(app) as sender, client_of(app) as reader:
        await attached(reader, max_frame_size=2**20, credit=COUNT)
        assert isinstance(reader.raw.transport, asyncio.Transport)
        reader.raw.transport.pause_reading()
        await sending(sender)
        for number in range(COUNT):
            sender.send_bytes(message(number))
        await until(lambda: app.stats.connections_stalled == 1)
        await until(lambda: app.stats.published == COUNT)
        assert app.container.router.queues["q"].backlogs.waiting == COUNT


async def test_input_that_is_held_waits(settings: Settings) -> None:
    async with running(settings) as app, client_of(app) as sender:
        await sending(sender)
        (peer,) = app.container.peers()
        peer.hold_input()
        small = b"".join(frame(data=bytes([each])) for each in message(0)[:5000])
        sender.raw.write(small)
        rest = message(0)[5000:]
        sender.raw.write(frame(data=rest))
        for _ in range(100):
            await asyncio.sleep(0)
        assert app.stats.published == 0
        peer.release_input()
        await until(lambda: app.stats.published == 1)


UNUSED: Final = """
import asyncio, sys
from broker.app import App
from broker.settings import MEMORY, given_settings

async def run():
    app = App(given_settings(port=0, users_file="none", store=MEMORY))
    await app.start()
    await app.stop()

asyncio.run(run())
print([name for name in sys.modules if "websocket" in name or "proxy" in name])
"""


def test_a_broker_without_such_a_listener_carries_nothing_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNUSED],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_the_request_of_these_tests_is_one() -> None:
    assert REQUEST.startswith(b"GET / ")
    assert CloseFrame(1000, "").serialize() == struct.pack("!H", 1000)


DENY: Final = """
[[rule]]
id = "not-by-web"
effect = "deny"
who = ["anonymous"]
can = ["send"]
on = ["queue:secret"]
when = { listener = ["web"] }
"""


@pytest.mark.requirement("SEC-03")
async def test_the_rules_know_by_which_listener_a_client_has_come(
    settings: Settings, tmp_path: Path
) -> None:
    rules = tmp_path / "acl.toml"
    rules.write_text(DENY)
    async with running(settings.model_copy(update={"acl_file": rules})) as app:
        first = SocketClient(app.listeners.each[0].port)
        for client, refused in ((client_of(app), True), (first, False)):
            async with client:
                await client.open("shop" if refused else "desk")
                await client.begin()
                client.send(
                    Attach(name="l", handle=0, role=SENDER, target=Target(address="secret"))
                )
                answer = await client.next()
                assert isinstance(answer, Attach)
                assert (answer.target is None) is refused
        denied = "denied shop: not allowed to send queue:secret (rule not-by-web)"
        assert [event for event in reports(app) if "denied" in event] == [denied]
