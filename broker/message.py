"""A message inside the broker: its bytes as received, and the few fields that routing reads.

The broker rewrites only the header, and adds to the annotations only what an outcome says
(PRD-05). `encoded` is everything from the message-annotations on; of a large message it is only
what precedes the body, which is in the store (`large_body.py`).

A transfer states the format of its payload (core 2.7.5). 0 is that of AMQP's own messages; a
payload of another format that consists of the same sections is handled like one of them. Any
other payload is opaque: nothing in it is read or changed.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i32, i64, mypyc_attr

from broker.amqp.decode import descriptor_at, skip, take_value
from broker.amqp.descriptors import DATA, MESSAGE_ANNOTATIONS
from broker.amqp.encode import put_descriptor, put_value
from broker.amqp.errors import (
    INVALID_FIELD,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    ConnectionFault,
    Fault,
    LinkFault,
)
from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.amqp.sections import PRIORITY_DEFAULT, Sections, put_header, split
from broker.amqp.types import Char, Integer, Map, combined
from broker.clock import Clock
from broker.large_body import LargeBody


def _header(
    *, durable: bool, priority: i64, ttl: i64, delivery_count: i64, first_acquirer: bool
) -> bytes:
    out = BytesWriter()
    put_header(
        out,
        durable=durable,
        priority=priority,
        ttl=ttl,
        first_acquirer=first_acquirer,
        delivery_count=delivery_count,
    )
    return out.getvalue()


def _first_headers(*, durable: bool) -> list[bytes]:
    return [
        _header(durable=durable, priority=priority, ttl=-1, delivery_count=0, first_acquirer=True)
        for priority in range(10)
    ]


PLAIN_HEADERS: Final = _first_headers(durable=False)
DURABLE_HEADERS: Final = _first_headers(durable=True)
"""Headers of first deliveries without ttl, by priority: nearly all deliveries have one of these."""

NEVER: Final[i64] = 0
"""The expiry of a message that is kept until it is consumed."""

UNKNOWN: Final[i64] = 0
"""The arrival time of messages that the broker wrote itself, or that an older broker stored."""

AT_ONCE: Final[i64] = 0
"""The delivery time of a message that has none."""

DELIVERY_TIME: Final = b"x-opt-delivery-time"
"""The annotation that holds a message back until a given time (WD10 9; EARLY 4.2.1)."""

INT64_MAX: Final = 2**63 - 1


@mypyc_attr(acyclic=True)
@final
class Origin:
    """The sender of messages, and their key in a topic (DST-05): one object for many messages."""

    def __init__(self, publisher: str = "", key: str = "") -> None:
        self.publisher: Final = publisher
        self.key: Final = key


NOWHERE: Final = Origin()


@mypyc_attr(acyclic=True)
@final
class OptionalFields:
    """Fields that few messages have, and routing obeys. Other messages have None, to be smaller.

    `message_format` is that of the transfer; an `opaque` payload has no sections (see above).
    """

    def __init__(
        self,
        *,
        deliver_at_ms: i64 = AT_ONCE,
        group: str = "",
        closes_group: bool = False,
        large: LargeBody | None = None,
        message_format: i64 = 0,
        opaque: bool = False,
    ) -> None:
        self.deliver_at_ms: Final[i64] = deliver_at_ms
        self.group: Final = group
        self.closes_group: Final = closes_group
        self.large: Final = large
        self.message_format: Final[i64] = message_format
        self.opaque: Final = opaque


@mypyc_attr(acyclic=True)
@final
class Message:
    """One message, shared by all queues that hold it. Times are wall time in ms.

    It never changes, except for `holders`, the number of entries in memory that refer to it.

    `origin` has the container-id of its sender, and the key that its address has behind the topic
    (DST-05). The key matters until the message has been published: no store keeps it. `group` is
    its JMSXGroupID, empty for none. `size` are the bytes that count for limits, in memory or not;
    `encoded_size` are those in memory.
    """

    def __init__(
        self,
        *,
        encoded: bytes,
        durable: bool,
        priority: i64,
        ttl_ms: i64,
        arrived_ms: i64,
        expires_at_ms: i64,
        origin: Origin = NOWHERE,
        optional_fields: OptionalFields | None = None,
    ) -> None:
        self.encoded: Final = encoded
        self.durable: Final = durable
        self.holders: i32 = 0
        self.priority: Final[i64] = priority
        self.ttl_ms: Final[i64] = ttl_ms
        self.arrived_ms: Final[i64] = arrived_ms
        self.expires_at_ms: Final[i64] = expires_at_ms
        self.origin: Final = origin
        self.optional_fields: Final = optional_fields
        size = i64(len(encoded))
        self.encoded_size: Final[i64] = size
        if optional_fields is not None and optional_fields.large is not None:
            size += i64(optional_fields.large.size)
        self.size: Final[i64] = size

    @property
    def publisher(self) -> str:
        return self.origin.publisher

    @property
    def key(self) -> str:
        return self.origin.key

    @property
    def deliver_at_ms(self) -> i64:
        return AT_ONCE if self.optional_fields is None else self.optional_fields.deliver_at_ms

    @property
    def group(self) -> str:
        return "" if self.optional_fields is None else self.optional_fields.group

    @property
    def closes_group(self) -> bool:
        return self.optional_fields is not None and self.optional_fields.closes_group

    @property
    def large(self) -> LargeBody | None:
        return None if self.optional_fields is None else self.optional_fields.large

    @property
    def ttl_ends_ms(self) -> i64:
        """Wall time in ms at which the ttl of the header ends; NEVER if there is none, or 0."""
        return self.arrived_ms + self.ttl_ms if self.ttl_ms > 0 else NEVER

    @property
    def message_format(self) -> i64:
        return i64(0) if self.optional_fields is None else self.optional_fields.message_format

    @property
    def opaque(self) -> bool:
        return self.optional_fields is not None and self.optional_fields.opaque

    def subject(self) -> str:
        """Return the properties' subject, empty if there is none. Each call searches for it."""
        if self.opaque:
            return ""
        try:
            return split(self.encoded, 0, i64(len(self.encoded))).subject(self.encoded) or ""
        except Fault:
            return ""

    def header(self, delivery_count: i64, clock: Clock, *, acquired_before: bool = False) -> bytes:
        """Return the header section after `delivery_count` failed deliveries (RCV-01, PRD-04).

        `acquired_before`: a link has had the message already, though without failing.
        An opaque message has no header: the result is empty.
        """
        if self.optional_fields is not None and self.optional_fields.opaque:
            return b""
        if delivery_count == 0 and self.ttl_ms < 0 and not acquired_before:
            if self.durable:
                return DURABLE_HEADERS[self.priority]
            return PLAIN_HEADERS[self.priority]
        ttl: i64 = -1
        if self.ttl_ms >= 0:
            ttl = remaining_ttl(
                ttl_ms=self.ttl_ms, arrived_ms=self.arrived_ms, now_ms=clock.wall_ms()
            )
        return _header(
            durable=self.durable,
            priority=self.priority,
            ttl=ttl,
            delivery_count=delivery_count,
            first_acquirer=delivery_count == 0 and not acquired_before,
        )

    def annotations(self) -> Map:
        """Return the decoded message-annotations. LinkFault if the message is opaque."""
        if self.opaque:
            raise LinkFault(
                NOT_IMPLEMENTED,
                f"a message of format {int(self.message_format):#x} that is not made of sections"
                " has no annotations",
            )
        if self.encoded:
            end = i64(len(self.encoded))
            code, at = descriptor_at(self.encoded, 0, end)
            if code == MESSAGE_ANNOTATIONS:
                value, _ = take_value(self.encoded, at, end)
                assert isinstance(value, Map)
                return value
        return Map([])

    def annotated(self, changes: bytes) -> Message:
        """Return this message with `changes`, an encoded map, added to its annotations (3.4.5).

        LinkFault if they become larger than a message may have, or the message is opaque. Return
        this message itself if its own cannot be decoded: its consumer is not to blame for them.
        """
        added, _ = take_value(changes, 0, i64(len(changes)))
        assert isinstance(added, Map)
        try:
            own = self.annotations()
        except ConnectionFault:
            return self
        return Message(
            encoded=with_annotations(self.encoded, combined(own, added)),
            durable=self.durable,
            priority=self.priority,
            ttl_ms=self.ttl_ms,
            arrived_ms=self.arrived_ms,
            expires_at_ms=self.expires_at_ms,
            origin=self.origin,
            optional_fields=self.optional_fields,
        )

    def moved(self, encoded: bytes | None, *, expires: bool) -> Message:
        """Return this message for another node, where it is available at once.

        `encoded` are its new sections; None keeps the old ones. Unless it still `expires`, it is
        kept until it is consumed.
        """
        return Message(
            encoded=self.encoded if encoded is None else encoded,
            durable=self.durable,
            priority=self.priority,
            ttl_ms=self.ttl_ms if expires else -1,
            arrived_ms=self.arrived_ms,
            expires_at_ms=self.expires_at_ms if expires else NEVER,
            origin=self.origin,
            optional_fields=optional_fields_of(
                AT_ONCE,
                self.group,
                closes_group=self.closes_group,
                large=self.large,
                message_format=self.message_format,
                opaque=self.opaque,
            ),
        )


