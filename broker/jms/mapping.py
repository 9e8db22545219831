"""Convert encoded AMQP messages to JMS messages, and back.

The conversion depends on no connection and no clock, so the same bytes give the same message to a
consumer, a console, and a Spark job that reads the store.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.decode import encoded_value, open_compound, skip, take_value, text_at
from broker.amqp.descriptors import APPLICATION_PROPERTIES
from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.errors import Fault
from broker.amqp.sections import Sections
from broker.jms.annotations import (
    JMS_TYPE,
    MSG_TYPE,
    delivery_time,
    destination_type,
    put_annotations,
    read_annotations,
    reply_to_type,
)
from broker.jms.bodies import (
    NO_BODY,
    BodySection,
    SerializedBody,
    annotated_kind,
    body_of,
    kind_of,
    read_content,
)
from broker.jms.content_type import JAVA_OBJECT, is_java_object
from broker.jms.destinations import Destination, destination
from broker.jms.errors import MappingError
from broker.jms.headers import (
    put_message_header,
    put_properties,
    read_header,
    read_properties,
)
from broker.jms.message import NO_ANNOTATIONS, JmsMessage
from broker.jms.profile import Profile


def decode(
    data: bytes,
    *,
    now_ms: int,
    consumer: Destination | None = None,
    profile: Profile = Profile.WD10,
    properties: bool = True,
    body: bool = True,
) -> JmsMessage:
    """Return the JMS message of an encoded message; MappingError if it is malformed.

    `now_ms` is when it was received, in ms since 1970: an expiration may be relative to that.
    `consumer` is the destination of the consumer that received it, which completes destinations of
    the message. Without `properties` and `body` only the headers are decoded, in half the time.
    """
    decoder = Decoder(consumer=consumer, profile=profile, properties=properties, body=body)
    return decoder.decode(data, 0, i64(len(data)), now_ms=now_ms)


@final
class Decoder:
    """Decodes messages one after the other, with the arguments of `decode`.

    `sections` are the positions of the sections of the last message, for reading further parts.
    """

    def __init__(
        self,
        *,
        consumer: Destination | None = None,
        profile: Profile = Profile.WD10,
        properties: bool = True,
        body: bool = True,
    ) -> None:
        self.sections: Final = Sections()
        self._consumer: Final = consumer
        self._profile: Final = profile
        self._properties: Final = properties
        self._body: Final = body
        self._annotations = b""
        self._known: dict[str, object] = {}
        self._others = NO_ANNOTATIONS

    def decode(
        self, data: bytes, start: i64, end: i64, *, now_ms: int, ttl_ends_ms: int = 0
    ) -> JmsMessage:
        """Return the message in `data[start:end]`; MappingError if it is malformed.

        `ttl_ends_ms` is the time at which the ttl of its header ends, if that is known; otherwise
        0: the ttl then counts from `now_ms`.
        """
        message = JmsMessage(NO_BODY, profile=self._profile)
        message.is_received = True
        sections = self.sections
        try:
            sections.read(data, start, end)
            self._read_annotations(data)
            self._read_headers(message, data, now_ms=now_ms, ttl_ends_ms=ttl_ends_ms)
            if self._properties:
                _read_application_properties(message.properties, data, sections)
            if self._body:
                _read_body(message, data, sections, annotation=self._known.get(MSG_TYPE))
        except Fault as fault:
            raise MappingError(str(fault)) from fault
        return message

    def _read_annotations(self, data: bytes) -> None:
        """Read the annotations, unless they are equal to those of the last message, as most are."""
        at = self.sections.message_annotations
        end = self.sections.end
        encoded = b"" if at < 0 else encoded_value(data, at, end)
        if encoded != self._annotations:
            self._known, self._others = read_annotations(data, at, end)
            self._annotations = encoded

    def _read_headers(
        self, message: JmsMessage, data: bytes, *, now_ms: int, ttl_ends_ms: int
    ) -> None:
        """Set all fields of `message` but its properties and body."""
        sections = self.sections
        end = sections.end
        known = self._known
        consumer = self._consumer
        message.annotations = self._others
        read_header(message, data, sections.header, end)
        if message.time_to_live > 0:
            message.expiration = ttl_ends_ms or now_ms + message.time_to_live
        to, reply_to = read_properties(message, data, sections.properties, end, known=known)
        if to is None:
            message.destination = consumer
        else:
            message.destination = destination(to, destination_type(known), consumer=consumer)
        if reply_to is not None:
            message.reply_to = destination(reply_to, reply_to_type(known), consumer=consumer)
        due = delivery_time(known)
        message.delivery_time = message.timestamp if due is None else due
        _read_type(message, known.get(JMS_TYPE))


def encode(message: JmsMessage) -> bytes:
    """Return `message` encoded; MappingError if a header, property or body cannot be sent."""
    out = BytesWriter()
    try:
        _put(out, message)
    except MappingError:
        raise
    except Fault as fault:
        raise MappingError(str(fault)) from fault
    except (TypeError, ValueError, OverflowError) as error:
        raise MappingError(f"a value cannot be encoded: {error}") from error
    return out.getvalue()


def _read_type(message: JmsMessage, annotation: object) -> None:
    """Set JMSType: in WD10 from the subject, in EARLY from an annotation, else from the other."""
    annotated = annotation if isinstance(annotation, str) else None
    if message.profile is Profile.EARLY:
        message.type = message.subject if annotated is None else annotated
    else:
        message.type = annotated if message.subject is None else message.subject
        message.subject = None


def _read_application_properties(
    properties: dict[str, object], data: bytes, sections: Sections
) -> None:
    if sections.application_properties < 0:
        return
    count, at, end = open_compound(data, sections.application_properties, sections.end)
    while count > 0:
        name = _property_name(data, at, end)
        if name is None or name in properties:
            raise MappingError("a property has no name, or that of another")
        properties[name], at = take_value(data, skip(data, at, end), end)
        count -= 2


def _property_name(data: bytes, at: i64, end: i64) -> str | None:
    try:
        return text_at(data, at, end)
    except Fault as fault:
        raise MappingError(f"the name of an application property: {fault.description}") from fault


def _read_body(message: JmsMessage, data: bytes, sections: Sections, *, annotation: object) -> None:
    end = sections.end if sections.footer < 0 else sections.footer
    content = read_content(data, sections.body, end, message.content_type)
    kind = annotated_kind(annotation) or kind_of(content, message.profile)
    message.body = body_of(kind, content)
    message.body_section = content.section


def content_type_to_send(message: JmsMessage) -> str | None:
    """Return the content-type of the encoded message.

    Serialized objects have one type, which no other body may have (WD10 3.2.4.6): raise
    MappingError if an application has set another. The type of a received message describes the
    section that it arrived in, so a body that is now sent as a value loses it (EARLY 4.2.4.3), and
    a body that is sent as data without it gets the type of its kind (EARLY 4.2.4.2).
    """
    body, content_type = message.body, message.content_type
    is_serialized = isinstance(body, SerializedBody)
    contradicts = is_serialized != is_java_object(content_type)
    if contradicts and not message.is_received:
        raise MappingError(f"the content-type {JAVA_OBJECT} is that of serialized objects alone")
    if is_serialized or contradicts:
        return body.content_type
    if not message.is_received:
        return content_type
    is_kept = body.section is BodySection.DATA or body.section is message.body_section
    return content_type if is_kept and content_type else body.content_type


def _put(out: BytesWriter, message: JmsMessage) -> None:
    content_type = content_type_to_send(message)
    put_message_header(out, message)
    put_annotations(out, message)
    put_properties(out, message, content_type=content_type)
    if message.properties:
        put_descriptor(out, APPLICATION_PROPERTIES)
        put_value(out, message.properties)
    message.body.write(out)
