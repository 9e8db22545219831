"""Bridges by `$management`: shown, paused and resumed."""

from __future__ import annotations

import pytest

from broker.links.bridge_status import PAUSED, RUNNING, WAITING, BridgeControl, BridgeStatus
from tests.support.broker import Broker
from tests.support.management import Manager, Reply, request


class Switch(BridgeControl):
    """A control that records the calls."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append(PAUSED)

    def resume(self) -> None:
        self.told.append(RUNNING)


def status(name: str) -> BridgeStatus:
    return BridgeStatus(
        name=name, source="q", target="there", url="amqp://b", keep="move", control=Switch()
    )


class BridgedBroker:
    """A broker that has the bridges of these names."""

    def __init__(self, *names: str) -> None:
        self.broker = Broker()
        self.bridges = self.broker.container.bridges
        for name in names:
            self.bridges[name] = status(name)
        self.manager = Manager(self.broker)

    def ask(self, operation: str, name: str, **arguments: object) -> Reply:
        """Send a request, and return the response."""
        return self.manager.ask_raw(request(operation, "bridge", name, body=arguments or None))


def test_a_bridge_is_shown() -> None:
    bridged = BridgedBroker("b")
    bridged.bridges["b"].enter(WAITING, 1234, error="nobody there")
    bridged.bridges["b"].moved = 7
    shown = bridged.ask("READ", "b").map
    assert (shown["state"], shown["since_ms"], shown["error"]) == (WAITING, 1234, "nobody there")
    assert (shown["source"], shown["target"], shown["moved"]) == ("q", "there", 7)
    assert (shown["delivery"], shown["held"]) == (None, 0)


def test_a_state_has_the_time_of_its_beginning() -> None:
    one = status("b")
    for state, now_ms, since_ms in ((WAITING, 5, 5), (WAITING, 6, 5), (RUNNING, 7, 7)):
        one.enter(state, now_ms)
        assert (one.state, one.since_ms, one.error) == (state, since_ms, "")
    assert one.is_up()


@pytest.mark.requirement("BRG-07")
@pytest.mark.parametrize(("operation", "told"), [("PAUSE", PAUSED), ("RESUME", RUNNING)])
def test_a_bridge_is_controlled(operation: str, told: str) -> None:
    bridged = BridgedBroker("a", "b")
    assert bridged.ask(operation, "b").status == 200
    controls = [each.control for each in bridged.bridges.values()]
    assert [each.told for each in controls if isinstance(each, Switch)] == [[], [told]]


@pytest.mark.parametrize("operation", ["READ", "PAUSE", "RESUME"])
def test_what_is_not_there_cannot_be_asked(operation: str) -> None:
    bridged = BridgedBroker("b")
    assert bridged.ask(operation, "c").status == 404
    assert bridged.ask(operation, "b", force=True).status == 400


def test_bridges_are_listed_by_name() -> None:
    rows = BridgedBroker("b", "a", "other").manager.query("bridge", filter="?").rows
    assert [row["name"] for row in rows] == ["a", "b"]
