"""The facts of a certificate that a client trusts for reading it only."""

from __future__ import annotations

import ssl

from broker.net.certificate_facts import client_trusting, days_left, facts_of, time_text
from broker.net.tls_proof import handshake
from tests.support.certificates import EXPIRED, Authority


def test_an_expired_certificate_can_be_read() -> None:
    issued = Authority().issue("shop.example", "10.0.0.1", expired=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.use_in(server)
    facts = facts_of(handshake(server, client_trusting(issued.der)))
    assert "CN=shop.example" in facts.subject
    assert facts.issuer.startswith("O=trustme")
    assert facts.names == ("shop.example", "10.0.0.1")
    assert facts.end_s == EXPIRED.timestamp()
    assert facts.days_left(facts.end_s + 1) == -1


def test_days_and_times() -> None:
    assert days_left(86_400 * 2, 1) == 1
    assert time_text(0) == "1970-01-01 00:00 UTC"
