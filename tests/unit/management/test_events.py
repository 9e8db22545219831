"""The event log as an operator reads it, page by page."""

import asyncio
from collections.abc import Coroutine

import pytest

from broker.management.management import Management
from broker.routing.addresses.policy import AddressPolicy
from storage.events import EVENT_COLUMNS
from tests.support.broker import Broker
from tests.support.frames import message
from tests.support.management import Manager, Reply, request

LOGGED = AddressPolicy(event_log=True)


class Work:
    """Runs spawned work at once; with `slow`, when a test calls `go_on`."""

    def __init__(self, *, slow: bool = False) -> None:
        self.slow = slow
        self.waiting: list[Coroutine[None, None, None]] = []

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        self.waiting.append(work)
        if not self.slow:
            self.go_on()

    def go_on(self) -> None:
        """Run the oldest work to its end; with a store in memory it never waits."""
        asyncio.run(self.waiting.pop(0))


def reading(*, slow: bool = False) -> tuple[Broker, Work]:
    broker = Broker(policy=LOGGED)
    work = Work(slow=slow)
    broker.container.service = Management(broker.container, broker.store, work.spawn)
    return broker, work


def ask(manager: Manager, **arguments: object) -> Reply:
    count = arguments.pop("count", 100)
    assert isinstance(count, int)
    return manager.look("events", arguments, count=count)


def test_what_happened_to_a_message() -> None:
    broker, _ = reading()
    client = broker.session("shop")
    client.attach_receiver("q", name="in", handle=1)
    client.attach_sender()
    client.flow(handle=1, credit=1, delivery_count=0)
    client.transfer(0, payload=message(message_id="a"), settled=True)
    reply = ask(Manager(broker))
    assert [row["kind"] for row in reply.rows] == ["enqueued", "delivered"]
    assert list(reply.rows[0]) == list(EVENT_COLUMNS)
    assert reply.rows[1]["message_id"] == "ID:AMQP_NO_PREFIX:a"
    assert (reply.rows[1]["consumer"], reply.rows[1]["link"]) == ("shop", "in")
    assert reply.rows[1]["session"] == f"{client.peer.id}/0"
    assert (reply.map["next"], reply.map["complete"]) == (2, True)
    assert reply.properties["count"] == 2


def test_pages_and_filters() -> None:
    broker, _ = reading()
    broker.fill("a", 3)
    broker.fill("b", 2)
    manager = Manager(broker)
    page = ask(manager, count=2)
    assert [row["id"] for row in page.rows] == [1, 2]
    assert (page.map["next"], page.map["complete"]) == (2, False)
    assert [row["id"] for row in ask(manager, behind=page.map["next"]).rows] == [3, 4, 5]
    assert [row["id"] for row in ask(manager, address="b").rows] == [4, 5]
    assert ask(manager, kind="expired").rows == []
    at_us = int(broker.clock.wall_ms()) * 1000
    assert ask(manager, since_us=at_us + 1).rows == []
    assert len(ask(manager, since_us=at_us, until_us=at_us + 1).rows) == 5
    named = ask(manager, attributeNames=["kind", "id"], count=1)
    assert named.rows == [{"kind": "enqueued", "id": 1}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kind": "eaten"}, "known are enqueued"),
        ({"behind": -1}, "behind"),
        ({"colour": "red"}, "colour"),
        ({"attributeNames": ["colour"]}, "colour"),
    ],
)
def test_what_cannot_be_asked(arguments: dict[str, object], said: str) -> None:
    broker, _ = reading()
    reply = Manager(broker).look("events", arguments)
    assert reply.status == 400
    assert said in reply.description


def test_a_response_comes_when_the_page_has_been_read() -> None:
    broker, work = reading(slow=True)
    broker.fill("a", 1)
    manager = Manager(broker)
    manager.send(_query())
    assert _replies(manager) == []
    work.go_on()
    (reply,) = _replies(manager)
    assert [row["kind"] for row in reply.rows] == ["enqueued"]


def _query() -> bytes:
    return request("QUERY", "org.amqp.management", "self", properties={"entityType": "events"})


def _replies(manager: Manager) -> list[Reply]:
    """Return the replies received since the last call."""
    from tests.support.frames import Transfer
    from tests.support.management import read_reply

    found = [body for body in manager.client.bodies() if isinstance(body, Transfer)]
    return [read_reply(body.payload) for body in found]
