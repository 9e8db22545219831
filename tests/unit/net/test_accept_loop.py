"""Accepted connections: from all addresses of a host, and after the process ran out of files."""

from __future__ import annotations

import asyncio
import socket

import pytest

from broker.net import accept_loop
from broker.net.accept_loop import AcceptLoop
from tests.support.loops import on_both_loops
from tests.support.tls_listening import until


@on_both_loops
async def test_connections_are_handed_over_until_it_is_closed() -> None:
    got: list[tuple[socket.socket, str]] = []
    loop = AcceptLoop(lambda accepted, host: got.append((accepted, host)))
    port = await loop.listen("127.0.0.1", 0, backlog=100)
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(32)]
    await until(lambda: len(got) == len(clients))
    assert {host for _, host in got} == {"127.0.0.1"}
    assert not any(accepted.getblocking() for accepted, _ in got)
    loop.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for each in [*clients, *(accepted for accepted, _ in got)]:
        each.close()


class Exhausted(socket.socket):
    """A listening socket of a process that has too many open files."""

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        raise OSError(24, "Too many open files")


@on_both_loops
async def test_without_files_it_tries_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept_loop, "ACCEPT_RETRY_S", 0.05)
    told: list[str] = []
    running = asyncio.get_running_loop()
    running.set_exception_handler(lambda _, context: told.append(str(context["message"])))
    loop = AcceptLoop(lambda accepted, _: accepted.close())
    port = await loop.listen("127.0.0.1", 0, backlog=100)
    (listening,) = loop._listening
    exhausted = Exhausted(fileno=listening.detach())
    loop._listening[0] = exhausted
    running.remove_reader(exhausted.fileno())
    loop._read_listening()
    client = socket.create_connection(("127.0.0.1", port))
    await until(lambda: len(told) == 2)
    assert "raise the limit of open files" in told[0]
    loop.close()
    client.close()
