"""Messages in a queue as an operator sees and changes them."""

import asyncio

import pytest

from broker.amqp.outcomes import Rejected
from broker.amqp.terminus import NEVER, Source
from broker.amqp.types import Symbol, Timestamp
from broker.management.management import Management
from broker.management.message_scan import CHANGED_MAX
from broker.message import Message
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.queues.queue_inspection import peek
from tests.support.broker import Broker
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    body_of,
    message,
)
from tests.support.management import Manager, Reply, request
from tests.support.stored import stored_messages


@pytest.fixture
def broker() -> Broker:
    small = AddressPolicy(max_messages=2)
    made = Broker(patterns=[("small", small)])
    made.container.service = Management(made.container, None, asyncio.run)
    return made


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


def send(broker: Broker, *payloads: bytes, address: str = "q") -> None:
    sender = broker.session("filler")
    sender.attach(attach_sender(address))
    for number, payload in enumerate(payloads):
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
    sender.hang_up()


def bodies(broker: Broker, address: str = "q") -> list[bytes]:
    """Return the bodies of the ready messages in a queue, in order."""
    backlogs = broker.queue(address).backlogs
    return [body_of(entry.message.encoded) for entry in peek(backlogs, -1, 10**6)]


def listed(manager: Manager, **arguments: object) -> list[str]:
    rows = manager.look("message", {"queue": "q", **arguments}).rows
    return [str(row["identity"]) for row in rows]


def done(reply: Reply) -> dict[str, object]:
    """Return the effects that a change reports, without those that are zero, empty or None."""
    assert reply.status == 200, reply.description
    return {name: value for name, value in reply.map.items() if value not in (None, [], 0)}


# -- messages as they are listed


def test_messages_in_the_order_in_which_they_would_go(broker: Broker, manager: Manager) -> None:
    send(broker, message(b"a"), message(b"b", priority=9, durable=True), message(b"c"))
    rows = manager.query("message", queue="q").rows
    assert [row["priority"] for row in rows] == [9, 4, 4]
    assert [row["durable"] for row in rows] == [True, False, False]
    assert {row["state"] for row in rows} == {"waiting"}
    assert rows[0]["size"] == len(first_of(broker).encoded)
    assert bodies(broker) == [b"b", b"a", b"c"]


def first_of(broker: Broker) -> Message:
    return peek(broker.queue().backlogs, -1, 1)[0].message


def test_all_of_one_message(broker: Broker, manager: Manager) -> None:
    send(broker, message(b"hello", to="q", annotations={"x-opt-a": 1}))
    (identity,) = listed(manager)
    told = manager.ask("READ", "message", identity, queue="q").map
    assert (told["body"], told["body_kind"], told["body_truncated"]) == (b"hello", "bytes", False)
    assert told["annotations"] == {Symbol("x-opt-a"): 1}
    assert told["properties"] == {"to": "q"}
    assert told["state"] == "waiting"


def test_what_a_consumer_holds_is_not_seen(broker: Broker, manager: Manager) -> None:
    broker.fill(count=2)
    before = listed(manager)
    broker.session("consumer").attach_receiver(credit=1)
    assert listed(manager) == before[1:]
    assert manager.ask("READ", "message", before[0], queue="q").status == 404


# -- changes


def test_named_messages_are_deleted(broker: Broker, manager: Manager) -> None:
    broker.fill(count=4)
    first, second, *_ = listed(manager)
    reply = manager.ask("DELETE", "message", queue="q", identities=[second, first, first, "999994"])
    assert done(reply) == {"deleted": 2, "missing": ["999994"]}
    assert bodies(broker) == [b"2", b"3"]


def test_messages_of_a_selector_are_deleted(broker: Broker, manager: Manager) -> None:
    send(broker, *[message(b"%d" % number, priority=number) for number in range(4)])
    reply = manager.ask("DELETE", "message", queue="q", selector="JMSPriority > 1")
    assert done(reply) == {"deleted": 2}
    assert bodies(broker) == [b"1", b"0"]


def test_a_deleted_message_is_gone_from_the_store(broker: Broker, manager: Manager) -> None:
    send(broker, message(b"a", durable=True), message(b"b", durable=True))
    manager.ask("DELETE", "message", queue="q", identities=listed(manager)[:1])
    manager.ask("CREATE", "queue", "other")
    manager.ask("MOVE", "message", queue="q", all=True, to="other")
    assert asyncio.run(stored_messages(broker.store, "q")) == []
    assert len(asyncio.run(stored_messages(broker.store, "other"))) == 1


