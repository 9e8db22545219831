"""Messages through the broker, compared byte by byte by python-qpid-proton."""

from __future__ import annotations

import time
import uuid
from typing import Any, Final

import pytest
from proton import (
    UNDESCRIBED,
    Array,
    Data,
    Delivery,
    Described,
    Endpoint,
    Link,
    Message,
    byte,
    char,
    decimal64,
    decimal128,
    float32,
    int32,
    short,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
    ushort,
)

from tests.interop.broker_process import PASSWORD, USER, Broker
from tests.interop.proton_peer import Peer

pytestmark = pytest.mark.slow

NO_DESCRIPTOR: Any = UNDESCRIBED

BODIES: Final[dict[str, Any]] = {
    "null": None,
    "true": True,
    "false": False,
    "ubyte": ubyte(255),
    "ushort": ushort(65535),
    "uint": uint(2**32 - 1),
    "ulong": ulong(2**64 - 1),
    "byte": byte(-128),
    "short": short(-32768),
    "int": int32(-(2**31)),
    "long": -(2**63),
    "float": float32(1.5),
    "double": 2.5e-300,
    "decimal64": decimal64(0x2238000000000001),
    "decimal128": decimal128(bytes(range(16))),
    "char": char("\u20ac"),
    "timestamp": timestamp(1_700_000_000_123),
    "uuid": uuid.UUID("01234567-89ab-cdef-0123-456789abcdef"),
    "binary": bytes(range(256)),
    "string": "grüße \U0001f600",
    "long string": "x" * 70_000,
    "symbol": symbol("a symbol"),
    "list": [1, "two", None, [True, []], {"three": 3}],
    "map": {"key": "value", 7: [uuid.UUID(int=7)], symbol("s"): {}},
    "array": Array(NO_DESCRIPTOR, Data.INT, 1, 2, 3),
    "described": Described(symbol("a:descriptor"), "value"),
}


def header_only(encoded: bytes) -> int:
    """Return where the bare message begins in `encoded`, whose first section may be a header."""
    if encoded[:3] != b"\x00\x53\x70":
        return 0
    if encoded[3] == 0x45:
        return 4
    assert encoded[3] == 0xC0, "a header of more than 255 bytes"
    return 5 + encoded[4]


def full_message() -> Message:
    """Return a message with a header, annotations, application properties and every property."""
    message = Message(body={"answer": 42})
    message.durable = True
    message.priority = 6
    message.id = uuid.UUID(int=5)
    message.user_id = b"alice"
    message.address = "somewhere"
    message.subject = "a subject"
    message.reply_to = "back/here"
    message.correlation_id = ulong(2**64 - 1)
    message.content_type = symbol("text/plain")
    message.content_encoding = symbol("gzip")
    message.expiry_time = time.time() + 3600
    message.creation_time = 1_700_000_000.123
    message.group_id = "group"
    message.group_sequence = 2**32 - 1
    message.reply_to_group_id = "answers"
    message.annotations = {symbol("x-opt-jms-dest"): byte(0), symbol("x-opt-other"): [1, "a"]}
    properties: Any = {"text": "grüße", "number": 7, "none": None, "float": float32(0.5)}
    message.properties = properties
    return message


@pytest.mark.requirement("PRD-05")
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BODIES.items()])
def test_a_body_of_every_type_comes_back_equal(broker: Broker, address: str, body: Any) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, Message(body=body))
        delivery, received = peer.take(peer.receiver(address, credit=1))
        peer.accept(delivery)
    assert received.body == body
    assert type(received.body) is (memoryview if type(body) is bytes else type(body))


@pytest.mark.requirement("PRD-05")
@pytest.mark.requirement("DST-03")
def test_the_bare_message_leaves_byte_for_byte_as_it_came(broker: Broker, address: str) -> None:
    encoded = bytes(full_message().encode())
    with Peer(broker.url) as peer:
        peer.fill(address, encoded)
        _, received = peer.take_bytes(peer.receiver(address, credit=1))
    assert received[header_only(received) :] == encoded[header_only(encoded) :]


