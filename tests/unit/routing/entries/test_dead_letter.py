"""Messages moved to a dead-letter or expiry node: their annotations, and what does not change."""

import asyncio

import pytest

from broker.amqp.decode import take_value
from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.amqp.sections import split
from broker.amqp.types import Int, Map, Symbol, Timestamp, UInt
from broker.message import Message, opaque_message
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.dead_letter import (
    CONDITION_MAX,
    DELIVERY_LIMIT,
    DESCRIPTION_MAX,
    EXPIRED,
    Cause,
    departed,
    marked_as_held,
    origin_of,
    returned,
)
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from storage.records import StoredMessage
from tests.support.clock import WALL_START_MS
from tests.support.frames import message as encoded_message
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message
from tests.support.stored import stored_messages

BARE = encoded_message(b"hello", to="q")
SOLD_OUT = Cause("rejected", "shop:sold-out", "no more of these")


def annotated(**pairs: object) -> bytes:
    """Return an encoded message with these annotations; `_` in a key stands for `-`."""
    annotations = {key.replace("_", "-"): value for key, value in pairs.items()}
    return encoded_message(b"hello", to="q", annotations=annotations)


def facts(message: Message) -> dict[str, object]:
    """Return the annotations of a message by their keys."""
    return {str(key): value for key, value in message.annotations().pairs}


def failing(
    queue: Queue, routing: Routing, encoded: bytes = BARE, *, durable: bool = False
) -> QueueEntry:
    """Put a message into `queue`; return its entry, which a consumer holds."""
    queue.put(new_message(encoded, durable=durable), routing.batch)
    return routing.consumer(queue, 1).entries[0]


def only(queue: Queue, routing: Routing) -> Message:
    """Return the only ready message in `queue`."""
    consumer = routing.consumer(queue, 2)
    assert len(consumer.entries) == 1
    return consumer.entries[0].message


# -- cause and origin

CAUSES = {
    "rejected, and said why": (
        SOLD_OUT,
        {
            "x-opt-dead-letter-reason": Symbol("rejected"),
            "x-opt-dead-letter-condition": Symbol("shop:sold-out"),
            "x-opt-dead-letter-description": "no more of these",
        },
    ),
    "failed too often": (
        DELIVERY_LIMIT,
        {"x-opt-dead-letter-reason": Symbol("delivery-limit")},
    ),
    "expired": (EXPIRED, {"x-opt-dead-letter-reason": Symbol("expired")}),
}


@pytest.mark.requirement("RCV-02", "PRD-05")
@pytest.mark.parametrize(("cause", "told"), CAUSES.values(), ids=CAUSES.keys())
@pytest.mark.parametrize("theirs", [{}, {"x_opt_own": 7}], ids=["", "among others"])
def test_a_message_says_why_it_is_where_it_is(
    cause: Cause, told: dict[str, object], theirs: dict[str, object]
) -> None:
    routing = Routing()
    entry = failing(routing.queue(), routing, annotated(**theirs))
    entry.delivery_count = 3
    message = departed(entry, cause, WALL_START_MS)
    own = {key.replace("_", "-"): value for key, value in theirs.items()}
    assert facts(message) == {
        **own,
        "x-opt-ORIG-ADDRESS": "q",
        "x-opt-ORIG-QUEUE": "q",
        "x-opt-dead-letter-delivery-count": UInt(3),
        "x-opt-dead-letter-time": Timestamp(WALL_START_MS),
        **told,
    }
    assert message.encoded.endswith(BARE), "the bare message is as it was"


@pytest.mark.requirement("RCV-02")
def test_a_message_from_a_subscription_says_to_which_topic_it_was_sent() -> None:
    routing = Routing()
    topic = routing.topic("news")
    consumer = RecordingConsumer(1)
    queue = routing.subscribe(topic, consumer)
    topic.put(new_message(BARE), routing.batch)
    routing.give(queue, consumer, 1)
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    told = facts(only(routing.queue("DLQ"), routing))
    assert (told["x-opt-ORIG-ADDRESS"], told["x-opt-ORIG-QUEUE"]) == ("news", queue.address)
    assert told["x-opt-dead-letter-subscription"] == ""


def test_a_message_that_is_moved_again_tells_of_the_last_move_only() -> None:
    routing = Routing(patterns=[("DLQ", AddressPolicy(dead_letter="last")), ("q", AddressPolicy())])
    rejected = failing(routing.queue(), routing)
    rejected.queue.dispose(rejected, Disposal.DEAD_LETTER, routing.batch, cause=SOLD_OUT)
    again = routing.consumer(routing.queue("DLQ"), 1).entries[0]
    again.queue.dispose(again, Disposal.DEAD_LETTER, routing.batch)
    told = facts(only(routing.queue("last"), routing))
    assert told["x-opt-ORIG-QUEUE"] == "DLQ"
    assert told["x-opt-dead-letter-reason"] == Symbol("rejected")
    assert "x-opt-dead-letter-condition" not in told
    assert "x-opt-dead-letter-description" not in told