def with_annotations(encoded: bytes, annotations: Map) -> bytes:
    """Return an encoded message with `annotations`, if there are any, in place of its own.

    LinkFault if the sections before the body become larger than a message may have them: it could
    not be read again.
    """
    behind: i64 = 0
    end = i64(len(encoded))
    if encoded:
        code, at = descriptor_at(encoded, 0, end)
        if code == MESSAGE_ANNOTATIONS:
            behind = skip(encoded, at, end)
    if not annotations.pairs:
        return encoded[behind:]
    out = BytesWriter()
    put_descriptor(out, MESSAGE_ANNOTATIONS)
    put_value(out, annotations)
    if i64(len(out)) + bytes_before_body(encoded, behind) > SECTIONS_BEFORE_BODY_MAX:
        raise LinkFault(RESOURCE_LIMIT_EXCEEDED, "annotations take too many bytes")
    out.write(encoded[behind:])
    return out.getvalue()


def bytes_before_body(encoded: bytes, start: i64) -> i64:
    """Return how many bytes the sections from `start` on take, up to the body or footer."""
    at = start
    end = i64(len(encoded))
    while at < end:
        code, value = descriptor_at(encoded, at, end)
        if code >= DATA:
            break
        at = skip(encoded, value, end)
    return at - start


def optional_fields_of(
    deliver_at_ms: i64,
    group: str,
    *,
    closes_group: bool,
    large: LargeBody | None = None,
    message_format: i64 = 0,
    opaque: bool = False,
) -> OptionalFields | None:
    """Return the optional fields of a message, None if all have their defaults."""
    if (
        deliver_at_ms == AT_ONCE
        and not group
        and not closes_group
        and large is None
        and message_format == 0
    ):
        return None
    return OptionalFields(
        deliver_at_ms=deliver_at_ms,
        group=group,
        closes_group=closes_group,
        large=large,
        message_format=message_format,
        opaque=opaque,
    )


