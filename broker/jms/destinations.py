"""JMSDestination and JMSReplyTo: an address, and an annotation with the type of destination.

The annotation is a number in WD10 5.1, words in EARLY 6; both are read in any profile (DST-04).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from mypy_extensions import mypyc_attr

from broker.amqp.types import Char, Integer, Timestamp


class DestinationType(Enum):
    """The type of a destination, in the order of WD10's numbers.

    The values are the capabilities of a terminus (WD10 5.2).
    """

    QUEUE = "queue"
    TOPIC = "topic"
    TEMPORARY_QUEUE = "temporary-queue"
    TEMPORARY_TOPIC = "temporary-topic"


TYPES: Final = tuple(DestinationType)
"""The types, indexed by their number in WD10."""

WORDS: Final = ("queue", "topic", "queue,temporary", "topic,temporary")
"""EARLY's words for the types, indexed by the same number."""


@mypyc_attr(acyclic=True)
@final
class Destination:
    """A JMS Destination: an address and its type."""

    def __init__(self, address: str, type: DestinationType = DestinationType.QUEUE) -> None:
        self.address: Final = address
        self.type: Final = type

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Destination)
            and self.address == other.address
            and self.type is other.type
        )

    def __hash__(self) -> int:
        return hash(self.address)

    def __repr__(self) -> str:
        return f"Destination({self.address!r}, {self.type})"


def destination(
    address: str | None, type: DestinationType | None, *, consumer: Destination | None
) -> Destination | None:
    """Return the destination that a received message names (WD10 5.1).

    A missing address or type is that of `consumer`, its consumer's destination. Without a consumer
    a missing address gives None, and a missing type a queue.
    """
    if address is None:
        return consumer
    if type is not None:
        return Destination(address, type)
    return Destination(address) if consumer is None else Destination(address, consumer.type)


def type_of_number(annotation: object) -> DestinationType | None:
    """Return the type that x-opt-jms-dest or x-opt-jms-reply-to names, None for any other value."""
    number = whole_number(annotation)
    return TYPES[number] if number is not None and 0 <= number < len(TYPES) else None


def type_of_words(annotation: object) -> DestinationType | None:
    """Return the type that x-opt-to-type or x-opt-reply-type names, None for any other value.

    The words may be in any order, with spaces or without.
    """
    if not isinstance(annotation, str):
        return None
    words = [word.strip() for word in annotation.split(",")]
    is_temporary = "temporary" in words
    if "topic" in words:
        return DestinationType.TEMPORARY_TOPIC if is_temporary else DestinationType.TOPIC
    if "queue" in words:
        return DestinationType.TEMPORARY_QUEUE if is_temporary else DestinationType.QUEUE
    return None


def is_topic(type: DestinationType) -> bool:
    return type is DestinationType.TOPIC or type is DestinationType.TEMPORARY_TOPIC


def number_of_type(type: DestinationType) -> int:
    return TYPES.index(type)


def words_of_type(type: DestinationType) -> str:
    return WORDS[TYPES.index(type)]


def whole_number(annotation: object) -> int | None:
    """Return the value of an annotation of any integral type; None for any other type."""
    if isinstance(annotation, Integer):
        return None if isinstance(annotation, (Char, Timestamp)) else annotation.value
    return annotation if isinstance(annotation, int) and not isinstance(annotation, bool) else None