def test_what_a_consumer_says_is_cut() -> None:
    cause = Cause("rejected", "c" * 10_000, "d" * 10_000)
    assert (len(cause.condition), len(cause.description)) == (CONDITION_MAX, DESCRIPTION_MAX)


NO_ROOM = {
    "that fill the room there is": annotated(x_opt_own=bytes(SECTIONS_BEFORE_BODY_MAX - 100)),
    "that cannot be read": b"\x00\x53\x72\xc1\x04\x02\xa3\x01a" + BARE,
}


@pytest.mark.parametrize("encoded", NO_ROOM.values(), ids=NO_ROOM.keys())
def test_a_message_is_moved_as_it_is_with_annotations(encoded: bytes) -> None:
    routing = Routing()
    entry = failing(routing.queue(), routing, encoded)
    assert departed(entry, EXPIRED, WALL_START_MS).encoded == encoded


# -- how messages are moved


@pytest.mark.requirement("RCV-02")
def test_a_message_that_failed_too_often_says_how_often() -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=2))
    queue = routing.queue()
    queue.put(new_message(BARE), routing.batch)
    consumer = routing.consumer(queue, 9)
    for _ in range(2):
        consumer.dispose(Disposal.FAIL, routing.batch)
        routing.pump()
    told = facts(only(routing.queue("DLQ"), routing))
    assert told["x-opt-dead-letter-reason"] == Symbol("delivery-limit")
    assert told["x-opt-dead-letter-delivery-count"] == UInt(2)


@pytest.mark.requirement("RCV-02", "PRD-04")
def test_an_expired_message_says_so_and_expires_no_more() -> None:
    routing = Routing(policy=AddressPolicy(expiry="late"))
    queue = routing.queue()
    queue.put(new_message(BARE, expires_at_ms=WALL_START_MS + 10), routing.batch)
    routing.clock.advance(10)
    assert routing.consumer(queue, 1).taken == []
    routing.advance(10**9)
    message = only(routing.queue("late"), routing)
    assert facts(message)["x-opt-dead-letter-reason"] == Symbol("expired")


def test_a_dead_letter_still_expires() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(BARE, expires_at_ms=WALL_START_MS + 10), routing.batch)
    routing.consumer(queue, 1).dispose(Disposal.DEAD_LETTER, routing.batch)
    routing.clock.advance(10)
    assert routing.consumer(routing.queue("DLQ"), 1).taken == []
    assert routing.stats.expired == 1


@pytest.mark.requirement("DLY-01")
def test_a_dead_letter_has_no_delivery_time() -> None:
    """The message was due once; a wall clock that is set back must not hide it."""
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(BARE, deliver_at_ms=WALL_START_MS + 10), routing.batch)
    consumer = routing.consumer(queue, 1)
    routing.advance(10)
    routing.clock.set_wall(-10_000)
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    assert routing.queue("DLQ").backlogs.waiting == 1


@pytest.mark.requirement("RCV-02", "PRD-03")
def test_a_durable_message_is_moved_by_one_commit() -> None:
    routing = Routing()
    entry = failing(routing.queue(), routing, durable=True)
    routing.commit()
    entry.queue.dispose(entry, Disposal.DEAD_LETTER, routing.batch, cause=SOLD_OUT)
    assert [each.encoded for each in stored_before_commit(routing)] == [BARE]
    assert routing.stored("q") == []
    (kept,) = routing.stored("DLQ")
    assert kept.encoded.endswith(BARE)
    assert b"shop:sold-out" in kept.encoded


def stored_before_commit(routing: Routing) -> list[StoredMessage]:
    return asyncio.run(stored_messages(routing.store, "q"))


# -- in properties

TELLING = AddressPolicy(dead_letter_properties=True)


def properties(message: Message) -> dict[str, object]:
    """Return the application-properties of a message as AMQP values."""
    encoded = message.encoded
    at = split(encoded, 0, len(encoded)).application_properties
    if at < 0:
        return {}
    value, _ = take_value(encoded, at, len(encoded))
    assert isinstance(value, Map)
    return {str(key): each for key, each in value.pairs}