SECTIONS: Final = {
    "two data sections": "005375a003616263 005375a003646566",
    "two sequences": "005376c00401a10161 00537645",
    "a value": "005377a10161",
    "a value and a footer": "005377a10161 005378c10100",
    "an empty data section": "005375a000",
    "properties without a body": "005373c00401a10161",
    "a descriptor of eight bytes": "00800000000000000075a0016b",
    "a length of four bytes": "005375b00000000178",
    "empty annotations and properties": "005372c10100 00537345 005374c10100 005377a10161",
}


@pytest.mark.requirement("PRD-05")
@pytest.mark.parametrize("sections", list(SECTIONS.values()), ids=list(SECTIONS))
def test_unusual_sections_come_back_as_they_were(
    broker: Broker, address: str, sections: str
) -> None:
    encoded = bytes.fromhex(sections)
    with Peer(broker.url) as peer:
        peer.fill(address, encoded)
        _, received = peer.take_bytes(peer.receiver(address, credit=1))
    assert received[header_only(received) :] == encoded


@pytest.mark.requirement("PRD-05")
def test_delivery_annotations_are_for_the_broker_alone(broker: Broker, address: str) -> None:
    """Delivery annotations are for the next node only (core spec 3.2.2): not passed on."""
    bare = Message(body="bare").encode()
    hidden = bytes.fromhex("005371c10702a30378797a41")
    with Peer(broker.url) as peer:
        peer.fill(address, hidden + bare[header_only(bare) :])
        _, received = peer.take_bytes(peer.receiver(address, credit=1))
    assert received[header_only(received) :] == bare[header_only(bare) :]


@pytest.mark.requirement("DST-14")
@pytest.mark.requirement("RCV-01")
@pytest.mark.parametrize("durable", [True, False])
def test_the_header_keeps_durable_and_priority(broker: Broker, address: str, durable: bool) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, Message(body="x", durable=durable, priority=7))
        _, received = peer.take(peer.receiver(address, credit=1))
    assert received.durable is durable
    assert received.priority == 7
    assert received.delivery_count == 0


@pytest.mark.requirement("RCV-03")
def test_a_priority_above_nine_counts_as_nine(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *(Message(body=str(p), priority=p) for p in (9, 200, 8, 10)))
        assert peer.bodies(address) == ["9", "200", "10", "8"]


@pytest.mark.requirement("PRD-04")
def test_ttl_is_reduced_by_the_time_spent_in_the_queue(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, Message(body="x", ttl=60.0))
        peer.run_for(0.2)
        _, received = peer.take(peer.receiver(address, credit=1))
    assert 60.0 - 15.0 < received.ttl <= 59.8


@pytest.mark.requirement("PRD-04")
def test_the_earlier_of_ttl_and_expiry_time_ends_a_message(broker: Broker, address: str) -> None:
    now = time.time()
    with Peer(broker.url) as peer:
        peer.fill(
            address,
            Message(body="neither", ttl=60.0, expiry_time=now + 60),
            Message(body="ttl", ttl=0.1, expiry_time=now + 60),
            Message(body="expiry time", ttl=60.0, expiry_time=now + 0.1),
            Message(body="expiry time alone", expiry_time=now - 1),
        )
        peer.run_for(0.2)
        assert peer.bodies(address) == ["neither"]


