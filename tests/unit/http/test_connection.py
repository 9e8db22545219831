"""Limits on clients of the HTTP server, in bytes, time and number: on real sockets."""

import asyncio
import contextlib
import json
import re
from urllib.parse import urlsplit

import pytest

from broker.http import admission, connection, events
from broker.http.limits import CONNECTIONS_PER_SOURCE_MAX
from storage.memory import MemoryStore
from tests.support.broker import Broker
from tests.support.http import ask, begin, event, note, served, socket_to
from tests.support.jms_http import until

HEAD = b"GET /livez HTTP/1.1\r\nHost: here\r\n"


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(HEAD + b"X: %s\r\n\r\n" % (b"x" * 900), b"200", id="short enough"),
        pytest.param(HEAD + b"X: %s\r\n\r\n" % (b"x" * 1100), b"400", id="longer"),
        pytest.param(HEAD + b"X: %s" % (b"x" * 1100), b"400", id="longer, and goes on"),
        pytest.param(b"GET /livez?%s" % (b"x" * 1100), b"400", id="a long URL"),
        pytest.param(b"hello\r\n\r\n", b"400", id="no HTTP at all"),
        pytest.param(b"AMQP\x00\x01\x00\x00", b"400", id="AMQP"),
    ],
)
async def test_the_head_of_a_request_is_short(head: bytes, status: bytes) -> None:
    """The limit is the setting head_bytes_max."""
    async with (
        served(MemoryStore(), head_bytes_max=1024) as url,
        socket_to(url) as (reader, writer),
    ):
        writer.write(head + (b"\r\n" * 4 if status == b"400" else b""))
        await writer.drain()
        assert (await reader.readline()).split()[1] == status
        if status == b"400":
            lines = (await asyncio.wait_for(reader.readuntil(b"}"), 5)).splitlines()
            assert "has at most 1024 bytes" in json.loads(lines[-1])["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param("Content-Length: 4\r\nTransfer-Encoding: chunked", 400, id="both"),
        pytest.param("transfer-encoding: Chunked\r\ncontent-length: 4", 400, id="the other order"),
        pytest.param("Content-Length: 15", 405, id="a length"),
        pytest.param("Transfer-Encoding: chunked", 405, id="chunks"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["the first", "a later one"])
async def test_a_request_with_two_lengths_ends_the_connection(
    headers: str, status: int, is_first: bool
) -> None:
    """Bytes that follow it are not taken for a request (RFC 9112, 6.3)."""
    body = b"5\r\nhello\r\n0\r\n\r\n"
    post = f"POST /livez HTTP/1.1\r\nHost: here\r\n{headers}\r\n\r\n".encode() + body
    last = HEAD + b"Connection: close\r\n\r\n"
    async with served(MemoryStore()) as url, socket_to(url) as (reader, writer):
        writer.write((b"" if is_first else HEAD + b"\r\n") + post + last)
        answers = (await asyncio.wait_for(reader.read(), 5)).decode()
    found = [int(each) for each in re.findall(r"HTTP/1\.1 (\d+)", answers)]
    assert found == [*([] if is_first else [200]), status, *([] if status == 400 else [200])]
    assert (connection.TWO_LENGTHS in answers) == (status == 400)


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /livez", id="half a line"),
        pytest.param(HEAD, id="half a head"),
        pytest.param(HEAD + b"\r\n", id="a request, and then nothing"),
        pytest.param(HEAD + b"\r\n" + HEAD, id="a request and half a head"),
    ],
)
async def test_a_peer_that_says_nothing_is_dropped(said: bytes) -> None:
    """The limit is the setting silence_max_ms."""
    async with (
        served(MemoryStore(), silence_max_ms=50) as url,
        socket_to(url) as (reader, writer),
    ):
        writer.write(said)
        received = b""
        try:
            while some := await asyncio.wait_for(reader.read(1000), 5):
                received += some
        except ConnectionResetError:
            pass  # the server dropped the connection
        assert received.count(b"200 OK") == (b"\r\n\r\n" in said)


async def test_a_peer_that_says_it_slowly_is_dropped() -> None:
    async with (
        served(MemoryStore(), silence_max_ms=50) as url,
        socket_to(url) as (reader, writer),
    ):
        dropped = asyncio.create_task(reader.read())
        for _ in range(500):
            writer.write(b"G")
            await asyncio.wait([dropped], timeout=0.01)
            if dropped.done():
                break
        assert dropped.done()
        assert isinstance(dropped.exception(), ConnectionError | None)


