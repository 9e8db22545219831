"""The server's part of a TLS handshake on a socket, with both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.net.tls_handshake import TlsState, handshake
from tests.support.certificates import SERVER_NAME, Authority
from tests.support.loops import on_both_loops

THREADS = "computing"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def server_context(authority: Authority, *, asks: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue(SERVER_NAME).use_in(context)
    if asks:
        context.load_verify_locations(cadata=authority.pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def performed(server: ssl.SSLContext, client: ssl.SSLContext) -> TlsState:
    """Perform a handshake of both ends, and return the server's state."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)

    def connect() -> None:
        with theirs, client.wrap_socket(theirs, server_hostname=SERVER_NAME):
            pass

    connecting = asyncio.get_running_loop().run_in_executor(None, connect)
    with ThreadPoolExecutor(1, thread_name_prefix=THREADS) as threads:
        try:
            return await handshake(ours, server, threads)
        finally:
            ours.close()
            await asyncio.gather(connecting, return_exceptions=True)


@on_both_loops
async def test_a_thread_computes_the_answer(authority: Authority) -> None:
    server = server_context(authority)
    computed_in: list[str] = []

    def note(_connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
        computed_in.append(threading.current_thread().name)

    server.sni_callback = note
    state = await performed(server, authority.client())
    assert state.tls.version() == "TLSv1.3"
    (name,) = computed_in
    assert name.startswith(THREADS)


@on_both_loops
async def test_a_thread_verifies_the_clients_certificate(authority: Authority) -> None:
    server = server_context(authority, asks=True)
    state = await performed(server, authority.client(authority.issue("shop@example.org")))
    assert state.tls.getpeercert()


@on_both_loops
async def test_a_failed_handshake_raises_what_openssl_says(authority: Authority) -> None:
    server = server_context(authority, asks=True)
    stranger = authority.client(Authority().issue("shop@example.org"))
    with pytest.raises(ssl.SSLCertVerificationError):
        await performed(server, stranger)


@on_both_loops
async def test_the_client_gets_the_alert(authority: Authority) -> None:
    server = server_context(authority, asks=True)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs, ThreadPoolExecutor(1) as threads:
        theirs.sendall(b"\x16\x03\x01\x00\x04\xff\xff\xff\xff")
        with pytest.raises(ssl.SSLError):
            await handshake(ours, server, threads)
        assert theirs.recv(100)[:1] == b"\x15", "a record of an alert (RFC 8446 5.1)"


@on_both_loops
async def test_a_client_that_goes_away(authority: Authority) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, ThreadPoolExecutor(1) as threads:
        theirs.send(b"\x16\x03\x01")
        theirs.close()
        with pytest.raises(ConnectionResetError):
            await handshake(ours, server_context(authority), threads)