def optional_fields_in(
    sections: Sections,
    data: bytes,
    deliver_at_ms: i64,
    *,
    large: LargeBody | None = None,
    message_format: i64 = 0,
) -> OptionalFields | None:
    """Like `optional_fields_of`, with the group that the properties in `data` name."""
    group = ""
    closes_group = False
    if sections.has_group:
        closes_group = sections.closes_group(data)
        group = sections.group_id(data) or ""
    return optional_fields_of(
        deliver_at_ms,
        group,
        closes_group=closes_group,
        large=large,
        message_format=message_format,
    )


def opaque_message(
    payload: bytes,
    *,
    message_format: i64,
    origin: Origin = NOWHERE,
    large: LargeBody | None = None,
    arrived_ms: i64 = UNKNOWN,
) -> Message:
    """Return the message of a payload without sections; `large` has the rest of a large payload.

    Nothing of it can be read, so it is handled in the way that loses nothing: as a durable
    message of default priority that never expires.
    """
    return Message(
        encoded=payload,
        durable=True,
        priority=PRIORITY_DEFAULT,
        ttl_ms=-1,
        arrived_ms=arrived_ms,
        expires_at_ms=NEVER,
        origin=origin,
        optional_fields=OptionalFields(large=large, message_format=message_format, opaque=True),
    )


