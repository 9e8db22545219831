"""Destinations, row for row as in WD10 5.1 and 5.2 and EARLY 6."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.types import Byte, Char, Int, Short, Timestamp, UByte, UInt, ULong, UShort
from broker.jms import Destination, DestinationType
from broker.jms.destinations import (
    destination,
    is_topic,
    number_of_type,
    type_of_number,
    type_of_words,
    whole_number,
    words_of_type,
)

QUEUE: Final = DestinationType.QUEUE
TOPIC: Final = DestinationType.TOPIC
TEMPORARY_QUEUE: Final = DestinationType.TEMPORARY_QUEUE
TEMPORARY_TOPIC: Final = DestinationType.TEMPORARY_TOPIC

TABLE: Final = [
    (QUEUE, 0, "queue", "queue"),
    (TOPIC, 1, "topic", "topic"),
    (TEMPORARY_QUEUE, 2, "queue,temporary", "temporary-queue"),
    (TEMPORARY_TOPIC, 3, "topic,temporary", "temporary-topic"),
]
"""Type, WD10's number, EARLY's words, and the capability of a terminus."""


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize(("kind", "number", "words", "capability"), TABLE)
def test_a_type_has_a_number_words_and_a_capability(
    kind: DestinationType, number: int, words: str, capability: str
) -> None:
    assert number_of_type(kind) == number
    assert type_of_number(Byte(number)) is kind
    assert words_of_type(kind) == words
    assert type_of_words(words) is kind
    assert kind.value == capability
    assert is_topic(kind) is ("topic" in words)


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize(
    "annotation",
    [UByte(1), UShort(1), UInt(1), ULong(1), Byte(1), Short(1), Int(1), 1],
    ids=repr,
)
def test_any_integral_type_is_understood(annotation: object) -> None:
    assert whole_number(annotation) == 1
    assert type_of_number(annotation) is TOPIC


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize(
    "annotation", [None, -1, Byte(4), ULong(2**64 - 1), True, 1.0, "1", Char(1), Timestamp(1)]
)
def test_what_is_no_number_of_a_type_says_nothing(annotation: object) -> None:
    assert type_of_number(annotation) is None


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ("temporary , topic", TEMPORARY_TOPIC),
        ("temporary,queue", TEMPORARY_QUEUE),
        (" topic ", TOPIC),
        ("temporary", None),
        ("Topic", None),
        ("", None),
        (None, None),
        (1, None),
    ],
)
def test_words_come_in_any_order(annotation: object, kind: DestinationType | None) -> None:
    assert type_of_words(annotation) is kind


CONSUMER: Final = Destination("its own", TEMPORARY_TOPIC)


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize(
    ("address", "kind", "consumer", "expected"),
    [
        pytest.param("a", TOPIC, CONSUMER, Destination("a", TOPIC), id="all is told"),
        pytest.param("a", None, CONSUMER, Destination("a", TEMPORARY_TOPIC), id="no type"),
        pytest.param(None, None, CONSUMER, CONSUMER, id="nothing"),
        pytest.param(None, TOPIC, CONSUMER, CONSUMER, id="a type without an address"),
        pytest.param("a", None, None, Destination("a", QUEUE), id="no type and no consumer"),
        pytest.param(None, None, None, None, id="nothing at all"),
        pytest.param("", TOPIC, CONSUMER, Destination("", TOPIC), id="an empty address"),
    ],
)
def test_what_a_message_leaves_out_is_as_with_its_consumer(
    address: str | None,
    kind: DestinationType | None,
    consumer: Destination | None,
    expected: Destination | None,
) -> None:
    assert destination(address, kind, consumer=consumer) == expected


def test_destinations_are_values() -> None:
    assert {Destination("a"), Destination("a", QUEUE)} == {Destination("a")}
    assert Destination("a") != Destination("a", TOPIC)
    assert Destination("a") != "a"
    assert repr(Destination("a")) == "Destination('a', DestinationType.QUEUE)"