def test_messages_are_moved_as_they_are(broker: Broker, manager: Manager) -> None:
    send(broker, *[message(body, to="x") for body in (b"a", b"b")])
    manager.ask("CREATE", "queue", "other")
    assert done(manager.ask("MOVE", "message", queue="q", all=True, to="other")) == {"moved": 2}
    assert (bodies(broker), bodies(broker, "other")) == ([], [b"a", b"b"])


def test_messages_are_copied_and_stay(broker: Broker, manager: Manager) -> None:
    send(broker, *[message(body, to="x", durable=True) for body in (b"a", b"b")])
    manager.ask("CREATE", "queue", "other")
    assert done(manager.ask("COPY", "message", queue="q", all=True, to="other")) == {"copied": 2}
    assert (bodies(broker), bodies(broker, "other")) == ([b"a", b"b"], [b"a", b"b"])
    assert len(asyncio.run(stored_messages(broker.store, "q"))) == 2
    assert len(asyncio.run(stored_messages(broker.store, "other"))) == 2


def test_a_copy_ends_where_the_place_is_full(broker: Broker, manager: Manager) -> None:
    broker.fill(count=3)
    manager.ask("CREATE", "queue", "small")
    reply = done(manager.ask("COPY", "message", queue="q", all=True, to="small"))
    assert reply["copied"] == 2
    assert "holds its 2 messages" in str(reply["stopped"])
    assert len(bodies(broker)) == 3


def test_many_are_moved_piece_by_piece(broker: Broker, manager: Manager) -> None:
    broker.fill(count=CHANGED_MAX + 3)
    manager.ask("CREATE", "queue", "other")
    first = manager.ask("MOVE", "message", queue="q", all=True, to="other").map
    assert first["moved"] == CHANGED_MAX
    assert first["next"] is not None
    second = manager.ask("MOVE", "message", queue="q", all=True, to="other", after=first["next"])
    assert done(second) == {"moved": 3}


def test_a_move_ends_where_the_place_is_full(broker: Broker, manager: Manager) -> None:
    broker.fill(count=3)
    manager.ask("CREATE", "queue", "small")
    reply = done(manager.ask("MOVE", "message", queue="q", all=True, to="small"))
    assert reply["moved"] == 2
    assert "holds its 2 messages" in str(reply["stopped"])
    assert bodies(broker) == [b"2"]


def test_a_move_to_a_topic_publishes(broker: Broker, manager: Manager) -> None:
    subscriber = broker.session("subscriber")
    subscriber.attach_receiver("t", kind="topic", credit=5)
    broker.fill(count=1)
    assert done(manager.ask("MOVE", "message", queue="q", all=True, to="t")) == {"moved": 1}
    subscriber.expect_deliveries(b"0")


def reject_all(broker: Broker, address: str, count: int) -> None:
    consumer = broker.session("consumer")
    consumer.attach_receiver(address, credit=count)
    consumer.send(Disposition(first=0, last=count - 1, state=Rejected()))
    consumer.hang_up()


def test_dead_letters_go_back_to_where_they_came_from(broker: Broker, manager: Manager) -> None:
    for address in ("q", "r"):
        send(broker, message(address.encode(), annotations={"x-opt-own": 1}), address=address)
        reject_all(broker, address, 1)
    for identity, source in zip(listed(manager, queue="DLQ"), ("q", "r"), strict=True):
        told = manager.ask("READ", "message", identity, queue="DLQ").map
        assert (told["source"], told["reason"]) == (source, "rejected")
    assert done(manager.ask("RETRY", "message", queue="DLQ", all=True)) == {"moved": 2}
    assert (bodies(broker, "q"), bodies(broker, "r")) == ([b"q"], [b"r"])
    (identity,) = listed(manager)
    told = manager.ask("READ", "message", identity, queue="q").map
    assert told["annotations"] == {Symbol("x-opt-own"): 1}
    assert (told["source"], told["reason"]) == (None, None)
    assert told["delivery_count"] == 0


