"""The type `broker` of management: the state of the broker, and its drain."""

import os

import pytest

from broker.links.drain import DrainOwner
from broker.links.drain_course import DrainPhase
from broker.management.drains import DrainEntity
from broker.management.entity import Caller
from broker.management.later import Later, Told
from broker.management.request import Refused, Request
from broker.management.response import ACCEPTED, Response
from broker.process_identity import process_identity
from broker.security.access import AccessRules
from broker.security.identity import ADMIN, Identity
from tests.support.broker import Broker, entrance

pytestmark = pytest.mark.requirement("OPS-14")


class Owner(DrainOwner):
    """A program whose broker may be drained."""

    def announce_ms(self) -> int:
        return 7

    def finish_ms(self) -> int:
        return 9

    def announced(self) -> None:
        """Do nothing."""

    def finishing(self) -> None:
        """Do nothing."""

    def over(self, unfinished: int) -> None:
        """Do nothing."""


def asked(broker: Broker, operation: str, **arguments: object) -> Response:
    identity = Identity("ada", roles=frozenset({ADMIN}))
    rules = AccessRules()
    caller = Caller(
        identity=identity,
        address="127.0.0.1:1",
        may=lambda verb, resource: rules.decide(identity, verb, resource, entrance=entrance()),
        tell=lambda _: None,
    )
    entity = DrainEntity(broker.container)
    request = Request(operation=operation, type="drain", name="drain", arguments=arguments)
    found = entity.operations()[operation](request, caller)
    assert not isinstance(found, Later | Told)
    return found


def test_it_says_what_the_broker_does() -> None:
    broker = Broker()
    broker.session().attach_sender()
    body = asked(broker, "READ").body
    assert body == {
        "name": "drain",
        "identity": "drain",
        "type": "drain",
        "state": "serving",
        "connections": 1,
        "links": 1,
    }


@pytest.mark.parametrize(
    ("arguments", "later"),
    [
        pytest.param({"announce_only": True}, "announced", id="an announcement alone"),
        pytest.param({}, "over", id="a drain"),
    ],
)
def test_a_drain_begins_after_the_response(arguments: dict[str, object], later: str) -> None:
    broker = Broker()
    broker.container.drain.owner = Owner()
    response = asked(broker, "DRAIN", **arguments)
    assert response.status == ACCEPTED
    process = process_identity(os.getpid())
    assert response.body == {"announce_ms": 7, "timeout_ms": 9, "process": process}
    assert not broker.container.drain.keeps_clients_out()
    for _ in range(4):
        broker.advance(10)
    body = asked(broker, "READ").body
    assert isinstance(body, dict)
    assert body["state"] == later


def test_an_embedded_broker_is_not_drained() -> None:
    broker = Broker()
    with pytest.raises(Refused, match="part of a program"):
        asked(broker, "DRAIN")
    assert broker.container.drain.phase() is DrainPhase.SERVING


def test_unknown_arguments_are_refused() -> None:
    broker = Broker()
    broker.container.drain.owner = Owner()
    with pytest.raises(Refused, match="knows no argument now"):
        asked(broker, "DRAIN", now=True)
