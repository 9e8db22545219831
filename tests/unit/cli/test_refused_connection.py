"""The reason why Proton could not connect: what the broker offers, and what an operator can do."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Final

import pytest

from broker.cli.client_tls import ClientTls
from broker.cli.refused_connection import why_refused
from tests.unit.cli.test_healthcheck import answering, offering

PATIENCE_S: Final = 20.0
NOTHING_FITS: Final = "amqp:unauthorized-access: Authentication failed [mech=none]"

SCRAM_ONLY: Final = ["SCRAM-SHA-512", "SCRAM-SHA-256"]

LOGINS = [
    pytest.param(
        "amqp://alice:sesame@",
        SCRAM_ONLY,
        "the broker offers SCRAM-SHA-512, SCRAM-SHA-256 here, and python-qpid-proton can only do"
        " PLAIN, EXTERNAL and ANONYMOUS: use amqps://",
        id="SCRAM alone",
    ),
    pytest.param(
        "amqp://",
        ["PLAIN"],
        "the broker demands a login (it offers PLAIN): name a user and its password",
        id="no user",
    ),
    pytest.param(
        "amqp://alice@",
        ["PLAIN", "ANONYMOUS"],
        "no mechanism of the broker fits (it offers PLAIN, ANONYMOUS)",
        id="a user without a password",
    ),
]


@pytest.mark.requirement("SEC-02")
@pytest.mark.parametrize(("url", "offered", "told"), LOGINS)
def test_no_mechanism_fits(url: str, offered: list[str], told: str) -> None:
    with answering(offering(*offered)) as place:
        reason = why_refused(f"{url}{place}", NOTHING_FITS, PATIENCE_S, tls=None)
    assert reason is not None
    assert reason.startswith(f"amqp:unauthorized-access: {told}")


def test_a_port_that_may_speak_tls() -> None:
    told = "Expected SASL protocol header: no protocol header found"
    reason = why_refused("amqp://h", told, PATIENCE_S, tls=None)
    assert reason == f"{told}. If TLS is spoken at this port, write amqps://"


def test_a_port_that_does_not_speak_tls() -> None:
    with answering(offering("PLAIN")) as place:
        reason = why_refused(f"amqps://{place}", "SSL Failure: x", PATIENCE_S, tls=ClientTls())
    assert reason is not None
    assert reason.startswith("it does not speak TLS at this port")


def test_no_second_connection_is_made_where_it_would_explain_nothing() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert why_refused(f"amqp://{place}", "Connection refused", PATIENCE_S, tls=None) is None
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # no client waits to be accepted
            server.accept()


def test_a_broker_that_does_not_answer_any_more() -> None:
    with answering(b"") as place:
        assert why_refused(f"amqp://{place}", NOTHING_FITS, PATIENCE_S, tls=None) is None
