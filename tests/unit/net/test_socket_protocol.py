"""A peer that does not read: its deliveries stop, memory does not grow, it is finally cut off."""

import asyncio
import io
import json
from collections.abc import Callable

import pytest
from librt.strings import BytesWriter

from broker.amqp.encode import put_binary, put_bool, put_descriptor, put_uint
from broker.amqp.frames import AMQP_FRAME, begin_frame, end_frame
from broker.amqp.performatives import RECEIVER, SENDER, Attach, Flow
from broker.amqp.terminus import Source, Target
from broker.app import App
from broker.log_lines import configure_logging
from broker.net.socket_protocol import LONG_READ, SocketProtocol
from tests.support.socket_client import PATIENCE_S, SocketClient

COUNT = 64
BODY = b"x" * 900_000


def message(number: int) -> bytes:
    """Return a transfer frame with one settled message of nearly a megabyte."""
    fields = BytesWriter()
    put_uint(fields, 0)
    put_uint(fields, number)
    put_binary(fields, b"%d" % number)
    put_uint(fields, 0)
    put_bool(fields, True)
    content = fields.getvalue()
    out = BytesWriter()
    start = begin_frame(out, AMQP_FRAME, 0)
    put_descriptor(out, 0x14)
    out.write(bytes([0xC0, len(content) + 1, 5]) + content)
    put_descriptor(out, 0x75)
    put_binary(out, BODY)
    end_frame(out, start)
    return out.getvalue()


async def fill_link(sender: SocketClient) -> None:
    """Open a connection, and attach a sender to `q`."""
    await sender.open("writer")
    await sender.begin()
    sender.send(Attach(name="out", handle=0, role=SENDER, target=Target(address="q")))
    assert isinstance(await sender.next(), Attach)
    assert isinstance(await sender.next(), Flow)


async def fill(sender: SocketClient) -> None:
    """Send COUNT large messages to `q`."""
    await fill_link(sender)
    for number in range(COUNT):
        sender.send_bytes(message(number))
        await sender.writer.drain()


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    return stream


async def until(claim: Callable[[], bool]) -> None:
    """Let the broker, which runs in this event loop, work until `claim` is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not claim():  # noqa: ASYNC110 - sleep(0) only lets the broker run
            await asyncio.sleep(0)


async def attach_reader(reader: SocketClient) -> None:
    """Attach a receiver with credit for all messages, but read no transfers."""
    await reader.open("reader")
    await reader.begin()
    reader.send(
        Attach(name="in", handle=0, role=RECEIVER, source=Source(address="q")),
        Flow(
            next_incoming_id=0,
            incoming_window=1000,
            next_outgoing_id=0,
            outgoing_window=0,
            handle=0,
            delivery_count=0,
            link_credit=COUNT,
        ),
    )
    assert isinstance(await reader.next(), Attach)


@pytest.mark.attack("R4")
@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize("stall_timeout_ms", [100])
async def test_a_stalled_reader_is_cut_off_and_takes_no_message_along(
    lines: io.StringIO, app: App
) -> None:
    async with SocketClient(app.port) as sender, SocketClient(app.port, read_limit=1000) as reader:
        await attach_reader(reader)
        await fill(sender)
        await until(lambda: app.stats.published == COUNT)
        queue = app.container.router.queues["q"]
        assert queue.backlogs.waiting > 0, "deliveries stop while the reader's socket is full"
        await until(lambda: app.container.peer_count() == 1)
        assert (queue.backlogs.waiting, queue.state.acquired) == (COUNT, 0)
        assert app.stats.connections_stalled == 1
    cut, closed = [
        event
        for event in map(json.loads, lines.getvalue().splitlines())
        if event["container_id"] == "reader" and event["event"] != "connection opened"
    ]
    assert (cut["event"][:14], cut["level"], cut["stall_timeout_ms"]) == (
        *("connection cut", "warning"),
        100,
    )
    assert closed["reason"] == "cut: its client read nothing for 100 ms"


async def test_a_slow_reader_gets_everything_once_it_reads(app: App) -> None:
    async with SocketClient(app.port) as sender, SocketClient(app.port, read_limit=1000) as reader:
        await attach_reader(reader)
        await fill(sender)
        for _ in range(COUNT):
            assert BODY in await reader.frame()


async def test_input_that_is_held_waits_in_the_socket(app: App) -> None:
    async with SocketClient(app.port) as sender:
        await fill_link(sender)
        (peer,) = app.container.peers()
        peer.hold_input()
        peer.hold_input()
        peer.release_input()
        sender.send_bytes(message(0))
        for _ in range(100):
            await asyncio.sleep(0)
        assert app.stats.published == 0
        peer.release_input()
        await until(lambda: app.stats.published == 1)


def in_one_turn(app: App) -> tuple[SocketProtocol, asyncio.Transport]:
    """Return the only connection and its transport; all that it reads counts for one turn."""
    (protocol,) = app.listeners.connections
    transport = protocol._transport
    assert transport is not None
    protocol._loop_time_s = lambda: 0.0
    return protocol, transport


@pytest.mark.attack("R5")
async def test_a_client_that_sends_much_is_read_again_after_the_others(app: App) -> None:
    """The event loop would read on as long as the socket is full, 32 times in a row."""
    async with SocketClient(app.port) as sender:
        await fill_link(sender)
        protocol, transport = in_one_turn(app)
        protocol.data_received(message(0))
        assert transport.is_reading(), "less than READ_AT_ONCE"
        protocol.data_received(message(1))
        assert not transport.is_reading()
        await asyncio.sleep(0)
        assert transport.is_reading()
        await until(lambda: app.stats.published == 2)


async def test_reads_that_empty_the_socket_do_not_count(app: App) -> None:
    async with SocketClient(app.port) as sender:
        await fill_link(sender)
        protocol, transport = in_one_turn(app)
        data = message(0) + message(1)
        for begin in range(0, len(data), LONG_READ - 1):
            protocol.data_received(data[begin : begin + LONG_READ - 1])
        assert transport.is_reading()
        await until(lambda: app.stats.published == 2)


async def test_a_connection_that_is_paused_meanwhile_stays_so(app: App) -> None:
    async with SocketClient(app.port) as sender:
        await fill_link(sender)
        protocol, transport = in_one_turn(app)
        for number in range(2):
            protocol.data_received(message(number))
        protocol.pause()
        await asyncio.sleep(0)
        assert not transport.is_reading()
        protocol.resume()
        assert transport.is_reading()