def test_a_dead_letter_of_a_subscription_goes_back_to_it_and_to_no_queue_of_that_name(
    broker: Broker, manager: Manager
) -> None:
    """A queue with the name of the topic would else get messages that were never sent to it."""
    kept = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    for client, source in (
        ("named", kept),
        ("unnamed", Source(address="t", capabilities=["topic"])),
    ):
        consumer = broker.session(client)
        consumer.attach(attach_receiver(name="sub", source=source))
        consumer.flow(handle=0, credit=1, delivery_count=0)
        broker.fill("t", 1, kind="topic")
        consumer.send(Disposition(first=0, last=0, state=Rejected()))
        consumer.hang_up()
    manager.ask("CREATE", "queue", "t")
    reply = done(manager.ask("RETRY", "message", queue="DLQ", all=True))
    assert (reply["moved"], reply["skipped"]) == (1, 1)
    assert "a subscription of t, where" in str(reply["reason"])
    assert broker.queue("t").backlogs.waiting == 0
    (row,) = manager.query("subscription").rows
    assert (row["identity"], row["messages"]) == ("durable/named/sub", 1 + 1)
    reply = done(manager.ask("RETRY", "message", queue="DLQ", all=True))
    assert reply["skipped"] == 1, "it stays in the dead-letter queue"


def test_dead_letters_without_a_place_to_go_to_stay(broker: Broker, manager: Manager) -> None:
    send(broker, message(b"stray"), address="DLQ")
    for address in ("gone", "q"):
        send(broker, message(b"x"), address=address)
        reject_all(broker, address, 1)
    manager.ask("DELETE", "queue", "gone")
    reply = done(manager.ask("RETRY", "message", queue="DLQ", all=True))
    assert (reply["moved"], reply["skipped"]) == (1, 2)
    assert "does not say where it came from" in str(reply["reason"])
    assert broker.queue("DLQ").backlogs.waiting == 2


# -- scheduled messages


def later(broker: Broker, milliseconds: int) -> bytes:
    moment = Timestamp(int(broker.clock.wall_ms()) + milliseconds)
    return message(b"later", annotations={"x-opt-delivery-time": moment})


@pytest.mark.requirement("DLY-04")
def test_scheduled_messages_are_listed_and_cancelled(broker: Broker, manager: Manager) -> None:
    send(broker, later(broker, 5000), later(broker, 1000), message(b"now"))
    rows = manager.query("message", queue="q", state="scheduled").rows
    assert [row["state"] for row in rows] == ["scheduled"] * 2
    moments = [row["deliver_at"] for row in rows]
    assert moments == [broker.clock.wall_ms() + 1000, broker.clock.wall_ms() + 5000]
    first, second = (str(row["identity"]) for row in rows)
    assert manager.ask("READ", "message", first, queue="q").map["state"] == "scheduled"
    (waiting,) = listed(manager)
    reply = manager.ask("CANCEL", "message", queue="q", identities=[first, waiting])
    assert done(reply) == {"cancelled": 1, "missing": [waiting]}
    broker.advance(5000)
    assert bodies(broker) == [b"now", b"later"]
    assert manager.ask("CANCEL", "message", queue="q", identities=[second]).map["cancelled"] == 0


@pytest.mark.requirement("DLY-04")
def test_scheduled_messages_are_delivered_early(broker: Broker, manager: Manager) -> None:
    send(broker, later(broker, 5000), later(broker, 9000), message(b"now"))
    first, second = listed(manager, state="scheduled")
    (waiting,) = listed(manager)
    reply = manager.ask("DELIVER", "message", queue="q", identities=[second, waiting])
    assert done(reply) == {"delivered": 1, "missing": [waiting]}
    assert bodies(broker) == [b"now", b"later"]
    assert listed(manager, state="scheduled") == [first]
    consumer = broker.session("consumer")
    consumer.attach_receiver("q", credit=9)
    consumer.expect_deliveries(b"now", b"later")
    broker.advance(9000)
    consumer.expect_deliveries(b"later")


def test_pages_of_scheduled_messages(broker: Broker, manager: Manager) -> None:
    send(broker, *[later(broker, 1000 + number) for number in range(3)])
    first = manager.query("message", queue="q", state="scheduled", count=2)
    rest = manager.query("message", queue="q", state="scheduled", after=first.map["next"])
    assert (len(first.rows), len(rest.rows)) == (2, 1)
    assert rest.map["next"] is None


