"""Messages that could not be moved to their dead-letter node, as an operator sees them."""

import asyncio

import pytest

from broker.amqp.outcomes import Rejected
from broker.management.management import Management
from broker.routing.addresses.policy import REJECT, AddressPolicy
from broker.routing.moves import RETRY_EVERY_MS
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer, attach_sender, message
from tests.support.management import Manager
from tests.unit.management.test_messages import bodies, done, listed

pytestmark = pytest.mark.requirement("RCV-02")

NO_QUEUE = AddressPolicy(
    dead_letter="/topic/durable/dead", expiry="/topic/durable/late", max_messages=9, full=REJECT
)


@pytest.fixture
def broker() -> Broker:
    """Return a broker whose queue `q` has the messages 0 to 8.

    Those with even numbers were rejected, and could not be moved to a dead-letter node.
    """
    broker = Broker(patterns=[("q", NO_QUEUE)])
    broker.container.service = Management(broker.container, None, asyncio.run)
    broker.fill(count=9)
    client = broker.session("rejecting")
    client.attach_receiver(credit=9)
    for number in range(0, 9, 2):
        client.send(Disposition(first=number, state=Rejected()))
    client.hang_up()
    return broker


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


HELD = ["4", "24", "44", "64", "84"]
WAITING = ["14", "34", "54", "74"]
ALL = sorted(HELD + WAITING, key=int)


def test_a_list_has_them_among_the_others_with_their_state_and_reason(manager: Manager) -> None:
    rows = manager.query("message", queue="q").rows
    assert [row["identity"] for row in rows] == ALL
    assert [row["state"] for row in rows] == ["held", "waiting"] * 4 + ["held"]
    assert [row["reason"] for row in rows] == ["rejected", None] * 4 + ["rejected"]


@pytest.mark.parametrize(
    ("state", "expected"), [("held", HELD), ("waiting", WAITING), ("scheduled", [])]
)
def test_a_list_by_state(manager: Manager, state: str, expected: list[str]) -> None:
    assert listed(manager, state=state) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 9])
@pytest.mark.parametrize("state", [{}, {"state": "held"}], ids=["", "held alone"])
def test_one_page_after_the_other(manager: Manager, count: int, state: dict[str, object]) -> None:
    found: list[str] = []
    after: dict[str, object] = {}
    while True:
        reply = manager.look("message", {"queue": "q", **state, **after}, count=count)
        found += [str(row["identity"]) for row in reply.rows]
        assert len(reply.rows) <= count
        if reply.map["next"] is None:
            break
        after = {"after": reply.map["next"]}
    assert found == (HELD if state else ALL)


def test_a_page_goes_on_where_a_message_was_deleted(manager: Manager) -> None:
    first = manager.query("message", queue="q", state="held", count=2)
    manager.ask("DELETE", "message", queue="q", identities=[HELD[1]])
    assert listed(manager, state="held", after=first.map["next"]) == HELD[2:]


def test_they_come_by_priority() -> None:
    broker = Broker(patterns=[("q", NO_QUEUE)])
    sender = broker.session("filler")
    sender.attach(attach_sender("q"))
    for number, priority in enumerate((1, 9, 9)):
        payload = message(b"%d" % number, priority=priority)
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
    sender.hang_up()
    client = broker.session("rejecting")
    client.attach_receiver(credit=1)
    client.send(Disposition(first=0, state=Rejected()))
    client.hang_up()
    rows = Manager(broker).query("message", queue="q").rows
    assert [(row["priority"], row["state"]) for row in rows] == [
        (9, "held"),
        (9, "waiting"),
        (1, "waiting"),
    ]


def test_a_selector_finds_them(manager: Manager) -> None:
    assert listed(manager, selector="JMSPriority = 4") == ALL
    assert listed(manager, selector="JMSPriority = 3") == []


def test_all_of_one_message(manager: Manager) -> None:
    told = manager.ask("READ", "message", "24", queue="q").map
    assert (told["state"], told["reason"], told["body"]) == ("held", "rejected", b"2")


def test_they_are_retried_in_their_own_queue_though_it_is_full(
    broker: Broker, manager: Manager
) -> None:
    assert done(manager.ask("RETRY", "message", queue="q", identities=["24", "4"])) == {"moved": 2}
    assert bodies(broker) == [b"1", b"3", b"5", b"7", b"2", b"0"]
    assert listed(manager, state="held") == HELD[2:]
    assert broker.queue().contents() == 9
    client = broker.session("again")
    client.attach_receiver(credit=9)
    client.expect_deliveries(b"1", b"3", b"5", b"7", b"2", b"0")


def test_retry_of_all_leaves_those_that_wait(broker: Broker, manager: Manager) -> None:
    reply = manager.ask("RETRY", "message", queue="q", all=True)
    assert (reply.map["moved"], reply.map["skipped"]) == (5, 4)
    assert broker.queue().backlogs.waiting == 9


def test_they_are_moved_elsewhere(broker: Broker, manager: Manager) -> None:
    manager.ask("CREATE", "queue", "other")
    reply = manager.ask("MOVE", "message", queue="q", identities=["44", "54"], to="other")
    assert done(reply) == {"moved": 2}
    assert bodies(broker, "other") == [b"4", b"5"]
    assert broker.queue().contents() == 7


@pytest.mark.parametrize(("identities", "deleted"), [(["4", "14"], 2), ([], 9)])
def test_they_are_deleted(
    broker: Broker, manager: Manager, identities: list[str], deleted: int
) -> None:
    reply = manager.ask(
        "DELETE", "message", queue="q", identities=identities or None, all=not identities
    )
    assert done(reply) == {"deleted": deleted}
    queue = broker.queue()
    assert queue.contents() == 9 - deleted
    assert (queue.state.bytes == 0) == (deleted == 9)


def test_they_are_purged_and_counted(broker: Broker, manager: Manager) -> None:
    record = manager.ask("READ", "queue", "q").map
    assert (record["messages"], record["held"]) == (4, 5)
    assert manager.ask("PURGE", "queue", "q").map == {"purged": 9, "left": 0}
    assert (broker.queue().contents(), broker.queue().state.bytes) == (0, 0)
    broker.advance(RETRY_EVERY_MS)
    assert broker.stats.dead_lettered == 0


def test_one_that_has_expired_is_not_retried(broker: Broker, manager: Manager) -> None:
    manager.ask("PURGE", "queue", "q")
    sender = broker.session("filler")
    sender.attach(attach_sender("q"))
    sender.send(Transfer(delivery_id=0, settled=True, payload=message(b"late", ttl=10)))
    sender.hang_up()
    broker.advance(1000)
    (row,) = manager.query("message", queue="q").rows
    assert (row["state"], row["reason"]) == ("held", "expired")
    reply = manager.ask("RETRY", "message", queue="q", all=True)
    assert (reply.map["moved"], reply.map["skipped"]) == (0, 1)
    assert "has expired" in str(reply.map["reason"])
