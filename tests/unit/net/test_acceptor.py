"""The acceptor of TLS connections on real sockets, with both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from broker.net.handshake_failures import FailureReason
from broker.net.handshakes import HandshakeLimits
from broker.tls_settings import TlsSettings
from tests.support.certificates import SERVER_NAME, Authority
from tests.support.loops import on_both_loops
from tests.support.tls_listening import (
    BROKEN,
    HALF,
    LONG,
    PATIENCE_S,
    blocking_handshake,
    ended,
    half_open,
    listening,
    turn,
    until,
)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def settings(tmp_path: Path, authority: Authority) -> TlsSettings:
    certificate, key = authority.issue(SERVER_NAME).write(tmp_path, "server")
    return TlsSettings(certificate=certificate, key=key)


@pytest.fixture
def asking(settings: TlsSettings, authority: Authority, tmp_path: Path) -> TlsSettings:
    update = {"client_certificates": "require", "client_ca": authority.write(tmp_path)}
    return settings.model_copy(update=update)


@on_both_loops
async def test_a_protocol_is_made_after_the_handshake(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        half = here.connect_raw()
        half.send(HALF)
        assert await here.echoed(authority.client()) == b"hello"
        assert (len(here.made), here.acceptor.completed) == (1, 1)
        transport = here.made[0].transport
        assert transport is not None
        assert transport.get_extra_info("peername")[0] == "127.0.0.1"
        assert transport.get_extra_info("ssl_object").version() == "TLSv1.3"
        half.close()
        assert await here.reasons(1) == [FailureReason.CLOSED]
    assert len(here.made) == 1


@on_both_loops
async def test_small_writes_are_sent_at_once(settings: TlsSettings, authority: Authority) -> None:
    async with listening(settings) as here:
        assert await here.echoed(authority.client()) == b"hello"
        transport = here.made[0].transport
        assert transport is not None
        accepted = transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


# -- failures


@pytest.mark.attack("A7")
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        pytest.param(b"AMQP\x00\x01\x00\x00", FailureReason.NOT_TLS, id="AMQP"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", FailureReason.NOT_TLS, id="HTTP"),
        pytest.param(b"\x00" * 100_000, FailureReason.NOT_TLS, id="zeros"),
        pytest.param(b"\x80\x2e\x01\x00\x02", FailureReason.NOT_TLS, id="SSL 2.0"),
        pytest.param(b"\x16AMQP\x00\x01\x00\x00", FailureReason.NOT_TLS, id="one byte of TLS"),
        pytest.param(BROKEN, FailureReason.PROTOCOL, id="broken TLS"),
    ],
)
@on_both_loops
async def test_other_protocols_end_at_once(
    settings: TlsSettings, authority: Authority, sent: bytes, reason: FailureReason
) -> None:
    async with listening(settings) as here:
        client = here.connect_raw()
        await asyncio.get_running_loop().sock_sendall(client, sent)
        assert len(await ended(client)) <= 7, "no more than an alert"
        assert await here.reasons(1) == [reason]
        assert here.failures[0].host == "127.0.0.1"
        assert here.acceptor.failed == {reason: 1}
        assert await here.echoed(authority.client()) == b"hello"


@pytest.mark.attack("A7")
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize(
    ("kind", "alert", "reason"),
    [
        pytest.param("1.1", "PROTOCOL_VERSION", FailureReason.VERSION, id="TLS 1.1"),
        pytest.param("none", "CERTIFICATE_REQUIRED", FailureReason.NO_CERTIFICATE, id="none"),
        pytest.param("other CA", "UNKNOWN_CA", FailureReason.CERTIFICATE, id="another CA's"),
        pytest.param("expired", "CERTIFICATE_EXPIRED", FailureReason.CERTIFICATE, id="expired"),
    ],
)
@on_both_loops
async def test_a_refused_client_is_told_why(
    asking: TlsSettings, authority: Authority, kind: str, alert: str, reason: FailureReason
) -> None:
    clients: dict[str, Callable[[], ssl.SSLContext]] = {
        "1.1": lambda: authority.client(version=ssl.TLSVersion.TLSv1_1),
        "none": authority.client,
        "other CA": lambda: authority.client(Authority().issue("shop@example.org")),
        "expired": lambda: authority.client(authority.issue("shop@example.org", expired=True)),
    }
    async with listening(asking) as here:
        with pytest.raises(ssl.SSLError, match=f"(?i)alert {alert.replace('_', '.')}"):
            await here.echoed(clients[kind]())
        assert await here.reasons(1) == [reason]
        assert here.made == []
        good = authority.client(authority.issue("shop@example.org"))
        assert await here.echoed(good) == b"hello"


@on_both_loops
async def test_a_client_that_does_not_trust_the_broker(settings: TlsSettings) -> None:
    async with listening(settings) as here:
        # in a thread: asyncio's own clients do not send the alert, either
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(blocking_handshake, here.port, Authority().client())
        assert await here.reasons(1) == [FailureReason.ALERT]
        assert here.failures[0].detail == "unknown ca"


@pytest.mark.parametrize("sent", [b"", HALF], ids=["silent", "in the middle"])
@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
@on_both_loops
async def test_a_client_that_goes_away(settings: TlsSettings, sent: bytes, resets: bool) -> None:
    async with listening(settings) as here:
        client = here.connect_raw()
        client.send(sent)
        await until(lambda: here.acceptor.pending() == 1)
        if resets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert await here.reasons(1) == [FailureReason.CLOSED]


@pytest.mark.parametrize("sent", [b"", HALF], ids=["silent", "in the middle"])
@on_both_loops
async def test_a_handshake_has_a_deadline(settings: TlsSettings, sent: bytes) -> None:
    async with listening(settings, HandshakeLimits(seconds=0.05)) as here:
        client = here.connect_raw()
        client.send(sent)
        assert await ended(client) == b""
        assert await here.reasons(1) == [FailureReason.TIMEOUT]


@on_both_loops
async def test_bytes_that_trickle_do_not_move_the_deadline(settings: TlsSettings) -> None:
    async with listening(settings, HandshakeLimits(seconds=0.1)) as here:
        client = here.connect_raw()
        began_s = time.monotonic()
        with suppress(ConnectionError):
            for byte in LONG:
                client.send(bytes([byte]))
                await turn()
                if here.failures:
                    break
        assert here.failures[0].reason is FailureReason.TIMEOUT
        assert time.monotonic() - began_s < PATIENCE_S / 2
        client.close()


# -- stop, reload


@on_both_loops
async def test_a_stop_ends_what_is_pending_and_leaves_open_connections(
    settings: TlsSettings, authority: Authority
) -> None:
    async with (
        listening(settings, HandshakeLimits(running_per_source=1)) as here,
        half_open(here, 2, "127.0.0.2") as halves,
        half_open(here, 1, "127.0.0.2", b"") as silent,
    ):
        reader, writer = await here.connect(authority.client())
        await until(lambda: len(here.made) == 1)
        here.acceptor.stop_accepting()
        await here.acceptor.ended()
        assert [failure.reason for failure in here.failures] == [FailureReason.STOPPED] * 3
        for each in [*halves, *silent]:
            assert await ended(each) == b""
        with pytest.raises(ConnectionRefusedError):
            here.connect_raw()
        writer.write(b"on")
        assert await reader.readexactly(2) == b"on"
        writer.transport.abort()
        here.acceptor.stop_accepting()


@on_both_loops
async def test_open_connections_go_on_over_a_reload(
    settings: TlsSettings, authority: Authority, tmp_path: Path
) -> None:
    async with listening(settings) as here:
        reader, writer = await here.connect(authority.client())
        renewed = authority.issue(SERVER_NAME)
        renewed.write(tmp_path, "server")
        assert here.contexts.reload() is None
        _, newer = await here.connect(authority.client())
        assert newer.get_extra_info("ssl_object").getpeercert(True) == renewed.der
        writer.write(b"still open")
        assert await reader.readexactly(10) == b"still open"
        assert writer.get_extra_info("ssl_object").getpeercert(True) != renewed.der
        writer.transport.abort()
        newer.transport.abort()


@on_both_loops
async def test_a_closed_connection_does_not_wait_long_for_the_client(
    settings: TlsSettings, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has stopped reading answers no end of TLS; the loops would wait 30 s."""
    monkeypatch.setattr("broker.net.tls_transport.CLOSE_NOTIFY_S", 0.05)
    async with listening(settings) as here:
        _, writer = await here.connect(authority.client())
        await until(lambda: len(here.made) == 1)
        cast(asyncio.Transport, writer.transport).pause_reading()
        (echo,) = here.made
        assert echo.transport is not None
        echo.transport.close()
        await until(lambda: echo.is_lost)
        writer.transport.abort()
