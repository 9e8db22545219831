"""The limits on connections, with real clients from many addresses of this machine."""

import asyncio
import io
import json
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from broker.amqp.frames import AMQP_HEADER
from broker.amqp.sasl_frames import SASL_OK, SaslOutcome
from broker.app import App
from broker.log_lines import configure_logging
from broker.net.connection_admission import DESCRIPTORS_RESERVED, connection_limits
from broker.net.connection_gate import ConnectionLimits
from broker.settings import MEMORY, given_settings
from tests.support.certificates import Authority
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import ended, until

pytestmark = pytest.mark.requirement("SEC-05")

LOGIN_MAX_S = 1.0
"""Seconds within which a healthy client must be in (`docs/design/hostile-input.md` A1)."""


@asynccontextmanager
async def running(tmp_path: Path, **given: object) -> AsyncIterator[App]:
    settings = given_settings(port=0, users_file=tmp_path / "users", store=MEMORY, **given)
    app = App(settings)
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


def connect(app: App, source: str) -> socket.socket:
    """Return a connection from one of the addresses of this machine."""
    made = socket.create_connection(("127.0.0.1", app.port), source_address=(source, 0))
    made.setblocking(False)
    return made


async def connect_silent(app: App, sources: list[str], stack: ExitStack) -> list[socket.socket]:
    """Connect once from each of `sources`, in order, and send nothing."""
    made: list[socket.socket] = []
    for number, source in enumerate(sources, start=1):
        made.append(stack.enter_context(connect(app, source)))
        if number % 100 == 0:  # the backlog of the kernel is finite
            await asyncio.sleep(0)
    return made


async def log_in(app: App, source: str) -> None:
    """Log in with a password from `source`, and open a connection."""
    async with SocketClient(app.port, local=source) as client:
        client.login("PLAIN", b"\0ada\0secret")
        await client.header()
        await client.next()  # the mechanisms
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        assert outcome.code == SASL_OK
        await client.open()


@pytest.mark.attack("A1")
@pytest.mark.slow
async def test_silent_connections_do_not_keep_a_healthy_client_out(tmp_path: Path) -> None:
    """A1: 1,000 connections from ten addresses, at their limit, and one client that logs in."""
    given = {"user": "ada", "password": "secret", "unauthenticated_max": 1000}
    sources = [f"127.0.{1 + number % 10}.1" for number in range(1000)]
    async with running(tmp_path, **given) as app:
        with ExitStack() as stack:
            silent = await connect_silent(app, sources, stack)
            await until(lambda: app.listeners.admission.unauthenticated() == 1000)
            begun_s = time.monotonic()
            await log_in(app, "127.0.0.9")
            assert time.monotonic() - begun_s < LOGIN_MAX_S
            assert await ended(silent[0]) == b""
            assert app.stats.connections_over_limit == 1
            assert len(app.listeners.connections) <= 1000
    assert app.listeners.admission.unauthenticated() == 0


@pytest.mark.attack("A1")
async def test_a_source_has_only_so_many_connections_without_a_login(tmp_path: Path) -> None:
    async with running(tmp_path, unauthenticated_source_max=2) as app:
        with ExitStack() as stack:
            first, *others = await connect_silent(app, ["127.0.0.2"] * 3, stack)
            assert await ended(first) == b""
            assert app.listeners.admission.unauthenticated() == 2
            await connect_silent(app, ["127.0.0.3"], stack)
            await until(lambda: app.listeners.admission.unauthenticated() == 3)
            assert app.stats.connections_over_limit == 1
            others[0].send(AMQP_HEADER)
            loop = asyncio.get_running_loop()
            assert await asyncio.wait_for(loop.sock_recv(others[0], 8), 5) == AMQP_HEADER


async def test_this_machine_may_be_excepted_from_the_limit_of_a_source(tmp_path: Path) -> None:
    given = {"unauthenticated_source_max": 2, "limit_loopback": False}
    async with running(tmp_path, **given) as app:
        with ExitStack() as stack:
            await connect_silent(app, ["127.0.0.2"] * 5, stack)
            await until(lambda: app.listeners.admission.unauthenticated() == 5)
            assert app.stats.connections_over_limit == 0


@pytest.mark.attack("A1")
async def test_above_the_number_of_connections_only_those_without_a_login_give_way(
    tmp_path: Path,
) -> None:
    async with (
        running(tmp_path, connections_max=2) as app,
        SocketClient(app.port) as first,
    ):
        await first.open("first")
        with connect(app, "127.0.0.2") as silent:
            await until(lambda: len(app.listeners.connections) == 2)
            async with SocketClient(app.port, local="127.0.0.3") as second:
                await second.open("second")
                assert await ended(silent) == b""
                assert app.container.peer_count() == 2
                with connect(app, "127.0.0.4") as refused:
                    assert await ended(refused) == b""
                assert app.container.peer_count() == 2
        assert app.stats.connections_over_limit == 2
        await until(lambda: len(app.listeners.connections) == 1)
        async with SocketClient(app.port) as third:
            await third.open("third")


async def test_a_client_between_login_and_open_does_not_give_way(tmp_path: Path) -> None:
    """JMS clients log in when a connection is made, and open it when it is first used."""
    given = {"user": "ada", "password": "secret", "unauthenticated_source_max": 1}
    async with running(tmp_path, **given) as app, SocketClient(app.port) as client:
        client.login("PLAIN", b"\0ada\0secret")
        await client.header()
        await client.next()
        assert isinstance(await client.next(), SaslOutcome)
        assert app.listeners.admission.unauthenticated() == 0
        with connect(app, "127.0.0.1") as first, connect(app, "127.0.0.1"):
            assert await ended(first) == b""
        await client.open()


async def test_connections_count_after_their_tls_handshake(tmp_path: Path) -> None:
    authority = Authority()
    authority.write(tmp_path)
    certificate, key = authority.issue("localhost").write(tmp_path, "server")
    tls = {"certificate": certificate, "key": key}
    listener = [{"name": "secure", "kind": "amqps", "port": 0, "tls": tls}]
    trusting = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    async with running(tmp_path, unauthenticated_source_max=1, listener=listener) as app:
        port = app.listeners.each[1].port
        async with SocketClient(port, tls=trusting) as first:
            await until(lambda: app.listeners.admission.unauthenticated() == 1)
            async with SocketClient(port, tls=trusting) as second:
                with suppress(ConnectionResetError):
                    assert await first.eof()
                await second.open()
                assert app.listeners.admission.unauthenticated() == 0


async def test_a_flood_is_one_line_in_ten_seconds(tmp_path: Path) -> None:
    lines = io.StringIO()
    configure_logging("json", "info", lines)
    async with running(tmp_path, unauthenticated_source_max=1) as app:
        with ExitStack() as stack:
            await connect_silent(app, ["127.0.0.2"] * 20, stack)
            await until(lambda: app.stats.connections_over_limit == 19)
    (line,) = lines.getvalue().splitlines()
    assert json.loads(line)["event"] == (
        "a connection was closed for lack of room when 127.0.0.2 connected: at most 1"
        " without a login of one source (unauthenticated_source_max)"
    )


def test_open_files_limit_connections(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    settings = given_settings(port=0, users_file=tmp_path / "users", store=MEMORY)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
        assert connection_limits(settings) == ConnectionLimits(
            connections=1024 - DESCRIPTORS_RESERVED
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
