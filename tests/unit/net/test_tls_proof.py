"""A handshake in memory between the contexts of a server and a client."""

from __future__ import annotations

import ssl

import pytest

from broker.net.certificate_facts import client_trusting, facts_of
from broker.net.tls_proof import handshake
from tests.support.certificates import SERVER_NAME, Authority


def server_of(authority: Authority, *names: str) -> tuple[ssl.SSLContext, bytes]:
    issued = authority.issue(*names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.use_in(context)
    return context, issued.der


def test_the_client_sees_the_certificate() -> None:
    server, der = server_of(Authority(), SERVER_NAME)
    shown = handshake(server, client_trusting(der))
    assert shown.getpeercert(binary_form=True) == der
    assert facts_of(shown).names == (SERVER_NAME,)


def test_a_client_that_refuses() -> None:
    authority = Authority()
    server, _ = server_of(authority, SERVER_NAME)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server, authority.client(), host="other.example")
