"""The AMQP error condition of every refusal by routing."""

import pytest

from broker.links.refusal import CONDITIONS, as_link_fault
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    LimitReached,
    NeverFits,
    NoSuchNode,
    NotAsSent,
    NotPermitted,
    QueueFull,
    RoutingError,
)

TOLD = [
    pytest.param(NoSuchNode, "amqp:not-found", id="no such node"),
    pytest.param(InvalidAddress, "amqp:invalid-field", id="no address at all"),
    pytest.param(NotPermitted, "amqp:unauthorized-access", id="a right that is missing"),
    pytest.param(HeldExclusively, "amqp:resource-locked", id="somebody else's node"),
    pytest.param(QueueFull, "amqp:resource-limit-exceeded", id="a full queue"),
    pytest.param(NeverFits, "amqp:link:message-size-exceeded", id="too large for its queue"),
    pytest.param(LimitReached, "amqp:resource-limit-exceeded", id="too many nodes"),
    pytest.param(NotAsSent, "amqp:precondition-failed", id="half of a batch"),
]


@pytest.mark.parametrize(("refusal", "condition"), TOLD)
def test_a_refusal_is_told_as(refusal: type[RoutingError], condition: str) -> None:
    fault = as_link_fault(refusal("what the peer may know"))
    assert fault.condition == condition
    assert fault.description == "what the peer may know"
    assert fault.info is None


def test_no_refusal_of_routing_lacks_a_condition() -> None:
    assert set(CONDITIONS) == set(RoutingError.__subclasses__())
