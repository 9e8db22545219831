"""Messages of other formats (core 2.7.5): some consist of sections, others are opaque."""

from __future__ import annotations

import pytest

from broker.amqp.errors import DECODE_ERROR, INVALID_FIELD, NOT_FOUND, NOT_IMPLEMENTED
from broker.amqp.outcomes import Accepted, Modified, Rejected, TransactionalState
from broker.amqp.performatives import RECEIVER, Detach
from broker.amqp.sections import split
from broker.routing.addresses.address import MANAGEMENT
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.queues.queue_inspection import peek
from storage.memory import MemoryStore
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, message
from tests.support.management import Manager
from tests.support.stored import stored_messages
from tests.support.transactions import Controller
from tests.unit.links.test_filters import source, stated

BATCH = 0x8001_3700
OPAQUE = b"\x00no section at all"
SECTIONS = message(b"one", ttl=5000, priority=7, properties={"colour": "red"}) + message(b"two")


def sent(broker: Broker, payload: bytes, address: str | None = "q") -> Client:
    """Return a client that has sent a message of another format, and has read no answer yet."""
    client = broker.session("ada")
    client.attach_sender(address)
    client.transfer(0, payload=payload, message_format=BATCH)
    return client


def taken(broker: Broker, address: str = "q", **fields: object) -> list[Transfer]:
    client = broker.session("eve")
    client.attach_receiver(address, credit=10, **fields)
    return [each for each in client.bodies() if isinstance(each, Transfer)]


def rejection(client: Client) -> str:
    told = client.expect_last(Disposition)
    assert isinstance(told.state, Rejected)
    assert told.state.error is not None
    return told.state.error.condition


def test_sections_are_read_whatever_the_format() -> None:
    broker = Broker()
    sent(broker, SECTIONS)
    message = peek(broker.queue().backlogs, -1, 1)[0].message
    assert (message.durable, message.priority, message.ttl_ms) == (False, 7, 5000)
    assert (message.message_format, message.opaque) == (BATCH, False)
    (came,) = taken(broker)
    found = split(came.payload, 0, len(came.payload))
    assert (came.message_format, found.priority, found.ttl) == (BATCH, 7, 5000)
    assert came.payload[found.start_kept :] == message.encoded


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(OPAQUE, id="no sections"),
        pytest.param(SECTIONS[:-1], id="sections that are cut off"),
        pytest.param(SECTIONS + SECTIONS, id="two messages"),
    ],
)
async def test_an_opaque_message_is_durable_and_goes_out_as_it_came(payload: bytes) -> None:
    store = MemoryStore()
    broker = Broker(store=store)
    client = sent(broker, payload)
    assert isinstance(client.expect_last(Disposition).state, Accepted)
    (stored,) = await stored_messages(store, "q")
    assert (stored.encoded, stored.message_format, stored.opaque) == (payload, BATCH, True)
    assert (stored.priority, stored.ttl_ms, stored.expires_at_ms) == (4, -1, 0)
    assert (stored.durable, stored.publisher) == (True, "ada")
    for _ in range(2):  # an opaque message has no header for a delivery-count
        (came,) = taken(broker)
        assert (came.payload, came.message_format) == (payload, BATCH)


def test_the_usual_format_must_consist_of_sections() -> None:
    client = Broker().session()
    client.attach_sender()
    client.transfer(0, payload=OPAQUE)
    assert rejection(client) == DECODE_ERROR


@pytest.mark.parametrize(
    ("address", "payload", "condition"),
    [
        pytest.param(None, OPAQUE, NOT_FOUND, id="opaque, to the anonymous relay"),
        pytest.param(MANAGEMENT, OPAQUE, DECODE_ERROR, id="opaque, to the broker itself"),
        pytest.param(
            "q",
            message(annotations={"x-opt-delivery-time": "soon"}),
            INVALID_FIELD,
            id="sections that say what cannot be",
        ),
    ],
)
def test_a_message_is_refused(address: str | None, payload: bytes, condition: str) -> None:
    assert rejection(sent(Broker(), payload, address)) == condition


