"""Faults, and the names of their error conditions."""

import pytest

from broker.amqp import errors
from broker.amqp.errors import ConnectionFault, Fault, LinkFault, SessionFault
from broker.amqp.types import Symbol

# the tables of 2.8.15 to 2.8.18, and 4.5.8
CONDITIONS = {
    "amqp:internal-error",
    "amqp:not-found",
    "amqp:unauthorized-access",
    "amqp:decode-error",
    "amqp:resource-limit-exceeded",
    "amqp:not-allowed",
    "amqp:invalid-field",
    "amqp:not-implemented",
    "amqp:resource-locked",
    "amqp:precondition-failed",
    "amqp:resource-deleted",
    "amqp:illegal-state",
    "amqp:frame-size-too-small",
    "amqp:connection:forced",
    "amqp:connection:framing-error",
    "amqp:connection:redirect",
    "amqp:session:window-violation",
    "amqp:session:errant-link",
    "amqp:session:handle-in-use",
    "amqp:session:unattached-handle",
    "amqp:link:detach-forced",
    "amqp:link:transfer-limit-exceeded",
    "amqp:link:message-size-exceeded",
    "amqp:link:redirect",
    "amqp:link:stolen",
    "amqp:transaction:unknown-id",
    "amqp:transaction:rollback",
    "amqp:transaction:timeout",
}


def test_every_condition_of_the_specification_has_a_name() -> None:
    values = vars(errors).values()
    assert {v for v in values if isinstance(v, str) and v.startswith("amqp:")} == CONDITIONS


@pytest.mark.parametrize("scope", [LinkFault, SessionFault, ConnectionFault])
def test_a_fault_says_what_is_wrong(scope: type[Fault]) -> None:
    fault = scope(errors.NOT_FOUND, "no node q", {Symbol("node"): "q"})
    assert isinstance(fault, Fault)
    assert (fault.condition, fault.description) == ("amqp:not-found", "no node q")
    assert fault.info == {Symbol("node"): "q"}
    assert str(fault) == "amqp:not-found: no node q"


def test_a_fault_needs_no_description() -> None:
    fault = LinkFault(errors.STOLEN)
    assert str(fault) == "amqp:link:stolen"
    assert fault.info is None
