"""Python programs on python-qpid-proton against a broker with TLS: PLAIN, and EXTERNAL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from proton import ConnectionException, Message, SSLDomain
from proton.utils import BlockingConnection, LinkDetached

from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("SEC-01"),
    pytest.mark.requirement("SEC-02"),
]

SHOPPING: Final = f"{SHOP}:{SHOP_PASSWORD}"
TIMEOUT_S: Final = 20.0


@contextmanager
def connected(
    broker: SecuredBroker, *, login: str = "", ca: str = "ca", shown: str = ""
) -> Iterator[BlockingConnection]:
    """Yield a connection with a password, or with the certificate `shown`; close it."""
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(broker.file(f"{ca}.pem"))
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    if shown:
        domain.set_credentials(broker.file(f"{shown}.pem"), broker.file(f"{shown}.key"), None)
    connection = BlockingConnection(
        broker.tls_url(login, listener="demanding" if shown else "asking"),
        timeout=TIMEOUT_S,
        ssl_domain=domain,
        allowed_mechs="PLAIN" if login else "EXTERNAL",
    )
    try:
        yield connection
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("login", "shown"),
    [
        pytest.param(SHOPPING, "", id="a password"),
        pytest.param("", "shop", id="a certificate"),
        pytest.param(SHOPPING, "stranger", id="a password, with another certificate"),
    ],
)
def test_a_login_over_tls_sends_and_receives(
    secured_broker: SecuredBroker, address: str, *, login: str, shown: str
) -> None:
    with connected(secured_broker, login=login, shown=shown) as connection:
        connection.create_sender(address).send(Message("a book"))
        receiver = connection.create_receiver(address)
        assert receiver.receive(timeout=TIMEOUT_S).body == "a book"
        receiver.accept()


@pytest.mark.parametrize(
    ("login", "ca", "shown", "told"),
    [
        pytest.param("", "ca", "", "Authentication failed \\[mech=none", id="no certificate"),
        pytest.param(
            "", "ca", "stranger", "Authentication failed \\[mech=none", id="no user's certificate"
        ),
        pytest.param(SHOPPING, "ca", "foreign", "unknown ca", id="another authority's certificate"),
        pytest.param(SHOPPING, "other", "", "certificate verify failed", id="an untrusted broker"),
    ],
)
def test_a_client_is_refused_or_refuses(
    secured_broker: SecuredBroker, *, login: str, ca: str, shown: str, told: str
) -> None:
    with (
        pytest.raises(ConnectionException, match=told),
        connected(secured_broker, login=login, ca=ca, shown=shown),
    ):
        pass


def test_a_certificate_has_the_rights_of_its_user(secured_broker: SecuredBroker) -> None:
    with (
        connected(secured_broker, shown="shop") as connection,
        pytest.raises(LinkDetached, match="amqp:unauthorized-access"),
    ):
        connection.create_sender("closed.orders")