def test_a_page_of_scheduled_messages_goes_on_where_one_was_cancelled(
    broker: Broker, manager: Manager
) -> None:
    send(broker, *[later(broker, 1000 + number) for number in range(4)])
    first = manager.query("message", queue="q", state="scheduled", count=2)
    last = first.rows[-1]["identity"]
    manager.ask("CANCEL", "message", queue="q", identities=[last])
    rest = manager.query("message", queue="q", state="scheduled", after=first.map["next"])
    now_ms = int(broker.clock.wall_ms())
    assert [int(str(row["deliver_at"])) - now_ms for row in rest.rows] == [1002, 1003]


def test_a_page_of_scheduled_messages_begins_behind_a_place(
    broker: Broker, manager: Manager
) -> None:
    send(broker, later(broker, 1000))
    reply = manager.query("message", queue="q", state="scheduled", after="4")
    assert (reply.status, "no `next` of a page before" in reply.description) == (400, True)


def test_a_scheduled_message_is_deleted_by_its_name(broker: Broker, manager: Manager) -> None:
    send(broker, later(broker, 1000))
    identities = listed(manager, state="scheduled")
    assert done(manager.ask("DELETE", "message", queue="q", identities=identities)) == {
        "deleted": 1
    }
    assert manager.ask("READ", "queue", "q").map["held"] == 0


# -- refused requests


REFUSED = [
    pytest.param("READ", "4", {}, 400, "queue must be a string", id="without a queue"),
    pytest.param("READ", "4", {"queue": "none"}, 404, "no queue none", id="of no queue"),
    pytest.param("READ", "99994", {"queue": "q"}, 404, "waits in q", id="one that is not there"),
    pytest.param("READ", "-4", {"queue": "q"}, 400, "no identity", id="no number"),
    pytest.param("READ", "4" * 30, {"queue": "q"}, 400, "no identity", id="too large a number"),
    pytest.param("READ", "\u0664", {"queue": "q"}, 400, "no identity", id="digits of others"),
    pytest.param("DELETE", None, {"queue": "q"}, 400, "which messages", id="nobody knows which"),
    pytest.param(
        "DELETE",
        None,
        {"queue": "q", "identities": ["4"] * (CHANGED_MAX + 1)},
        400,
        "at most",
        id="too many",
    ),
    pytest.param("DELETE", None, {"queue": "q", "selector": "a ="}, 400, "", id="a bad selector"),
    pytest.param("MOVE", None, {"queue": "q", "all": True}, 400, "to must be", id="to nowhere"),
    pytest.param(
        "MOVE", None, {"queue": "q", "all": True, "to": "none"}, 404, "none", id="to no node"
    ),
    pytest.param(
        "MOVE", None, {"queue": "q", "all": True, "to": "q"}, 400, "where they are", id="in place"
    ),
    pytest.param(
        "MOVE", None, {"queue": "q", "to": "r", "to_type": "x"}, 400, "to_type", id="to a kind"
    ),
    pytest.param("CANCEL", None, {"queue": "q"}, 400, "identities", id="to cancel nothing"),
    pytest.param("DELIVER", None, {"queue": "q"}, 400, "identities", id="to deliver nothing"),
]


@pytest.mark.parametrize(("operation", "name", "arguments", "status", "told"), REFUSED)
def test_what_is_refused(
    broker: Broker,
    manager: Manager,
    operation: str,
    name: str | None,
    arguments: dict[str, object],
    status: int,
    told: str,
) -> None:
    broker.fill(count=1)
    reply = manager.ask_raw(request(operation, "message", name, body=arguments))
    assert (reply.status, told in reply.description) == (status, True), reply.description
    assert broker.queue().backlogs.waiting == 1


QUERIES = [
    pytest.param({"queue": "q", "state": "x"}, 0, "state must be", id="a state nobody knows"),
    pytest.param({"queue": "q"}, 5, "no offset", id="an offset"),
    pytest.param({"queue": "q", "after": "x"}, 0, "no identity", id="after what is no number"),
]


@pytest.mark.parametrize(("arguments", "offset", "told"), QUERIES)
def test_what_is_not_listed(
    broker: Broker, manager: Manager, arguments: dict[str, object], offset: int, told: str
) -> None:
    broker.fill(count=1)
    asked: dict[str, object] = {"entityType": "message", "offset": offset}
    reply = manager.ask_raw(
        request("QUERY", "org.amqp.management", properties=asked, body=arguments)
    )
    assert (reply.status, told in reply.description) == (400, True), reply.description
