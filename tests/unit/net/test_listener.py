"""Start, stop and idle times of the broker, as a client on a real socket sees them."""

import asyncio

import pytest

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER
from broker.amqp.performatives import Close
from broker.app import App
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
        await app.listener.close(0.05)
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
        assert app.listener.drop_connections() == 1
        assert app.container.peer_count() == 0
        assert app.listener.drop_connections() == 0
        assert await client.eof()
    async with SocketClient(app.port) as client:
        await client.open("shop")


async def test_a_stop_does_not_wait_for_what_was_dropped(app: App) -> None:
    async with SocketClient(app.port) as client:
        await client.open()
        stopping = asyncio.create_task(app.stop())
        await client.closed()
        app.listener.drop_connections()
        await stopping