async def test_a_peer_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "ROWS_AT_ONCE", 1000)
    store = MemoryStore()
    await note(store, *[event(number, address="a" * 200) for number in range(1, 60_001)])
    async with (
        served(store, silence_max_ms=100, streams_max=1) as url,
        socket_to(url) as (reader, writer),
    ):
        await begin("/arrow/events", reader, writer)
        # this client does not read; the server takes only what its buffers hold
        for _ in range(1000):
            answer = await ask(f"{url}/arrow/events?behind=60000")
            if answer.status == 200:
                return  # the first stream has ended: the server dropped its client
            assert answer.status == 503
        pytest.fail("the stream that nobody takes goes on")


async def half_requests(
    url: str, count: int, local: str, *, said: bytes = HEAD
) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open `count` connections from the address `local`, and send `said` on each: half a head."""
    port = urlsplit(url).port
    opened = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(local, 0))
        writer.write(said)
        opened.append((reader, writer))
    return opened


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(
    "local", [pytest.param("127.0.0.2", id="another source"), pytest.param("127.0.0.1", id="ours")]
)
async def test_half_requests_do_not_close_the_port(local: str) -> None:
    """Issue: 300 half requests closed it for 60 s. The limit is CONNECTIONS_PER_SOURCE_MAX."""
    broker = Broker()
    async with served(MemoryStore(), broker=broker) as url:
        opened = await half_requests(url, 300, local)
        try:
            assert (await ask(f"{url}/livez")).status == 200
        finally:
            for _, writer in opened:
                writer.transport.abort()
    dropped = broker.stats.http_connections_dropped
    assert dropped >= 300 - CONNECTIONS_PER_SOURCE_MAX
    (notice,) = broker.watcher.events
    assert notice.startswith("noticed HTTP: 1 connections dropped for lack of room")


@pytest.mark.attack("A1")
@pytest.mark.requirement("OPS-06")
async def test_half_forms_of_logins_do_not_close_the_port() -> None:
    """A form has 30 s, and its client no login: it gives way to others."""
    broker = Broker()
    form = (
        b"POST /console/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\nuser="
    )
    async with served(MemoryStore(), broker=broker) as url:
        opened = await half_requests(url, CONNECTIONS_PER_SOURCE_MAX + 20, "127.0.0.1", said=form)
        await until(lambda: broker.stats.http_connections_dropped >= 20)
        try:
            assert (await ask(f"{url}/livez")).status == 200
        finally:
            for _, writer in opened:
                writer.transport.abort()


@pytest.mark.requirement("PIP-20")
async def test_half_requests_of_many_sources_do_not_either() -> None:
    """The limit is CONNECTIONS_MAX."""
    async with served(MemoryStore()) as url:
        opened = []
        for last in range(2, 12):
            opened += await half_requests(url, 30, f"127.0.0.{last}")
        assert (await ask(f"{url}/livez")).status == 200
        for _, writer in opened:
            writer.transport.abort()


@pytest.mark.requirement("PIP-20")
async def test_a_head_has_little_time_whatever_silence_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit is HEAD_MAX_MS."""
    monkeypatch.setattr(connection, "HEAD_MAX_MS", 50)
    async with served(MemoryStore(), silence_max_ms=60_000) as url:
        for said in (b"", HEAD, HEAD + b"\r\n" + HEAD):
            async with socket_to(url) as (reader, writer):
                writer.write(said)
                with contextlib.suppress(ConnectionResetError):
                    await asyncio.wait_for(reader.read(), 5)
        async with socket_to(url) as (reader, writer):
            writer.write(HEAD + b"\r\n")
            await reader.readuntil(b"ok\n")
            rest = asyncio.create_task(reader.read())
            done, _ = await asyncio.wait([rest], timeout=0.2)
            assert not done, "between two requests there is more time"
            rest.cancel()


@pytest.mark.requirement("PIP-20")
async def test_only_so_many_peers_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is CONNECTIONS_MAX: an idle connection gives way, one being answered does not."""
    monkeypatch.setattr(admission, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(events, "ROWS_AT_ONCE", 1000)
    store = MemoryStore()
    await note(store, *[event(number, address="a" * 200) for number in range(1, 60_001)])
    async with served(store) as url:
        async with socket_to(url) as (reader, writer):
            await begin("/arrow/events", reader, writer)
            with pytest.raises(ConnectionError):
                await ask(f"{url}/livez")
        for _ in range(100):  # until the server has seen that the first client is gone
            with contextlib.suppress(ConnectionError):
                assert (await ask(f"{url}/livez")).status == 200
                break
        else:
            pytest.fail("nobody is let in any more")
        async with socket_to(url):
            assert (await ask(f"{url}/livez")).status == 200