def test_the_relay_takes_what_names_its_address() -> None:
    broker = Broker()
    sent(broker, message(b"a", to="q"), None)
    assert [each.message_format for each in taken(broker)] == [BATCH]


def test_a_topic_and_a_transaction_keep_the_format() -> None:
    broker = Broker()
    subscriber = broker.session("eve")
    subscriber.attach_receiver("t", kind="topic", credit=10)
    controller = Controller(broker, "ada")
    controller.client.attach_sender("t", kind="topic")
    txn = controller.declare()
    within = TransactionalState(txn_id=txn)
    payloads = [OPAQUE, message(b"a")]
    for payload in payloads:
        controller.transfer(payload, message_format=BATCH, state=within)
    controller.client.bodies()
    controller.commit(txn)
    came = [each for each in subscriber.bodies() if isinstance(each, Transfer)]
    assert [each.message_format for each in came] == [BATCH, BATCH]
    assert came[0].payload == OPAQUE


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("colour = 'red'", [SECTIONS], id="a property"),
        pytest.param("colour IS NULL", [OPAQUE], id="no property"),
        pytest.param("JMSPriority = 4", [OPAQUE], id="the header that it counts as"),
    ],
)
def test_a_selector_sees_no_properties_of_an_opaque_message(
    selector: str, expected: list[bytes]
) -> None:
    broker = Broker()
    for payload in (SECTIONS, OPAQUE):
        sent(broker, payload).hang_up()
    wanted = source(stated("s", "apache.org:selector-filter:string", selector))
    came = [each.payload for each in taken(broker, source=wanted)]
    assert [each[-5:] for each in came] == [each[-5:] for each in expected]


def test_a_dead_letter_is_moved_without_annotations() -> None:
    broker = Broker(policy=AddressPolicy(dead_letter="dead"))
    sent(broker, OPAQUE)
    client = broker.session("eve")
    client.attach_receiver("q", credit=1)
    client.expect(Transfer)
    client.send(Disposition(role=RECEIVER, first=0, settled=True, state=Rejected()))
    (came,) = taken(broker, "dead")
    assert (came.payload, came.message_format) == (OPAQUE, BATCH)
    client.hang_up()


def test_a_consumer_that_annotates_an_opaque_message_is_told_that_it_cannot() -> None:
    broker = Broker()
    sent(broker, OPAQUE)
    client = broker.session("eve")
    client.attach_receiver("q", credit=1)
    client.expect(Transfer)
    annotations = b"\xc1\x0a\x02\xa3\x06x-opt1\x41"
    state = Modified(delivery_failed=True, message_annotations=annotations)
    client.send(Disposition(role=RECEIVER, first=0, settled=True, state=state))
    (detach,) = [each for each in client.bodies() if isinstance(each, Detach)]
    assert detach.error is not None
    assert detach.error.condition == NOT_IMPLEMENTED
    assert "0x80013700" in str(detach.error.description)
    assert [each.payload for each in taken(broker)] == [OPAQUE], "it waits again"


def test_an_operator_sees_moves_and_cannot_retry_it() -> None:
    broker = Broker()
    sent(broker, OPAQUE)
    manager = Manager(broker)
    (row,) = manager.query("message", queue="q").rows
    assert (row["message_format"], row["name"], row["durable"]) == (BATCH, "", True)
    shown = manager.ask("READ", "message", properties={"identity": row["identity"]}, queue="q").map
    assert (shown["message_format"], shown["body_kind"], shown["body"]) == (BATCH, "opaque", OPAQUE)
    retried = manager.ask("RETRY", "message", queue="q", all=True)
    assert "does not say where it came from" in str(retried.map["reason"])
    broker.fill("other", 0)
    manager.ask("MOVE", "message", queue="q", all=True, to="other")
    (came,) = taken(broker, "other")
    assert (came.payload, came.message_format) == (OPAQUE, BATCH)
