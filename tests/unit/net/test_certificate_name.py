"""The name in a client's certificate that stands for a user, as OpenSSL has decoded it."""

from __future__ import annotations

import ssl
from typing import cast

import pytest

from broker.net.certificate_name import CertificateContext, certificate_name
from broker.tls_settings import UserSource

pytestmark = pytest.mark.attack("A7")

SUBJECT = (
    (("organizationName", "CN=root"),),
    (("commonName", "orders, CN=root"),),
)
NAMES = (
    ("DNS", "orders.example"),
    ("URI", "spiffe://example/orders"),
    ("email", "orders@example"),
    ("email", "billing@example"),
)
DER = b"a certificate"


class Shown:
    """The TLS state of a connection whose client has shown a certificate."""

    def __init__(self, certificate: dict[str, object] | None, user_from: UserSource | None) -> None:
        self._certificate = certificate
        self.context = CertificateContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.user_from = user_from

    def getpeercert(self, *, binary_form: bool = False) -> object:
        if binary_form:
            return DER if self._certificate is not None else None
        return self._certificate


def name(certificate: dict[str, object] | None, user_from: UserSource | None) -> str:
    return certificate_name(cast(ssl.SSLObject, Shown(certificate, user_from)))


CASES = [
    pytest.param("subject:CN", "orders, CN=root", id="a comma adds no attribute"),
    pytest.param("san:dns", "orders.example", id="a host"),
    pytest.param("san:uri", "spiffe://example/orders", id="a URI"),
    pytest.param("san:email", "", id="two addresses stand for nobody"),
    pytest.param(
        "fingerprint",
        "81acd762140fa692a142822d2fbe4dc6f54bcaa501f68ab37e5aeed0bafe4d99",
        id="the fingerprint",
    ),
    pytest.param(None, "", id="nothing is chosen"),
]


@pytest.mark.parametrize(("user_from", "expected"), CASES)
def test_the_name_of_a_certificate(user_from: UserSource | None, expected: str) -> None:
    assert name({"subject": SUBJECT, "subjectAltName": NAMES}, user_from) == expected


@pytest.mark.parametrize("user_from", ["subject:CN", "san:dns", "fingerprint"])
def test_without_a_certificate_there_is_no_name(user_from: UserSource) -> None:
    assert name(None, user_from) == ""


def test_without_tls_there_is_no_name() -> None:
    assert certificate_name(None) == ""
