"""Conditions of rules: listener, networks and TLS."""

from __future__ import annotations

import pytest

from broker.security.conditions import (
    ConditionError,
    Conditions,
    network_of,
)
from broker.security.entrance import Entrance

INSIDE = Conditions(networks=[network_of("10.0.0.0/8"), network_of("fd00::/8")])
AMQPS = Conditions(listeners=["amqps"], tls=True)

FACTS = [
    pytest.param(INSIDE, "10.1.2.3", True, id="an address in the network"),
    pytest.param(INSIDE, "11.1.2.3", False, id="another address"),
    pytest.param(INSIDE, "::ffff:10.1.2.3", True, id="the same address, written for IPv6"),
    pytest.param(INSIDE, "fd00::1%eth0", True, id="with a zone"),
    pytest.param(Conditions(networks=[network_of("192.0.2.7")]), "192.0.2.7", True, id="one"),
]


@pytest.mark.parametrize(("conditions", "address", "expected"), FACTS)
def test_networks(conditions: Conditions, address: str, expected: bool) -> None:
    facts = Entrance(listener="amqp", kind="amqp", host=address, is_tls=False)
    assert conditions.hold(facts, if_unknown=False) is expected
    assert conditions.hold(facts, if_unknown=True) is expected


@pytest.mark.parametrize("address", ["", "a.host", "/run/socket"])
def test_an_unknown_address_never_gives_more(address: str) -> None:
    facts = Entrance(listener="amqp", kind="amqp", host=address, is_tls=False)
    assert INSIDE.hold(facts, if_unknown=True), "a deny rule holds"
    assert not INSIDE.hold(facts, if_unknown=False), "an allow rule does not"


ALL_HOLD = [
    pytest.param("amqps", True, True, id="both"),
    pytest.param("amqps", False, False, id="no TLS"),
    pytest.param("wss", True, False, id="another listener"),
]


@pytest.mark.attack("A6")
@pytest.mark.parametrize(("listener", "tls", "expected"), ALL_HOLD)
def test_all_conditions_must_hold(listener: str, tls: bool, expected: bool) -> None:
    facts = Entrance(listener=listener, kind="amqp", host="10.0.0.1", is_tls=tls)
    assert AMQPS.hold(facts, if_unknown=False) is expected


INCLUDE = [
    pytest.param(Conditions(), None, True, id="no condition includes none"),
    pytest.param(INSIDE, None, False, id="a network does not include all"),
    pytest.param(INSIDE, Conditions(networks=[network_of("10.9.0.0/16")]), True, id="a part"),
    pytest.param(Conditions(networks=[network_of("10.9.0.0/16")]), INSIDE, False, id="the whole"),
    pytest.param(INSIDE, Conditions(networks=[network_of("::/0")]), False, id="another family"),
    pytest.param(Conditions(tls=True), AMQPS, True, id="one of two conditions"),
    pytest.param(AMQPS, Conditions(tls=True), False, id="a listener is missing"),
    pytest.param(Conditions(tls=False), AMQPS, False, id="the opposite"),
]


@pytest.mark.parametrize(("outer", "inner", "expected"), INCLUDE)
def test_conditions_include_others(
    outer: Conditions, inner: Conditions | None, expected: bool
) -> None:
    assert outer.include(inner) is expected


WRONG = [
    pytest.param("10.0.0.1/8", "has host bits set", id="host bits"),
    pytest.param("ten", "is no network such as 10.0.0.0/8", id="no network"),
    pytest.param("::ffff:10.0.0.0/104", "write the IPv4 network", id="IPv4 in IPv6"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_text_that_is_no_network(text: str, told: str) -> None:
    with pytest.raises(ConditionError) as raised:
        network_of(text)
    assert told in str(raised.value)


def test_conditions_are_shown_as_they_are_written() -> None:
    shown = Conditions(listeners=["b", "a"], networks=[network_of("10.0.0.0/8")], tls=True).text()
    assert shown == 'listener = ["a", "b"], from = ["10.0.0.0/8"], tls = true'