@pytest.mark.requirement("RCV-02", "PRD-05")
def test_properties_tell_what_annotations_do_where_that_is_asked_for() -> None:
    routing = Routing(policy=TELLING)
    own = encoded_message(b"hello", properties={"own": 7, "dead_letter_reason": "mine"})
    entry = failing(routing.queue(), routing, own)
    entry.delivery_count = 3
    message = departed(entry, SOLD_OUT, WALL_START_MS)
    assert properties(message) == {
        "own": 7,
        "dead_letter_address": "q",
        "dead_letter_queue": "q",
        "dead_letter_reason": "rejected",
        "dead_letter_delivery_count": Int(3),
        "dead_letter_time": WALL_START_MS,
        "dead_letter_condition": "shop:sold-out",
        "dead_letter_description": "no more of these",
    }
    assert facts(message)["x-opt-dead-letter-reason"] == Symbol("rejected")
    assert properties(returned(message)) == {"own": 7}


@pytest.mark.requirement("PRD-05")
def test_a_retried_message_is_as_it_came() -> None:
    for policy in (TELLING, AddressPolicy()):
        routing = Routing(policy=policy)
        own = encoded_message(b"hello", properties={"own": 7})
        entry = failing(routing.queue(), routing, own)
        assert returned(departed(entry, SOLD_OUT, WALL_START_MS)).encoded == own


@pytest.mark.requirement("PRD-05")
def test_properties_of_these_names_that_a_sender_has_set_stay_where_none_are_added() -> None:
    routing = Routing()
    own = encoded_message(b"hello", properties={"dead_letter_reason": "mine"})
    message = departed(failing(routing.queue(), routing, own), SOLD_OUT, WALL_START_MS)
    assert properties(message) == properties(returned(message)) == {"dead_letter_reason": "mine"}


def test_properties_of_the_last_move_replace_those_before() -> None:
    routing = Routing(policy=TELLING, patterns=[("DLQ", AddressPolicy(dead_letter="last"))])
    rejected = failing(routing.queue(), routing, encoded_message(b"hello"))
    rejected.queue.dispose(rejected, Disposal.DEAD_LETTER, routing.batch, cause=SOLD_OUT)
    again = routing.consumer(routing.queue("DLQ"), 1).entries[0]
    assert properties(again.message)["dead_letter_queue"] == "q"
    again.queue.dispose(again, Disposal.DEAD_LETTER, routing.batch)
    assert properties(only(routing.queue("last"), routing)) == {}, "DLQ asks for none"


def test_an_opaque_message_is_moved_and_held_untouched() -> None:
    routing = Routing(policy=TELLING)
    opaque = opaque_message(BARE, message_format=7)
    queue = routing.queue()
    queue.put(opaque, routing.batch)
    (entry,) = routing.consumer(queue, 1).entries
    message = departed(entry, SOLD_OUT, WALL_START_MS)
    assert (message.encoded, message.message_format, message.opaque) == (BARE, 7, True)
    assert marked_as_held(entry, SOLD_OUT, WALL_START_MS) is None


UNTELLABLE = {
    "that fill the room there is": encoded_message(
        b"hello", properties={"own": bytes(SECTIONS_BEFORE_BODY_MAX - 900)}
    ),
    "that cannot be read": b"\x00\x53\x74\xc1\x04\x02\xa3\x01a" + BARE,
}


@pytest.mark.parametrize("encoded", UNTELLABLE.values(), ids=UNTELLABLE.keys())
def test_a_message_has_annotations_alone_with_properties(encoded: bytes) -> None:
    routing = Routing(policy=TELLING)
    entry = failing(routing.queue(), routing, encoded)
    message = departed(entry, Cause("rejected", "c" * 250, "d" * 300), WALL_START_MS)
    assert message.encoded.endswith(encoded)
    assert len(message.encoded) > len(encoded)


@pytest.mark.requirement("PRD-03")
def test_a_dead_letter_with_much_before_its_body_can_be_read_again() -> None:
    """Annotations for which properties leave no room are left out: a store could not read them."""
    content = encoded_message(b"a", properties={"own": bytes(SECTIONS_BEFORE_BODY_MAX - 50)})
    split(content, 0, len(content))
    routing = Routing()
    entry = failing(routing.queue(), routing, content)
    message = departed(entry, SOLD_OUT, WALL_START_MS)
    split(message.encoded, 0, len(message.encoded))
    assert message.encoded == content


def test_the_origin_of_a_message_whose_annotations_cannot_be_decoded_is_unknown() -> None:
    twice = b"\x00\x53\x72\xc1\x09\x04" + b"\xa3\x01k\x40" * 2
    assert origin_of(new_message(twice + b"\x00\x53\x75\xa0\x01x")) == ("", None)