@pytest.mark.requirement("PRD-04")
def test_a_message_that_expires_is_gone_from_a_queue_with_waiting_consumers(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        idle = peer.receiver(address)
        peer.fill(address, Message(body="mortal", ttl=0.05), "immortal")
        peer.run_for(0.1)
        idle.flow(10)
        _, received = peer.take(idle)
        assert received.body == "immortal"


@pytest.mark.requirement("PRD-05")
@pytest.mark.parametrize("frame_size", [512, 4096, 65536])
def test_a_large_message_in_small_frames_arrives_whole(
    broker: Broker, address: str, frame_size: int
) -> None:
    body = bytes(range(256)) * 4096
    with Peer(broker.url, max_frame_size=frame_size) as peer:
        receiver = peer.receiver(address, credit=3)
        peer.fill(address, *(Message(body=body) for _ in range(3)))
        for _ in range(3):
            delivery, received = peer.take(receiver)
            assert received.body == body
            peer.accept(delivery)


@pytest.mark.requirement("PRD-05")
def test_a_message_of_50_mebibytes_arrives_whole(broker: Broker, address: str) -> None:
    body = bytes(range(256)) * (50 * 4096)
    with Peer(broker.url) as peer:
        peer.fill(address, Message(body=body))
        delivery, received = peer.take(peer.receiver(address, credit=1))
        assert received.body == body
        peer.accept(delivery)


def test_a_message_beyond_the_largest_size_detaches_its_link(
    strict_broker: Broker, address: str
) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        sender = peer.sender(address)
        assert sender.remote_max_message_size == 1_000_000
        small = bytes(990_000)
        peer.send(sender, Message(body=small))
        peer.post(sender, Message(body=bytes(1_000_000)))
        peer.until(lambda: sender.state & Endpoint.REMOTE_CLOSED)
        condition = sender.remote_condition
        assert condition is not None
        assert condition.name == "amqp:link:message-size-exceeded"
        assert peer.bodies(address) == [small]


@pytest.mark.requirement("PRD-05")
def test_two_links_may_send_their_frames_in_turn(broker: Broker, address: str) -> None:
    parts = [bytes([n]) * 5000 for n in range(8)]
    encoded = [Message(body=b"".join(parts[n::2])).encode() for n in range(2)]
    with Peer(broker.url) as peer:
        session = peer.session()
        senders = [peer.sender(f"{address}-{n}", session=session) for n in range(2)]
        deliveries = [sender.delivery(sender.delivery_tag()) for sender in senders]
        for start in range(0, len(encoded[0]), 3000):
            for sender, whole in zip(senders, encoded, strict=True):
                sender.stream(whole[start : start + 3000])
                peer.flush()
        for sender, delivery in zip(senders, deliveries, strict=True):
            sender.advance()
            assert peer.outcome(delivery) == Delivery.ACCEPTED
        for n in range(2):
            _, received = peer.take_bytes(peer.receiver(f"{address}-{n}", credit=1))
            assert received[header_only(received) :] == encoded[n][header_only(encoded[n]) :]


@pytest.mark.requirement("PRD-05")
def test_a_message_whose_sender_aborts_it_is_not_in_the_queue(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        sender = peer.sender(address)
        half = sender.delivery(sender.delivery_tag())
        sender.stream(Message(body=b"x" * 10_000).encode()[:5000])
        peer.flush()
        half.abort()
        peer.send(sender, "whole")
        assert peer.bodies(address) == ["whole"]


@pytest.mark.requirement("PRD-05")
def test_a_message_whose_sender_detaches_half_way_is_not_in_the_queue(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        sender = peer.sender(address)
        sender.delivery(sender.delivery_tag())
        sender.stream(Message(body=b"x" * 10_000).encode()[:5000])
        peer.flush()
        peer.close(sender)
        peer.fill(address, "whole")
        assert peer.bodies(address) == ["whole"]


@pytest.mark.requirement("PRD-05")
def test_settled_messages_both_ways_keep_their_order(broker: Broker, address: str) -> None:
    numbers = [str(n) for n in range(1000)]
    with Peer(broker.url) as peer:
        sender = peer.new_sender(address)
        sender.snd_settle_mode = Link.SND_SETTLED
        peer.attach(sender)
        receiver = peer.new_receiver(address)
        receiver.snd_settle_mode = Link.SND_SETTLED
        peer.attach(receiver).flow(len(numbers))
        for number in numbers:
            peer.post(sender, number)
        for number in numbers:
            delivery, received = peer.take(receiver)
            assert received.body == number
            assert delivery.settled
            delivery.settle()
        peer.close(receiver)
        assert peer.bodies(address) == []
