"""What a peer of the HTTP server may do, and how long it is waited for: on real sockets."""

import asyncio
import json

import pytest

from broker.http import connection, journal
from storage.memory import MemoryStore
from tests.support.http import ask, begin, event, note, served, socket_to

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
    """The setting is head_bytes_max."""
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
    """The setting is silence_max_ms."""
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
            pass  # dropped
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
    monkeypatch.setattr(journal, "ROWS_AT_ONCE", 1000)
    store = MemoryStore()
    await note(store, *[event(number, address="a" * 200) for number in range(1, 60_001)])
    async with (
        served(store, silence_max_ms=100, streams_max=1) as url,
        socket_to(url) as (reader, writer),
    ):
        await begin("/arrow/journal", reader, writer)
        # as much as is read ahead is all that is taken
        for _ in range(1000):
            answer = await ask(f"{url}/arrow/journal?behind=60000")
            if answer.status == 200:
                return  # the other stream is over
            assert answer.status == 503
        pytest.fail("the stream that nobody takes goes on")


@pytest.mark.requirement("PIP-20")
async def test_only_so_many_peers_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is CONNECTIONS_MAX."""
    monkeypatch.setattr(connection, "CONNECTIONS_MAX", 1)
    async with served(MemoryStore()) as url:
        async with socket_to(url) as (reader, writer):
            writer.write(HEAD + b"\r\n")
            assert (await reader.readline()).split()[1] == b"200"
            with pytest.raises(ConnectionError):
                await ask(f"{url}/livez")
        for _ in range(100):  # until the server has seen that the first one is gone
            try:
                assert (await ask(f"{url}/livez")).status == 200
            except ConnectionError:
                continue
            return
        pytest.fail("nobody is let in any more")
