"""Read and write the message annotations of the mapping (WD10 10, EARLY's list of that name)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from broker.amqp.decode import open_compound, take_value
from broker.amqp.descriptors import MESSAGE_ANNOTATIONS
from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.types import Byte, Map, Symbol, Timestamp
from broker.jms.bodies import number_of_kind
from broker.jms.destinations import (
    Destination,
    DestinationType,
    number_of_type,
    type_of_number,
    type_of_words,
    whole_number,
    words_of_type,
)
from broker.jms.errors import MappingError
from broker.jms.ids import is_message_id
from broker.jms.message import NO_ANNOTATIONS, JmsMessage
from broker.jms.profile import Profile

MSG_TYPE: Final = "x-opt-jms-msg-type"
DEST: Final = "x-opt-jms-dest"
REPLY_TO: Final = "x-opt-jms-reply-to"
TO_TYPE: Final = "x-opt-to-type"
REPLY_TYPE: Final = "x-opt-reply-type"
DELIVERY_TIME: Final = "x-opt-delivery-time"
JMS_TYPE: Final = "x-opt-jms-type"
APP_CORRELATION_ID: Final = "x-opt-app-correlation-id"

OF_THE_MAPPING: Final = frozenset(
    {
        *(MSG_TYPE, DEST, REPLY_TO, TO_TYPE, REPLY_TYPE, DELIVERY_TIME, JMS_TYPE),
        APP_CORRELATION_ID,
    }
)


def read_annotations(data: bytes, at: i64, end: i64) -> tuple[dict[str, object], Map]:
    """Return the annotations of the mapping by name, and all others; `at` is -1 for no section.

    Raise MappingError if a key is given twice: such a map is invalid (core 1.6.23).
    """
    known: dict[str, object] = {}
    if at < 0:
        return known, NO_ANNOTATIONS
    others: list[tuple[object, object]] = []
    count, at, end = open_compound(data, at, end)
    while count > 0:
        key, at = take_value(data, at, end)
        value, at = take_value(data, at, end)
        if isinstance(key, Symbol) and key.text in OF_THE_MAPPING:
            if key.text in known:
                raise MappingError(f"the annotation {key.text} is given twice")
            known[key.text] = value
        else:
            others.append((key, value))
        count -= 2
    return known, _map_of(others)


def _map_of(pairs: list[tuple[object, object]]) -> Map:
    if not pairs:
        return NO_ANNOTATIONS
    try:
        return Map(pairs)
    except (ValueError, TypeError) as error:
        raise MappingError(f"the annotations are no map: {error}") from error


def destination_type(known: dict[str, object]) -> DestinationType | None:
    """Return the type of JMSDestination, None if not annotated; numbers win over words (DST-04)."""
    return type_of_number(known.get(DEST)) or type_of_words(known.get(TO_TYPE))


def reply_to_type(known: dict[str, object]) -> DestinationType | None:
    """Return the type of JMSReplyTo, like `destination_type`."""
    return type_of_number(known.get(REPLY_TO)) or type_of_words(known.get(REPLY_TYPE))


def delivery_time(known: dict[str, object]) -> int | None:
    """Return JMSDeliveryTime in ms since 1970, None without a valid annotation.

    Any integral type and a timestamp are valid.
    """
    value = known.get(DELIVERY_TIME)
    return value.value if isinstance(value, Timestamp) else whole_number(value)


def put_annotations(out: BytesWriter, message: JmsMessage) -> None:
    """Write the section: the annotations that the headers need, then the message's own."""
    is_early = message.profile is Profile.EARLY
    pairs: list[tuple[object, object]] = [
        (Symbol(MSG_TYPE), Byte(number_of_kind(message.body.kind)))
    ]
    if message.destination is not None:
        pairs.append(_type_annotation(message.destination, TO_TYPE if is_early else DEST))
    if message.reply_to is not None:
        pairs.append(_type_annotation(message.reply_to, REPLY_TYPE if is_early else REPLY_TO))
    due = message.delivery_time
    if due not in (0, message.timestamp):
        pairs.append((Symbol(DELIVERY_TIME), Timestamp(due) if is_early else due))
    if is_early and message.type is not None:
        pairs.append((Symbol(JMS_TYPE), message.type))
    correlation_id = message.correlation_id
    if is_early and correlation_id is not None and not is_message_id(correlation_id):
        pairs.append((Symbol(APP_CORRELATION_ID), True))
    put_descriptor(out, MESSAGE_ANNOTATIONS)
    put_value(out, Map(pairs + message.annotations.pairs))


def _type_annotation(destination: Destination, name: str) -> tuple[object, object]:
    if name in (DEST, REPLY_TO):
        return Symbol(name), Byte(number_of_type(destination.type))
    return Symbol(name), words_of_type(destination.type)
