"""Scans of a queue by an operator: page by page, with a selector, over a limited number."""

import pytest

from broker.management.message_scan import SCAN_MAX
from broker.routing.selector.facts import STEPS_MAX
from tests.support.broker import Broker
from tests.support.frames import message
from tests.support.management import Manager
from tests.unit.management.test_messages import listed, send


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


def test_one_page_after_the_other(broker: Broker, manager: Manager) -> None:
    broker.fill(count=5)
    everything = listed(manager)
    seen: list[str] = []
    after: dict[str, object] = {}
    for expected in (2, 2, 1):
        reply = manager.look("message", {"queue": "q", **after}, count=2)
        seen += [str(row["identity"]) for row in reply.rows]
        assert len(reply.rows) == expected
        after = {"after": reply.map["next"]}
    assert after == {"after": None}
    assert seen == everything


def test_a_list_that_ends_with_its_page_has_no_next(broker: Broker, manager: Manager) -> None:
    broker.fill(count=2)
    assert manager.query("message", queue="q", count=2).map["next"] is None


def test_those_that_a_selector_is_true_of(broker: Broker, manager: Manager) -> None:
    send(broker, *[message(b"%d" % number, priority=number) for number in range(4)])
    rows = manager.query("message", queue="q", selector="JMSPriority BETWEEN 1 AND 2").rows
    assert [row["priority"] for row in rows] == [2, 1]


def test_a_request_looks_at_so_many_messages(broker: Broker, manager: Manager) -> None:
    broker.fill(count=SCAN_MAX + 1)
    send(broker, message(b"wanted", priority=0))
    found: list[object] = []
    after: dict[str, object] = {}
    for _ in range(3):
        wanted = {"queue": "q", "selector": "JMSPriority = 0", **after}
        reply = manager.look("message", wanted)
        found += reply.rows
        after = {"after": reply.map["next"]}
        if reply.map["next"] is None:
            break
    assert len(found) == 1
    assert broker.queue().backlogs.waiting == SCAN_MAX + 2


@pytest.mark.attack("S1")
def test_a_request_ends_when_the_steps_of_its_selector_are_spent(
    broker: Broker, manager: Manager
) -> None:
    long = "ab" * (STEPS_MAX // 4)
    send(broker, *[message(b"x", properties={"p": long}) for _ in range(20)])
    send(broker, message(b"wanted", properties={"q": 1}))
    wanted: dict[str, object] = {"queue": "q", "selector": "p LIKE '%a_b%' OR q = 1"}
    requests = 1
    while not (reply := manager.look("message", wanted)).rows:
        wanted["after"] = reply.map["next"]
        requests += 1
    # each page examines some messages, and no more than the steps are for
    assert 4 <= requests <= 20
