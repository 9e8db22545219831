"""Facts that a published message has for topics: its publisher, and its key."""

import pytest

from broker.amqp.errors import INVALID_FIELD
from broker.amqp.outcomes import Rejected
from broker.amqp.performatives import Detach
from broker.amqp.types import Byte, Char, Int, Short, Timestamp, UByte, UInt, ULong, UShort
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.queues.queue import Queue
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer, attach_sender, body_of, message
from tests.support.parties import RecordingConsumer
from tests.support.routing import bind

TOPIC: dict[str, object] = {"x-opt-jms-dest": UByte(1)}


@pytest.mark.requirement("RCV-05")
def test_a_message_knows_whose_it_is() -> None:
    broker = Broker()
    client = broker.session("sender")
    client.attach_sender()
    client.transfer(0)
    consumer = RecordingConsumer()
    consumer.credit = 1
    broker.queue().attach_consumer(consumer)
    broker.queue().consumer_ready(consumer, drain=False)
    broker.container.run_round()
    assert [entry.message.publisher for entry in consumer.entries] == ["sender"]


def subscriber(broker: Broker, address: str) -> RecordingConsumer:
    """Return a consumer of the messages that are published to `address`."""
    consumer = RecordingConsumer()
    queue = Queue(
        address=address, policy=AddressPolicy(), context=broker.router.context, is_subscription=True
    )
    bind(broker.router, address, queue, broker.journal.batch)
    queue.attach_consumer(consumer)
    consumer.credit = 99
    queue.consumer_ready(consumer, drain=False)
    return consumer


def bodies(consumer: RecordingConsumer) -> list[bytes]:
    return [body_of(each) for each in consumer.taken]


@pytest.mark.requirement("DST-05")
def test_a_link_to_a_topic_with_a_key_publishes_with_that_key() -> None:
    broker = Broker()
    one, all_of_it = subscriber(broker, "t/a.*"), subscriber(broker, "t")
    client = broker.session()
    for handle, address in enumerate(("t/a.b", "t/c", "t")):
        client.attach_sender(address, kind="topic", name=address, handle=handle)
        client.transfer(handle, address.encode(), handle=handle, settled=True)
    assert bodies(one) == [b"t/a.b"]
    assert bodies(all_of_it) == [b"t/a.b", b"t/c", b"t"]


@pytest.mark.requirement("DST-05", "PRD-01")
def test_a_message_to_the_relay_has_the_key_of_its_to() -> None:
    broker = Broker()
    one = subscriber(broker, "t/a.*")
    client = broker.session()
    client.attach_sender(None)
    for number, to in enumerate(("t/a.b", "t/c", "t/a.c")):
        payload = message(to.encode(), to=to, subject="a.x", annotations=TOPIC)
        client.send(Transfer(delivery_id=number, payload=payload, settled=True))
    assert bodies(one) == [b"t/a.b", b"t/a.c"]


@pytest.mark.requirement("DST-05")
def test_without_a_key_in_the_address_the_subject_is_the_key() -> None:
    broker = Broker()
    one = subscriber(broker, "t/a.*")
    client = broker.session()
    client.attach_sender("t", kind="topic")
    for number, subject in enumerate(("a.b", "c", "a.c")):
        payload = message(subject.encode(), to="t/a.x", subject=subject)
        client.send(Transfer(delivery_id=number, payload=payload, settled=True))
    assert bodies(one) == [b"a.b", b"a.c"]


@pytest.mark.requirement("DST-06")
@pytest.mark.parametrize("address", ["a.*", "#", "t/#"])
def test_a_link_to_a_pattern_is_refused(address: str) -> None:
    client = Broker().session()
    assert client.attach(attach_sender(address, kind="topic")).target is None
    detach = client.expect_last(Detach)
    assert detach.error is not None
    assert detach.error.condition == INVALID_FIELD


@pytest.mark.requirement("DST-06", "PRD-02")
@pytest.mark.parametrize("to", ["a.*", "#", "t/#"])
def test_a_message_to_a_pattern_is_rejected(to: str) -> None:
    client = Broker().session()
    client.attach_sender(None)
    client.send(Transfer(delivery_id=0, payload=message(to=to, annotations=TOPIC)))
    state = client.expect_last(Disposition).state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == INVALID_FIELD


KIND_NUMBERS = {
    "ubyte": (UByte(1), "topic"),
    "byte": (Byte(3), "topic"),
    "ushort": (UShort(1), "topic"),
    "short": (Short(2), "queue"),
    "uint": (UInt(1), "topic"),
    "int": (Int(0), "queue"),
    "ulong": (ULong(1), "topic"),
    "long": (3, "topic"),
    "a boolean is no number": (True, "queue"),
    "a character is no number": (Char(1), "queue"),
    "a moment is no number": (Timestamp(1), "queue"),
}


@pytest.mark.requirement("DST-03")
@pytest.mark.parametrize(("number", "kind"), KIND_NUMBERS.values(), ids=KIND_NUMBERS.keys())
def test_the_kind_of_a_destination_is_a_number_of_any_width(number: object, kind: str) -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender(None)
    payload = message(to="a", annotations={"x-opt-jms-dest": number})
    client.send(Transfer(delivery_id=0, payload=payload, settled=True))
    assert broker.router.find_named("a", kind) is not None
    assert len(broker.router.queues) + len(broker.router.topics) == 1


KIND_WORDS = {
    "topic": "topic",
    "temporary,topic": "topic",
    "topic,temporary": "topic",
    " topic , temporary ": "topic",
    "queue": "queue",
    "queue ,temporary": "queue",
    "temporary": "queue",
    "": "queue",
    "Topic": "queue",
    "topics": "queue",
}


@pytest.mark.requirement("DST-04")
@pytest.mark.parametrize(("words", "kind"), KIND_WORDS.items(), ids=KIND_WORDS.keys())
def test_the_kind_of_a_destination_is_among_words(words: str, kind: str) -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender(None)
    payload = message(to="a", annotations={"x-opt-to-type": words, "x-opt-reply-type": "topic"})
    client.send(Transfer(delivery_id=0, payload=payload, settled=True))
    assert broker.router.find_named("a", kind) is not None
    assert len(broker.router.queues) + len(broker.router.topics) == 1


@pytest.mark.requirement("DST-03", "DST-04", "PRD-05")
def test_annotations_of_destinations_pass_through_untouched() -> None:
    broker = Broker()
    one = subscriber(broker, "t")
    client = broker.session()
    client.attach_sender(None)
    given: dict[str, object] = {
        "x-opt-jms-dest": ULong(1),
        "x-opt-jms-reply-to": Short(-7),
        "x-opt-to-type": " topic ,temporary",
        "x-opt-reply-type": "temporary, queue",
    }
    payload = message(to="t", annotations=given)
    client.send(Transfer(delivery_id=0, payload=payload, settled=True))
    assert one.taken == [payload]
