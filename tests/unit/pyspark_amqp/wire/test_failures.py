"""Failures that another attempt could mend, and failures that end a query at once."""

from __future__ import annotations

import socket
from http.client import BadStatusLine, RemoteDisconnected

import pytest
from proton import Condition

from pyspark_amqp.errors import (
    BrokerError,
    DeniedError,
    FencedError,
    GoneError,
    LoginError,
    TransientError,
    UnreachableError,
    WrongUrlError,
    error_of,
)
from pyspark_amqp.wire.failures import (
    REACHED,
    class_of_all,
    class_of_dial,
    connection_ended,
    link_ended,
)

pytestmark = pytest.mark.requirement("PIP-56")


@pytest.mark.parametrize(
    ("name", "of_connection", "of_link"),
    [
        (None, TransientError, TransientError),
        ("amqp:connection:forced", TransientError, TransientError),
        ("amqp:internal-error", TransientError, TransientError),
        ("amqp:link:detach-forced", TransientError, TransientError),
        ("amqp:resource-limit-exceeded", TransientError, BrokerError),
        ("amqp:unauthorized-access", DeniedError, DeniedError),
        ("amqp:not-found", GoneError, GoneError),
        ("amqp:resource-locked", FencedError, FencedError),
        ("amqp:resource-deleted", TransientError, BrokerError),
    ],
)
def test_a_condition_says_whether_to_try_again(
    name: str | None, of_connection: type[BrokerError], of_link: type[BrokerError]
) -> None:
    condition = None if name is None else Condition(name, "why")
    found = connection_ended(condition), link_ended("the link to q", condition)
    assert tuple(map(type, found)) == (of_connection, of_link)
    assert str(found[1]).startswith("the broker has ended the link to q")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, LoginError),
        (403, DeniedError),
        (404, GoneError),
        (410, GoneError),
        (409, FencedError),
        (412, BrokerError),
        (429, TransientError),
        (500, BrokerError),
        (503, TransientError),
        (504, TransientError),
    ],
)
def test_a_status_says_whether_to_try_again(status: int, error: type[BrokerError]) -> None:
    assert type(error_of(status, "why")) is error


UNKNOWN = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.mark.parametrize(
    ("error", "found"),
    [
        pytest.param(ConnectionRefusedError("refused"), UnreachableError, id="nothing listens"),
        pytest.param(TimeoutError("late"), UnreachableError, id="no answer"),
        pytest.param(
            socket.gaierror(socket.EAI_AGAIN, "again"), UnreachableError, id="no name server"
        ),
        pytest.param(UNKNOWN, WrongUrlError, id="an unknown host"),
        pytest.param(LoginError("no"), LoginError, id="a refused login"),
        pytest.param(DeniedError("no"), DeniedError, id="a missing right"),
        pytest.param(
            TransientError("SSL Failure: wrong version number"), WrongUrlError, id="TLS to none"
        ),
        pytest.param(
            TransientError("AMQP header mismatch: Unknown protocol"), WrongUrlError, id="no AMQP"
        ),
        pytest.param(
            TransientError("certificate verify failed"), WrongUrlError, id="a foreign certificate"
        ),
        pytest.param(BadStatusLine("AMQP"), WrongUrlError, id="no HTTP"),
        pytest.param(RemoteDisconnected("closed"), UnreachableError, id="HTTP that ends"),
        pytest.param(
            TransientError("the connection is lost: connection aborted"),
            UnreachableError,
            id="lost",
        ),
    ],
)
def test_what_a_url_leads_to_says_whether_to_try_again(
    error: Exception, found: type[BrokerError]
) -> None:
    assert class_of_dial(error, "somewhere") is found


def test_a_host_that_was_reached_before_may_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a network of containers, the name of a host is unknown while the host restarts."""
    monkeypatch.setattr("pyspark_amqp.wire.failures.REACHED", REACHED | {"somewhere"})
    assert class_of_dial(UNKNOWN, "somewhere") is UnreachableError


@pytest.mark.parametrize(
    ("classes", "found"),
    [
        ([UnreachableError, LoginError], LoginError),
        ([DeniedError, UnreachableError], DeniedError),
        ([WrongUrlError, UnreachableError], UnreachableError),
        ([WrongUrlError, WrongUrlError], WrongUrlError),
    ],
)
def test_one_refusal_of_several_brokers_is_enough(
    classes: list[type[BrokerError]], found: type[BrokerError]
) -> None:
    assert class_of_all(classes) is found
