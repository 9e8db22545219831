"""Performs the server's part of a TLS handshake on a socket that has no transport yet.

A thread computes the keys and the signature, half a millisecond without Python: the event loop
serves open connections meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

READ_MAX: Final = 16 * 1024
"""Maximum bytes read at once; OpenSSL itself limits what a client may send in a handshake."""


@dataclass(frozen=True, eq=False, slots=True)
class TlsState:
    """The TLS of one connection: `incoming` has what was received, `outgoing` what is to be sent.

    After the handshake `incoming` may hold data that came together with its end, and `outgoing` the
    tickets with which the client may resume its session.
    """

    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO


async def handshake(
    accepted: socket.socket, context: ssl.SSLContext, threads: Executor
) -> TlsState:
    """Perform the handshake on `accepted`, which does not block, and return the connection's TLS.

    Callbacks of `context` are called in one of the `threads`. Raise OSError, as ssl.SSLError is, if
    the handshake fails; the client has got its alert by then.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    loop = asyncio.get_running_loop()
    has_answered = is_done = False
    while not is_done:
        incoming.write(await _received(accepted))
        try:
            # behind the answer little is left to compute, unless the client shows a certificate
            if has_answered and context.verify_mode == ssl.CERT_NONE:
                is_done = _continue(tls)
            else:
                is_done = await loop.run_in_executor(threads, _continue, tls)
        except ssl.SSLError:
            _send_alert(accepted, outgoing)
            raise
        if outgoing.pending and not is_done:
            has_answered = True
            await loop.sock_sendall(accepted, outgoing.read())
    return TlsState(tls, incoming, outgoing)


async def _received(accepted: socket.socket) -> bytes:
    """Return what the client has sent, once there is something. Raise OSError at its end.

    The begin of a handshake is there already; the event loop's own function would wait for it.
    """
    try:
        data = accepted.recv(READ_MAX)
    except (BlockingIOError, InterruptedError):
        data = await asyncio.get_running_loop().sock_recv(accepted, READ_MAX)
    if not data:
        raise ConnectionResetError("the client closed the connection")
    return data


def _continue(tls: ssl.SSLObject) -> bool:
    """Go on with what has arrived. Return whether the handshake is complete."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _send_alert(accepted: socket.socket, outgoing: ssl.MemoryBIO) -> None:
    try:
        accepted.send(outgoing.read())
    except OSError:
        # the client is gone, or reads nothing: it does without the alert
        return
