"""A handshake in memory between a server's context and a client's, to prove that they work."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

ROUNDS: Final = 10
"""Maximum exchanges of a handshake in memory; it needs three."""


class EndlessHandshakeError(ssl.SSLError):
    """Raised for a handshake that does not end."""

    reason = "THE_HANDSHAKE_DOES_NOT_END"  # OpenSSL's own errors have one


def handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, *, host: str | None = None
) -> ssl.SSLObject:
    """Perform a handshake with the certificate of `server`, and return the client's end.

    `server` does not ask for the client's certificate, as there is none to show here. `host` is the
    name that the client asks for. Raise ssl.SSLError if one of them refuses.
    """
    front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def publish(connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> None:
        connection.context = server

    front.sni_callback = publish
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    shown = client.wrap_bio(to_client, to_server, server_hostname=host)
    ends = [shown, front.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(ROUNDS):
        ends = [end for end in ends if not _is_done(end)]
    if ends:
        raise EndlessHandshakeError(0, "it does not end")
    return shown


def _is_done(end: ssl.SSLObject) -> bool:
    """Continue the handshake of one end. Return whether it is complete."""
    with suppress(ssl.SSLWantReadError):
        end.do_handshake()
        return True
    return False
