"""The TLS layer of open connections on real sockets, with both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import cast

import pytest

from broker.net.tls_transport import PIECE, READ_MAX
from broker.tls_settings import TlsSettings
from tests.support.certificates import SERVER_NAME, Authority
from tests.support.loops import on_both_loops
from tests.support.tls_listening import Echo, Listening, listening, until

ALERT = b"\x15"
"""First byte of a record with an alert (RFC 8446 5.1)."""

LARGE = bytes(range(256)) * (3 * READ_MAX // 256) + b"the end"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def settings(tmp_path: Path, authority: Authority) -> TlsSettings:
    certificate, key = authority.issue(SERVER_NAME).write(tmp_path, "server")
    return TlsSettings(certificate=certificate, key=key)


async def connected(here: Listening, authority: Authority) -> tuple[Echo, asyncio.StreamWriter]:
    """Return both ends of a new connection."""
    echo, _, writer = await connected_to_read(here, authority)
    return echo, writer


async def connected_to_read(
    here: Listening, authority: Authority
) -> tuple[Echo, asyncio.StreamReader, asyncio.StreamWriter]:
    """Return both ends of a new connection, and what reads from the client's."""
    reader, writer = await here.connect(authority.client())
    await until(lambda: bool(here.made) and here.made[-1].transport is not None)
    return here.made[-1], reader, writer


class RawClient:
    """A client whose bytes the test sends itself."""

    def __init__(self, raw: socket.socket, context: ssl.SSLContext) -> None:
        self.raw = raw
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=SERVER_NAME)

    async def shake(self) -> None:
        """Perform the handshake; the last bytes of it stay in `outgoing`."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await loop.sock_sendall(self.raw, self.outgoing.read())
                self.incoming.write(await loop.sock_recv(self.raw, 65_536))
            else:
                return

    async def send(self) -> None:
        await asyncio.get_running_loop().sock_sendall(self.raw, self.outgoing.read())

    async def read(self) -> bytes:
        """Return the next data; b"" if the broker has ended TLS."""
        while True:
            try:
                return self.tls.read(65_536)
            except ssl.SSLZeroReturnError:  # the client has ended TLS, too
                return b""
            except ssl.SSLWantReadError:
                data = await asyncio.get_running_loop().sock_recv(self.raw, 65_536)
                assert data, "the socket ended without close_notify"
                self.incoming.write(data)


@pytest.mark.parametrize("size", [1, PIECE, PIECE + 1, len(LARGE)])
@on_both_loops
async def test_data_passes_both_ways(
    settings: TlsSettings, authority: Authority, size: int
) -> None:
    async with listening(settings) as here:
        reader, writer = await here.connect(authority.client())
        writer.write(LARGE[:size])
        assert await reader.readexactly(size) == LARGE[:size]
        writer.transport.abort()


@on_both_loops
async def test_chunks_are_written_as_one(settings: TlsSettings, authority: Authority) -> None:
    async with listening(settings) as here:
        client = RawClient(here.connect_raw(), authority.client())
        await client.shake()
        await client.send()
        await until(lambda: bool(here.made) and here.made[0].transport is not None)
        transport = cast(asyncio.Transport, here.made[0].transport)
        transport.writelines([b"some", b"", b"chunks"])
        transport.write(b"")
        assert await client.read() == b"somechunks"
        client.raw.close()


@on_both_loops
async def test_data_may_come_together_with_the_end_of_the_handshake(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        client = RawClient(here.connect_raw(), authority.client())
        await client.shake()
        client.tls.write(b"early")
        await client.send()
        assert await client.read() == b"early"
        client.raw.close()


# -- ends


@on_both_loops
async def test_the_clients_end_of_tls_is_answered(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        client = RawClient(here.connect_raw(), authority.client())
        await client.shake()
        client.tls.write(b"last")
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.unwrap()
        await client.send()
        assert [await client.read(), await client.read()] == [b"last", b""]
        await until(lambda: here.made[0].is_lost)
        client.raw.close()


@on_both_loops
async def test_a_socket_may_end_without_the_end_of_tls(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        client = RawClient(here.connect_raw(), authority.client())
        await client.shake()
        await client.send()
        client.raw.shutdown(socket.SHUT_WR)
        await until(lambda: bool(here.made) and here.made[0].is_lost)
        client.raw.close()


@pytest.mark.attack("A7")
@on_both_loops
async def test_a_broken_record_ends_the_connection_with_an_alert(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        client = RawClient(here.connect_raw(), authority.client())
        await client.shake()
        await client.send()
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client.raw, b"\x17\x03\x03\x00\x20" + bytes(32))
        with pytest.raises(ssl.SSLError, match=r"(?i)alert bad record mac"):
            await client.read()
        await until(lambda: here.made[0].is_lost)
        assert isinstance(here.made[0].lost_by, ssl.SSLError)
        client.raw.close()
        assert await here.echoed(authority.client()) == b"hello"


@on_both_loops
async def test_output_before_a_close_arrives_though_the_client_goes_on_sending(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        client = RawClient(here.connect_raw(), authority.client())
        await client.shake()
        await client.send()
        await until(lambda: bool(here.made) and here.made[0].transport is not None)
        transport = cast(asyncio.Transport, here.made[0].transport)
        transport.write(LARGE)
        transport.close()
        client.tls.write(b"unread")
        await client.send()
        got = b""
        while data := await client.read():
            got += data
        assert got == LARGE
        assert transport.is_closing()
        client.raw.close()
        await until(lambda: here.made[0].is_lost)


# -- flow control


@on_both_loops
async def test_a_paused_transport_hands_over_nothing(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        echo, writer = await connected(here, authority)
        transport = cast(asyncio.Transport, echo.transport)
        transport.pause_reading()
        assert not transport.is_reading()
        writer.write(b"hello")
        assert await here.echoed(authority.client()) == b"hello", "the loop has turned meanwhile"
        assert echo.received == b""
        transport.resume_reading()
        await until(lambda: echo.received == b"hello")
        writer.transport.abort()


@on_both_loops
async def test_the_protocol_hears_of_a_full_buffer(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        echo, reader, writer = await connected_to_read(here, authority)
        transport = cast(asyncio.Transport, echo.transport)
        cast(asyncio.Transport, writer.transport).pause_reading()
        transport.set_write_buffer_limits(high=1000, low=100)
        while not echo.is_paused:
            transport.write(LARGE)
        assert transport.get_write_buffer_size() > 1000
        cast(asyncio.Transport, writer.transport).resume_reading()
        reading = asyncio.create_task(reader.read())
        await until(lambda: not echo.is_paused)
        writer.transport.abort()
        await reading