def read_message(
    sections: Sections,
    data: bytes,
    clock: Clock,
    *,
    origin: Origin = NOWHERE,
    large: LargeBody | None = None,
    arrived_ms: i64 = UNKNOWN,
    message_format: i64 = 0,
) -> Message:
    """Return the message that `sections` found in `data`, which lacks the body of a `large` one.

    If `arrived_ms` is UNKNOWN and the message can expire, it counts as arrived now.
    """
    expires_at_ms = NEVER
    if sections.ttl >= 0 or sections.absolute_expiry_time > 0:
        if arrived_ms == UNKNOWN:
            arrived_ms = clock.wall_ms()
        expires_at_ms = expires_at(
            ttl_ms=sections.ttl, absolute_ms=sections.absolute_expiry_time, arrived_ms=arrived_ms
        )
    optional_fields: OptionalFields | None = None
    if (
        sections.message_annotations >= 0
        or sections.has_group
        or large is not None
        or message_format != 0
    ):
        deliver_at_ms = delivery_time(sections.annotation(data, DELIVERY_TIME))
        optional_fields = optional_fields_in(
            sections, data, deliver_at_ms, large=large, message_format=message_format
        )
    return Message(
        encoded=data[sections.start_kept : sections.end],
        durable=sections.durable,
        priority=sections.priority,
        ttl_ms=sections.ttl,
        arrived_ms=arrived_ms,
        expires_at_ms=expires_at_ms,
        origin=origin,
        optional_fields=optional_fields,
    )


def delivery_time(annotation: object) -> i64:
    """Return the time that x-opt-delivery-time names: any integral type or timestamp (DLY-01).

    AT_ONCE without `annotation`. LinkFault if it names no time: to deliver such a message at once
    might be too early.
    """
    if annotation is None:
        return AT_ONCE
    if isinstance(annotation, (bool, Char)):
        raise LinkFault(INVALID_FIELD, "x-opt-delivery-time is not a number")
    value = annotation.value if isinstance(annotation, Integer) else annotation
    if not isinstance(value, int):
        raise LinkFault(INVALID_FIELD, "x-opt-delivery-time is not a number")
    # an ulong can exceed the range of a timestamp; a time before 1970 has passed
    return i64(max(AT_ONCE, min(value, INT64_MAX)))


def expires_at(*, ttl_ms: i64, absolute_ms: i64, arrived_ms: i64) -> i64:
    """Return a message's expiry on the wall clock: header.ttl or absolute-expiry-time, the earlier.

    Both are -1 if absent; JMS writes 0 for "never". NEVER if neither is given.
    """
    by_ttl = arrived_ms + ttl_ms if ttl_ms > 0 else NEVER
    by_clock = absolute_ms if absolute_ms > 0 else NEVER
    if by_ttl == NEVER or by_clock == NEVER:
        return by_ttl + by_clock
    return min(by_ttl, by_clock)


def remaining_ttl(*, ttl_ms: i64, arrived_ms: i64, now_ms: i64) -> i64:
    """Return the ttl to send: reduced by the time spent here, at least 1 ms. 0 stays "never"."""
    if ttl_ms == 0:
        return 0
    return max(1, ttl_ms - max(0, now_ms - arrived_ms))
