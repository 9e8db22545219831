"""Messages that have failed and wait for their redelivery delay, as an operator sees them."""

import asyncio

import pytest

from broker.amqp.outcomes import Modified
from broker.management.management import Management
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.clock import WALL_START_MS
from tests.support.frames import Disposition
from tests.support.management import Manager
from tests.unit.management.test_messages import bodies, done, listed

pytestmark = pytest.mark.requirement("OPS-19")

DELAY_MS = 5000
AT_MS = 100
"""The time of the first failure, after the start; each other fails AT_MS later."""


@pytest.fixture
def broker() -> Broker:
    """Return a broker whose queue `q` has the messages 0 to 3, of which 1 and 0 have failed."""
    broker = Broker(patterns=[("q", AddressPolicy(redelivery_delay_ms=DELAY_MS))])
    broker.container.service = Management(broker.container, None, asyncio.run)
    broker.fill(count=4)
    client = broker.session("failing")
    client.attach_receiver(credit=2)
    for number in (1, 0):
        broker.advance(AT_MS)
        client.send(Disposition(first=number, state=Modified(delivery_failed=True)))
    client.hang_up()
    return broker


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


FAILED = ["14", "4"]
READY = ["24", "34"]


def test_a_list_of_them_begins_with_the_one_that_is_delivered_first(manager: Manager) -> None:
    rows = manager.query("message", queue="q", state="paused").rows
    assert [row["identity"] for row in rows] == FAILED
    assert {row["state"] for row in rows} == {"paused"}
    assert [row["delivery_count"] for row in rows] == [1, 1]
    first_ms = WALL_START_MS + AT_MS + DELAY_MS
    assert [row["deliver_at"] for row in rows] == [first_ms, first_ms + AT_MS]


@pytest.mark.parametrize("state", ["scheduled", "held", "waiting", ""])
def test_no_other_list_has_them(manager: Manager, state: str) -> None:
    found = listed(manager, **({"state": state} if state else {}))
    assert found == (READY if state in ("waiting", "") else [])


def test_one_page_after_the_other(manager: Manager) -> None:
    first = manager.look("message", {"queue": "q", "state": "paused"}, count=1)
    assert [row["identity"] for row in first.rows] == FAILED[:1]
    assert listed(manager, state="paused", after=first.map["next"]) == FAILED[1:]


def test_all_of_one_message(manager: Manager) -> None:
    told = manager.ask("READ", "message", "4", queue="q").map
    assert (told["state"], told["body"]) == ("paused", b"0")


def test_they_are_ready_after_the_delay(broker: Broker, manager: Manager) -> None:
    broker.advance(DELAY_MS)
    assert listed(manager, state="paused") == []
    assert sorted(bodies(broker)) == [b"0", b"1", b"2", b"3"]


def test_named_ones_are_deleted(broker: Broker, manager: Manager) -> None:
    reply = manager.ask("DELETE", "message", queue="q", identities=FAILED)
    assert done(reply) == {"deleted": 2}
    assert (broker.queue().contents(), listed(manager)) == (2, READY)


def test_a_purge_removes_them(broker: Broker, manager: Manager) -> None:
    assert manager.ask("PURGE", "queue", "q").map == {"purged": 4, "left": 0}
    assert (broker.queue().contents(), broker.queue().state.bytes) == (0, 0)
