"""JMSDestination and JMSReplyTo: an address, and an annotation that says what is there.

WD10 5.1 has a number for the type, EARLY 6 words; both are read, whatever the profile (DST-04).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from mypy_extensions import mypyc_attr

from broker.amqp.types import Char, Integer, Timestamp


class DestinationType(Enum):
    """What is at an address; the values are the capabilities of a terminus (WD10 5.2).

    They are in the order of their numbers.
    """

    QUEUE = "queue"
    TOPIC = "topic"
    TEMPORARY_QUEUE = "temporary-queue"
    TEMPORARY_TOPIC = "temporary-topic"


TYPES: Final = tuple(DestinationType)
"""By the number that WD10 gives them."""

WORDS: Final = ("queue", "topic", "queue,temporary", "topic,temporary")
"""By the same number, what EARLY calls them."""


@mypyc_attr(acyclic=True)
@final
class Destination:
    """A JMS Destination."""

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
    """What a received message names; what it leaves out is as with its consumer (WD10 5.1).

    Without a consumer a type that is not told is a queue.
    """
    if address is None:
        return consumer
    if type is not None:
        return Destination(address, type)
    return Destination(address) if consumer is None else Destination(address, consumer.type)


def type_of_number(annotation: object) -> DestinationType | None:
    """What x-opt-jms-dest and x-opt-jms-reply-to name; None where they name nothing."""
    number = whole_number(annotation)
    return TYPES[number] if number is not None and 0 <= number < len(TYPES) else None


def type_of_words(annotation: object) -> DestinationType | None:
    """What x-opt-to-type and x-opt-reply-type name: words in any order, with spaces or without."""
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
    """The number that an annotation of any integral type is; None where it is something else."""
    if isinstance(annotation, Integer):
        return None if isinstance(annotation, (Char, Timestamp)) else annotation.value
    return annotation if isinstance(annotation, int) and not isinstance(annotation, bool) else None
