"""Start, stop and idle times of the broker, as a client on a real socket sees them."""

import asyncio
import socket
from pathlib import Path

import pytest

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER
from broker.amqp.performatives import Close
from broker.app import App
from broker.serving import ready_line
from broker.settings import MEMORY, given_settings
from tests.support.socket_client import SocketClient


async def test_stop_closes_every_connection_with_forced(app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open()
        stopping = asyncio.create_task(app.stop())
        close = await client.closed()
        assert close.error is not None
        assert close.error.condition == CONNECTION_FORCED
        client.send(Close())
        assert await client.eof()
        await stopping


async def test_a_client_that_ignores_our_close_is_cut_off(app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open()
        await app.listeners.close(0.05)
        assert await client.eof()
    assert app.container.peer_count() == 0


async def test_whoever_comes_while_the_broker_stops_is_cut_off(app: App) -> None:
    """The loop may hand over a connection that it accepted before the socket was closed."""
    app.container.close_all(ConnectionFault(CONNECTION_FORCED, "the broker is stopping"))
    reader, writer = await asyncio.open_connection("127.0.0.1", app.port)
    assert await reader.read() == b""
    writer.close()
    assert app.container.peer_count() == 0


async def test_a_container_id_is_free_when_its_socket_has_gone(app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open("shop")
        assert app.container.peer_count() == 1
        client.writer.transport.abort()
    async with SocketClient(app.port) as client:
        await client.open("shop")
        client.send(Close())
        await client.closed()
        assert await client.eof()


async def test_heartbeats_come_while_nothing_else_does(app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open(idle_time_out=120)
        assert await client.frame() == EMPTY_FRAME
        assert await client.frame() == EMPTY_FRAME


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        pytest.param(b"HTTP/1.1 GET /..", AMQP_HEADER, id="something else altogether"),
        pytest.param(b"AMQP\x02\x01\x00\x00", AMQP_HEADER, id="TLS inside the stream"),
        pytest.param(b"AMQP\x00\x00\x09\x01", AMQP_HEADER, id="an older AMQP"),
    ],
)
async def test_a_foreign_protocol_is_told_ours_and_cut_off(
    app: App, sent: bytes, answer: bytes
) -> None:
    async with SocketClient(app.port) as client:
        client.send_bytes(sent)
        assert await client.header() == answer
        assert await client.eof()


async def test_a_sasl_layer_may_be_left_out_where_anybody_may_enter(app: App) -> None:
    async with SocketClient(app.port) as client:
        client.send_bytes(SASL_HEADER)
        assert await client.header() == SASL_HEADER
    async with SocketClient(app.port) as client:
        opened = await client.open()
        assert "ANONYMOUS-RELAY" in opened.offered_capabilities


async def test_dropped_connections_end_without_a_close(app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open("shop")
        assert app.listeners.drop_connections() == 1
        assert app.container.peer_count() == 0
        assert app.listeners.drop_connections() == 0
        assert await client.eof()
    async with SocketClient(app.port) as client:
        await client.open("shop")


async def test_a_stop_does_not_wait_for_what_was_dropped(app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open()
        stopping = asyncio.create_task(app.stop())
        await client.closed()
        app.listeners.drop_connections()
        await stopping


async def test_each_listener_takes_connections_and_names_them(tmp_path: Path) -> None:
    further = ({"name": "internal", "port": 0},)
    app = App(given_settings(port=0, users_file=tmp_path / "none", store=MEMORY, listener=further))
    await app.start()
    first, second = app.listeners.each
    assert ready_line(app).endswith(f" internal={second.url()}")
    assert first.port != second.port
    async with SocketClient(first.port) as one, SocketClient(second.port) as other:
        await one.open("one")
        await other.open("other")
        named = {peer.container_id: peer.entrance.listener for peer in app.container.peers()}
        assert named == {"one": "amqp", "other": "internal"}
    await app.stop()
    for port in (first.port, second.port):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


async def test_a_further_listener_on_a_port_in_use_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        further = ({"name": "internal", "port": taken.getsockname()[1]},)
        app = App(
            given_settings(port=0, users_file=tmp_path / "none", store=MEMORY, listener=further)
        )
        with pytest.raises(OSError, match="in use") as caught:
            await app.start()
        assert caught.value.filename == app.listeners.each[1].url()
        await app.stop()
