"""The alert of a failed handshake is written to the socket of the connection."""

from __future__ import annotations

import contextvars
import socket
import ssl

import pytest

from broker.net.tls_front import ACCEPTED, FrontContext
from tests.support.certificates import SERVER_NAME, Authority, MemoryHandshake

UNKNOWN_CA = b"\x15\x03\x03\x00\x02\x02\x30"
"""The record of the alert unknown_ca (RFC 5246 7.2)."""


def refuse(accepted: socket.socket | None) -> None:
    """Let a handshake fail since the client's authority is unknown."""
    authority, stranger = Authority(), Authority()
    front = FrontContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue(SERVER_NAME).use_in(front)
    front.load_verify_locations(cadata=authority.pem.decode())
    front.verify_mode = ssl.CERT_REQUIRED
    ACCEPTED.set(accepted)
    sent = stranger.issue("shop@example.org")
    with pytest.raises(ssl.SSLCertVerificationError):
        MemoryHandshake(front, authority.client(sent, version=ssl.TLSVersion.TLSv1_2))


def test_the_alert_is_written_to_the_socket() -> None:
    ours, clients = socket.socketpair()
    with ours, clients:
        contextvars.copy_context().run(refuse, ours)
        assert clients.recv(100) == UNKNOWN_CA


def test_a_closed_socket_does_no_harm() -> None:
    ours, clients = socket.socketpair()
    ours.close()
    clients.close()
    contextvars.copy_context().run(refuse, ours)


def test_a_handshake_of_the_loops_own_server_works_without_a_socket() -> None:
    contextvars.copy_context().run(refuse, None)


def test_nothing_is_kept_for_the_alert_once_the_handshake_has_succeeded() -> None:
    authority = Authority()
    front = FrontContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue(SERVER_NAME).use_in(front)
    ours, clients = socket.socketpair()
    with ours, clients:

        def shake() -> ssl.SSLObject:
            ACCEPTED.set(ours)
            return MemoryHandshake(front, authority.client()).server

        server = contextvars.copy_context().run(shake)
        assert not vars(server).get("_send_alert")
