"""Read and write the header and properties sections (WD10 3.2.1, 3.2.2, 3.3.1, 3.3.2)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from broker.amqp.composite import FieldReader, FieldWriter
from broker.amqp.descriptors import PROPERTIES
from broker.amqp.encode import BytesWriter, put_timestamp, put_value
from broker.amqp.errors import Fault
from broker.amqp.sections import (
    HEADER_NAMES,
    PRIORITY_FIELD_MAX,
    PRIORITY_MAX,
    PROPERTIES_NAMES,
    in_field,
    put_header,
)
from broker.amqp.types import Timestamp
from broker.jms.annotations import APP_CORRELATION_ID
from broker.jms.destinations import Destination
from broker.jms.errors import MappingError
from broker.jms.ids import (
    correlation_id_text,
    correlation_id_value,
    message_id_text,
    message_id_value,
)
from broker.jms.message import (
    INT_MAX,
    NON_PERSISTENT,
    PERSISTENT,
    PRIORITY_DEFAULT,
    JmsMessage,
)
from broker.jms.profile import Profile
from broker.jms.sending import header_ttl

SIGN: Final = 0x1_0000_0000


def read_header(message: JmsMessage, data: bytes, at: i64, end: i64) -> None:
    """Set fields of `message` from the header section at `at`; -1 is none, hence NON_PERSISTENT.

    Raise MappingError, which names the field, if one is of a wrong type.
    """
    message.delivery_mode = NON_PERSISTENT
    if at < 0:
        return
    header = FieldReader(data, at, end, "header")
    try:
        if header.boolean(False):
            message.delivery_mode = PERSISTENT
        priority = int(header.uint(PRIORITY_DEFAULT))
        message.time_to_live = int(header.uint(0))
        message.first_acquirer = header.boolean(False)
        message.delivery_count = min(int(header.uint(0)) + 1, INT_MAX)
    except Fault as fault:
        raise MappingError(in_field("header", HEADER_NAMES[header.field], fault)) from fault
    if priority > PRIORITY_FIELD_MAX:
        raise MappingError(f"header: priority: {priority} does not fit 8 bits")
    message.priority = min(priority, PRIORITY_MAX)


def put_message_header(out: BytesWriter, message: JmsMessage) -> None:
    """Write the header section; MappingError if delivery mode or priority is invalid."""
    if message.delivery_mode not in (NON_PERSISTENT, PERSISTENT):
        raise MappingError(f"there is no JMSDeliveryMode {message.delivery_mode}")
    if not 0 <= message.priority <= PRIORITY_MAX:
        raise MappingError(f"JMSPriority is 0 to {PRIORITY_MAX}, not {message.priority}")
    put_header(
        out,
        durable=message.delivery_mode == PERSISTENT,
        priority=message.priority,
        ttl=header_ttl(message.amqp_ttl, message.time_to_live),
        first_acquirer=message.first_acquirer,
        delivery_count=message.delivery_count - 1,
    )


def read_properties(
    message: JmsMessage, data: bytes, at: i64, end: i64, *, known: dict[str, object]
) -> tuple[str | None, str | None]:
    """Set the fields of `message` from the properties section at `at`; -1 means there is none.

    Return the fields to and reply-to. `known` are the annotations of the mapping. The expiration is
    set only if absolute-expiry-time is there, even to 0. Raise MappingError, which names the field,
    if one is of a wrong type.
    """
    if at < 0:
        return None, None
    properties = FieldReader(data, at, end, "properties")
    try:
        return _take_properties(message, properties, known)
    except Fault as fault:
        name = PROPERTIES_NAMES[properties.field]
        raise MappingError(in_field("properties", name, fault)) from fault


def _take_properties(
    message: JmsMessage, properties: FieldReader, known: dict[str, object]
) -> tuple[str | None, str | None]:
    profile = message.profile
    value = properties.value()
    message.message_id = _id("message-id", value, message_id_text(value, profile))
    message.user_id = _user_id(properties.binary())
    to = properties.string()
    message.subject = properties.string()
    reply_to = properties.string()
    value = properties.value()
    is_application = known.get(APP_CORRELATION_ID) is True
    text = correlation_id_text(value, profile, is_application=is_application)
    message.correlation_id = _id("correlation-id", value, text)
    message.content_type = properties.symbol()
    message.content_encoding = properties.symbol()
    expiration = _moment("absolute-expiry-time", properties.value())
    if expiration is not None:
        message.expiration = expiration
    message.timestamp = _moment("creation-time", properties.value()) or 0
    message.group_id = properties.string()
    sequence = int(properties.optional_uint())
    message.group_sequence = None if sequence < 0 else signed_sequence(sequence)
    message.reply_to_group_id = properties.string()
    return to, reply_to


def put_properties(out: BytesWriter, message: JmsMessage, *, content_type: str | None) -> None:
    """Write the properties section, with this content-type; MappingError if an id is invalid."""
    profile = message.profile
    fields = FieldWriter()
    if message.message_id is None:
        fields.skip()
    else:
        put_value(fields.field(), message_id_value(message.message_id, profile))
    fields.binary(None if message.user_id is None else message.user_id.encode())
    fields.string(_address_of(message.destination))
    fields.string(message.subject if profile is Profile.EARLY else message.type)
    fields.string(_address_of(message.reply_to))
    if message.correlation_id is None:
        fields.skip()
    else:
        put_value(fields.field(), correlation_id_value(message.correlation_id, profile))
    fields.symbol(content_type)
    fields.symbol(message.content_encoding)
    _put_moment(fields, message.expiration)
    _put_moment(fields, message.timestamp)
    fields.string(message.group_id)
    if message.group_sequence is None:
        fields.skip()
    else:
        fields.uint(unsigned_sequence(message.group_sequence))
    fields.string(message.reply_to_group_id)
    fields.close(out, PROPERTIES)


def signed_sequence(group_sequence: int) -> int:
    """Return a group-sequence as JMSXGroupSeq: from 2^31 on it is negative (WD10 3.3.2)."""
    return group_sequence - SIGN if group_sequence > INT_MAX else group_sequence


def unsigned_sequence(group_sequence: int) -> int:
    """Return a JMSXGroupSeq as group-sequence (WD10 3.2.2)."""
    return group_sequence + SIGN if group_sequence < 0 else group_sequence


def _id(field: str, value: object, text: str | None) -> str | None:
    if text is None and value is not None:
        raise MappingError(
            f"properties: {field}: a string, ulong, uuid or binary was expected,"
            f" not {type(value).__name__}"
        )
    return text


def _user_id(value: bytes | None) -> str | None:
    """Decode like Java: bytes that are not UTF-8 are replaced."""
    return None if value is None else value.decode("utf-8", "replace")


def _address_of(destination: Destination | None) -> str | None:
    return None if destination is None else destination.address


def _moment(field: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, Timestamp):
        return value.value
    raise MappingError(f"properties: {field}: a timestamp was expected")


def _put_moment(fields: FieldWriter, moment: int) -> None:
    if moment == 0:
        fields.skip()
    else:
        put_timestamp(fields.field(), moment)
