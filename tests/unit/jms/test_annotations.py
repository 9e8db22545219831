"""Annotations that carry JMS headers, as WD10 10 and EARLY list them."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.types import Byte, Int, Map, Symbol, Timestamp, UInt, ULong
from broker.jms import Destination, DestinationType, JmsMessage, MappingError, Profile, TextBody
from broker.jms.annotations import (
    delivery_time,
    destination_type,
    put_annotations,
    read_annotations,
    reply_to_type,
)
from tests.support.jms import annotations_of, encoded

TOPIC: Final = DestinationType.TOPIC


def written(message: JmsMessage) -> dict[str, object]:
    out = BytesWriter()
    put_annotations(out, message)
    return annotations_of(out.getvalue())


def full(profile: Profile) -> JmsMessage:
    """Return a message whose headers all have a value."""
    message = JmsMessage(TextBody("text"), profile=profile)
    message.destination = Destination("a", DestinationType.TEMPORARY_TOPIC)
    message.reply_to = Destination("b", DestinationType.TEMPORARY_QUEUE)
    message.timestamp = 1000
    message.delivery_time = 2000
    message.type = "kind"
    message.correlation_id = "application's own"
    message.annotations = Map([(Symbol("x-opt-own"), 1), (Symbol("x-opt-more"), "two")])
    return message


OWN: Final[dict[str, object]] = {"x-opt-own": 1, "x-opt-more": "two"}


@pytest.mark.requirement("MAP-04", "MAP-07")
def test_wd10_annotates_by_number() -> None:
    assert written(full(Profile.WD10)) == {
        "x-opt-jms-msg-type": Byte(5),
        "x-opt-jms-dest": Byte(3),
        "x-opt-jms-reply-to": Byte(2),
        "x-opt-delivery-time": 2000,
        **OWN,
    }


@pytest.mark.requirement("MAP-02", "MAP-03", "MAP-04", "MAP-07")
def test_early_annotates_by_words() -> None:
    assert written(full(Profile.EARLY)) == {
        "x-opt-jms-msg-type": Byte(5),
        "x-opt-to-type": "topic,temporary",
        "x-opt-reply-type": "queue,temporary",
        "x-opt-delivery-time": Timestamp(2000),
        "x-opt-jms-type": "kind",
        "x-opt-app-correlation-id": True,
        **OWN,
    }


@pytest.mark.requirement("MAP-02", "MAP-03", "MAP-04")
@pytest.mark.parametrize("profile", list(Profile), ids=[profile.value for profile in Profile])
def test_what_is_not_set_is_not_annotated(profile: Profile) -> None:
    message = JmsMessage(TextBody("text"), profile=profile)
    message.timestamp = message.delivery_time = 1000
    message.correlation_id = "ID:a message"
    assert written(message) == {"x-opt-jms-msg-type": Byte(5)}


def read(**annotations: object) -> tuple[dict[str, object], Map]:
    given: dict[str, object] = {name.replace("_", "-"): held for name, held in annotations.items()}
    data = encoded(annotations=given)
    return read_annotations(data, 3, len(data))


def test_others_are_kept_apart() -> None:
    known, others = read(x_opt_jms_dest=Byte(1), x_opt_own=1, x_opt_jms_type="kind")
    assert known == {"x-opt-jms-dest": Byte(1), "x-opt-jms-type": "kind"}
    assert others == Map([(Symbol("x-opt-own"), 1)])
    assert read_annotations(b"", -1, 0) == ({}, Map([]))


TWICE: Final = [
    pytest.param("x-opt-jms-msg-type", Byte(5), Byte(3), id="the kind of message"),
    pytest.param("x-opt-jms-dest", Byte(0), Byte(1), id="the type of the destination"),
    pytest.param("x-opt-jms-reply-to", Byte(0), Byte(1), id="the type of the reply-to"),
    pytest.param("x-opt-to-type", "queue", "topic", id="the type of the destination in words"),
    pytest.param("x-opt-reply-type", "queue", "topic", id="the type of the reply-to in words"),
    pytest.param("x-opt-delivery-time", 1, 2, id="the delivery time"),
    pytest.param("x-opt-jms-type", "a", "b", id="the JMSType"),
    pytest.param("x-opt-app-correlation-id", True, False, id="the kind of correlation-id"),
    pytest.param("x-opt-jms-dest", Byte(1), Byte(1), id="twice the same"),
    pytest.param("x-opt-own", 1, 2, id="an annotation outside of the mapping"),
]


@pytest.mark.requirement("MAP-04", "MAP-07")
@pytest.mark.parametrize(("name", "first", "second"), TWICE)
def test_an_annotation_that_is_given_twice_is_refused(
    name: str, first: object, second: object
) -> None:
    out = BytesWriter()
    for word in (name, first, name, second):
        put_value(out, Symbol(word) if word is name else word)
    pairs = out.getvalue()
    data = b"\x00\x53\x72\xc1" + bytes([len(pairs) + 1, 4]) + pairs
    with pytest.raises(MappingError, match="twice"):
        read_annotations(data, 3, len(data))


@pytest.mark.requirement("MAP-04")
def test_numbers_count_before_words_and_both_are_understood() -> None:
    known, _ = read(x_opt_jms_dest=Int(1), x_opt_to_type="queue")
    assert destination_type(known) is TOPIC
    known, _ = read(x_opt_jms_dest=Int(9), x_opt_to_type="topic", x_opt_reply_type="topic")
    assert destination_type(known) is reply_to_type(known) is TOPIC
    known, _ = read(x_opt_jms_reply_to=ULong(1))
    assert destination_type(known) is None
    assert reply_to_type(known) is TOPIC


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize(
    ("annotation", "moment"),
    [(5, 5), (Timestamp(5), 5), (UInt(5), 5), (0, 0), (None, None), ("5", None), (True, None)],
)
def test_a_delivery_time_is_of_any_integral_type_or_a_timestamp(
    annotation: object, moment: int | None
) -> None:
    known, _ = read(x_opt_delivery_time=annotation)
    assert delivery_time(known) == moment
