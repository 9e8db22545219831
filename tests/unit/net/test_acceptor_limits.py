"""The limits of the acceptor of TLS connections, with both event loops: places, memory."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker.net.handshake_failures import FailureReason
from broker.net.handshakes import HandshakeLimits
from broker.tls_settings import TlsSettings
from tests.support.certificates import SERVER_NAME, Authority
from tests.support.loops import on_both_loops
from tests.support.tls_listening import (
    BROKEN,
    ended,
    half_open,
    listening,
    until,
)

pytestmark = pytest.mark.attack("A7")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def settings(tmp_path: Path, authority: Authority) -> TlsSettings:
    certificate, key = authority.issue(SERVER_NAME).write(tmp_path, "server")
    return TlsSettings(certificate=certificate, key=key)


@on_both_loops
async def test_the_33rd_handshake_of_a_source_waits_and_another_source_gets_in(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here, half_open(here, 32, "127.0.0.2") as opened:
        waiting = asyncio.create_task(here.echoed(authority.client(), "127.0.0.2"))
        await until(lambda: here.acceptor.pending() == 33)
        assert await here.echoed(authority.client(), "127.0.0.3") == b"hello"
        assert not waiting.done()
        opened[0].close()
        assert await waiting == b"hello"
        assert await here.reasons(1) == [FailureReason.CLOSED]


@on_both_loops
async def test_a_full_listener_lets_another_source_in_within_a_second(
    settings: TlsSettings, authority: Authority
) -> None:
    limits = HandshakeLimits(running=8, running_per_source=4, seconds=60, undisturbed_s=0.1)
    async with (
        listening(settings, limits) as here,
        half_open(here, 4, "127.0.0.2"),
        half_open(here, 4, "127.0.0.3"),
        half_open(here, 4, "127.0.0.4"),
    ):
        began_s = time.monotonic()
        assert await here.echoed(authority.client(), "127.0.0.9") == b"hello"
        assert time.monotonic() - began_s < 1.0
        assert here.acceptor.refused >= 1
        assert set(await here.reasons(1)) == {FailureReason.REFUSED}


@on_both_loops
async def test_silent_connections_take_no_place(
    settings: TlsSettings, authority: Authority
) -> None:
    limits = HandshakeLimits(running=2, running_per_source=1, seconds=60)
    async with listening(settings, limits) as here, half_open(here, 50, "127.0.0.2", b""):
        assert await here.echoed(authority.client(), "127.0.0.2") == b"hello"
        assert here.failures == []


@on_both_loops
async def test_at_the_limit_of_a_source_its_oldest_connection_ends(
    settings: TlsSettings, authority: Authority
) -> None:
    limits = HandshakeLimits(pending_per_source=10)
    async with listening(settings, limits) as here, half_open(here, 10, "127.0.0.2", b"") as opened:
        last = here.connect_raw("127.0.0.2")
        assert await ended(opened[0]) == b""
        assert await here.reasons(1) == [FailureReason.REFUSED]
        assert here.acceptor.pending() == 10
        assert await here.echoed(authority.client(), "127.0.0.3") == b"hello"
        last.close()


@on_both_loops
async def test_at_the_limit_of_all_the_greatest_source_loses_its_oldest(
    settings: TlsSettings, authority: Authority
) -> None:
    limits = HandshakeLimits(pending=10)
    async with (
        listening(settings, limits) as here,
        half_open(here, 4, "127.0.0.2", b""),
        half_open(here, 6, "127.0.0.3", b"") as greatest,
    ):
        assert await here.echoed(authority.client(), "127.0.0.4") == b"hello"
        assert await ended(greatest[0]) == b""


@on_both_loops
async def test_connections_that_come_at_once_are_all_accepted(
    settings: TlsSettings, authority: Authority
) -> None:
    async with listening(settings) as here:
        count = 26
        clients = [here.connect_raw(f"127.0.0.{2 + at // 40}") for at in range(count)]
        await until(lambda: here.acceptor.pending() == count)
        assert await here.echoed(authority.client()) == b"hello"
        for each in clients:
            each.close()
        await here.reasons(count)


@on_both_loops
async def test_a_fleet_of_one_source_gets_in(settings: TlsSettings, authority: Authority) -> None:
    client = authority.client()
    async with listening(settings) as here:
        answers = await asyncio.gather(*(here.echoed(client) for _ in range(60)))
        assert set(answers) == {b"hello"}
        assert here.failures == []


@on_both_loops
async def test_without_descriptors_connections_are_accepted_later(
    settings: TlsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.net.accept_loop.ACCEPT_RETRY_S", 0.05)
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: told.append(f"{context['message']}: {context['exception']}")
    )
    async with listening(settings) as here:
        with socket.socket() as client:
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, limits[1]))
            try:
                client.connect(("127.0.0.1", here.port))  # the kernel's side of it needs no turn
                await until(lambda: bool(told))
                assert "no connection is accepted for 0.05 s: raise the limit" in told[0]
                assert "Too many open files" in told[0]
                assert here.acceptor.pending() == 0
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            await until(lambda: here.acceptor.pending() == 1)


# -- memory


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def growth(repeat: Callable[[], Awaitable[None]], count: int) -> int:
    """Return the bytes by which `count` repetitions make the process grow, after a first lot."""

    async def many() -> int:
        for _ in range(count):
            await repeat()
        return resident_bytes()

    before = await many()
    return await many() - before


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"AMQP", BROKEN], ids=["plain", "broken"])
@on_both_loops
async def test_failed_handshakes_take_no_memory(settings: TlsSettings, sent: bytes) -> None:
    async with listening(settings) as here:

        async def fail() -> None:
            client = here.connect_raw()
            client.send(sent)
            await ended(client)

        assert await growth(fail, 1000) < 10 * 1024 * 1024
        here.failures.clear()
