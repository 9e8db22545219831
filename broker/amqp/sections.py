"""The sections of an encoded message (core spec 3.2), found without decoding them.

A message is walked once: the sections must be in order, with nothing after the
body but a footer. Fields that routing always needs are read on the way; of the rest only
the position is recorded. The bare message is passed on byte for byte, and the content of
its values is left to the receiver.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64, u8

from broker.amqp.decode import (
    binary_at,
    descriptor_at,
    malformed,
    open_body,
    open_compound,
    skip,
    take_bool,
    take_uint,
    take_value,
    text_at,
    uint_at,
)
from broker.amqp.descriptors import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
)
from broker.amqp.encode import (
    BytesWriter,
    put_bool,
    put_descriptor,
    put_null,
    put_ubyte,
    put_uint,
)
from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, Fault, LinkFault
from broker.amqp.limits import (
    FIELD_VALUES_MAX,
    SECTIONS_BEFORE_BODY_MAX,
    SECTIONS_MAX,
    USER_ID_SIZE_MAX,
)

PRIORITY_DEFAULT: Final = 4
PRIORITY_MAX: Final = 9

PRIORITY_FIELD_MAX: Final = 0xFF
"""Maximum of the field priority, a ubyte; above PRIORITY_MAX it counts as that."""

HEADER_FIELDS: Final = 5
PROPERTIES_FIELDS: Final = 13

HEADER_NAMES: Final = ("durable", "priority", "ttl", "first-acquirer", "delivery-count")
PROPERTIES_NAMES: Final = (
    *("message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type"),
    *("content-encoding", "absolute-expiry-time", "creation-time", "group-id"),
    *("group-sequence", "reply-to-group-id"),
)
"""The fields of two sections, in the order of 3.2.1 and 3.2.4."""

# places of the fields of the properties section, 3.2.4
USER_ID: Final = 1
TO: Final = 2
SUBJECT: Final = 3
REPLY_TO: Final = 4
ABSOLUTE_EXPIRY_TIME: Final = 8
GROUP_ID: Final = 10
GROUP_SEQUENCE: Final = 11

GROUP_ENDS: Final[i64] = 0xFFFF_FFFF
"""The group-sequence that JMS, which reads it as an int, takes for -1."""


@final
class Sections:
    """The positions of the sections of one message, and the fields that routing always reads.

    To be reused from message to message. Positions are those of the data that was read,
    -1 for a missing section: of `body` and `footer` the first byte, of the others the first byte
    after the descriptor. `has_user_id`: properties name a user. `has_group`: properties extend to
    group-id or beyond.
    """

    def __init__(self) -> None:
        # the first byte after header and delivery-annotations: from here on all is kept
        self.start_kept: i64 = 0
        self.end: i64 = 0
        self.durable: bool = False
        self.priority: i64 = PRIORITY_DEFAULT
        self.ttl: i64 = -1
        self.absolute_expiry_time: i64 = -1
        self.header: i64 = -1
        self.message_annotations: i64 = -1
        self.properties: i64 = -1
        self.has_user_id = False
        self.has_group = False
        self.application_properties: i64 = -1
        self.body: i64 = -1
        self.footer: i64 = -1

    def read(self, data: bytes, start: i64, end: i64) -> None:
        """Read the message in `data[start:end]`. Raise LinkFault if it is malformed."""
        self.start_kept = start
        self.end = end
        self.durable = False
        self.priority = PRIORITY_DEFAULT
        self.ttl = -1
        self.absolute_expiry_time = -1
        self.header = -1
        self.message_annotations = -1
        self.properties = -1
        self.has_user_id = False
        self.has_group = False
        self.application_properties = -1
        self.body = -1
        self.footer = -1
        try:
            at = self._read_before_body(data, start, end)
            if at - start > SECTIONS_BEFORE_BODY_MAX:
                raise LinkFault(
                    RESOURCE_LIMIT_EXCEEDED,
                    f"more than {SECTIONS_BEFORE_BODY_MAX} bytes in front of the body",
                )
            if at < end:
                self._read_body(data, at, end)
        except Fault as fault:
            raise LinkFault(fault.condition, f"message: {fault.description}") from None

    def _read_before_body(self, data: bytes, at: i64, end: i64) -> i64:
        """Read the sections up to body or footer; return its position, or the end."""
        before: i64 = HEADER - 1
        while at < end:
            code, value = _section_at(data, at, end)
            if code >= DATA:
                break
            # codes ascend in the order of sections, so this finds duplicates and unknown ones too
            if code <= before:
                raise malformed("a section that is unknown or out of order")
            before = code
            if code == HEADER:
                self.header = value
                at = self._read_header(data, value, end)
                self.start_kept = at
            elif code == PROPERTIES:
                self.properties = value
                at = self._read_properties(data, value, end)
            else:
                at = _behind_map(data, value, end)
                if code == MESSAGE_ANNOTATIONS:
                    self.message_annotations = value
                elif code == APPLICATION_PROPERTIES:
                    self.application_properties = value
                else:  # delivery-annotations
                    self.start_kept = at
        return at

    def _read_header(self, data: bytes, at: i64, end: i64) -> i64:
        """Read durable, priority and ttl; return the end of the header.

        first-acquirer and delivery-count are skipped: the broker sets them, not the sender.
        """
        count, at, end = _open_list(data, at, end)
        if count > HEADER_FIELDS:
            raise malformed("header has more than its fields")
        if count == 0:
            return end
        field: i64 = 0
        try:
            durable, at = take_bool(data, at)
            self.durable = durable > 0
            if count > 1:
                field = 1
                priority, at = take_uint(data, at)
                if priority >= 0:
                    self.priority = priority if priority <= PRIORITY_MAX else _cut_off(priority)
            if count > 2:
                field = 2
                self.ttl, at = take_uint(data, at)
        except IndexError:
            at = end + 1
        except Fault as fault:
            raise malformed(in_field("header", HEADER_NAMES[field], fault)) from None
        if at > end:
            raise malformed("header: a field is larger than what holds it")
        return end

    def _read_properties(self, data: bytes, at: i64, end: i64) -> i64:
        count, at, end = _open_list(data, at, end)
        if count > PROPERTIES_FIELDS:
            raise malformed("properties has more than its fields")
        field: i64 = 0
        if count > USER_ID:
            at = skip(data, at, end)
            field = USER_ID
            if at >= end:
                raise malformed("properties: a field is larger than what holds it")
            self.has_user_id = data[at] != 0x40
        if count > ABSOLUTE_EXPIRY_TIME:
            while field < ABSOLUTE_EXPIRY_TIME:
                at = skip(data, at, end)
                field += 1
            skip(data, at, end)
            code = data[at]
            if code == 0x83:
                time = read_i64_be(data, at + 1)
                self.absolute_expiry_time = time if time > 0 else i64(0)
            elif code != 0x40:
                raise malformed("properties: absolute-expiry-time: a timestamp was expected")
            # creation-time is the last field that nearly every sender sets
            self.has_group = count > GROUP_ID
        return end

    def _read_body(self, data: bytes, at: i64, end: i64) -> None:
        """Read data sections, sequence sections or one value, then perhaps a footer (3.2)."""
        kind: i64 = -1
        sections: i64 = 0
        while at < end:
            code, value = _section_at(data, at, end)
            if code == FOOTER:
                self.footer = at
                if _behind_map(data, value, end) != end:
                    raise malformed("a section behind the footer")
                return
            if kind < 0:
                self.body = at
                kind = code
            elif code != kind or code == AMQP_VALUE:
                raise malformed("a section that does not belong to the body")
            sections += 1
            if sections > SECTIONS_MAX:
                raise LinkFault(
                    RESOURCE_LIMIT_EXCEEDED, f"more than {SECTIONS_MAX} sections in the body"
                )
            at = _behind_body(data, value, end, code)

    def user_id(self, data: bytes) -> bytes | None:
        """Return the user-id, None if it is absent; raise LinkFault if it is not allowed."""
        at = property_at(data, self.properties, self.end, USER_ID)
        if at < 0:
            return None
        try:
            value = binary_at(data, at, self.end)
        except Fault as fault:
            raise _wrong_property(USER_ID, fault) from None
        if value is not None and len(value) > USER_ID_SIZE_MAX:
            raise LinkFault(
                RESOURCE_LIMIT_EXCEEDED, f"a user-id of more than {USER_ID_SIZE_MAX} bytes"
            )
        return value

    def to(self, data: bytes) -> str | None:
        return self.text(data, TO)

    def subject(self, data: bytes) -> str | None:
        return self.text(data, SUBJECT)

    def group_id(self, data: bytes) -> str | None:
        return self.text(data, GROUP_ID)

    def closes_group(self, data: bytes) -> bool:
        """Return whether group-sequence ends the group: JMSXGroupSeq -1 (RCV-07).

        Raise LinkFault if it is no uint.
        """
        at = property_at(data, self.properties, self.end, GROUP_SEQUENCE)
        if at < 0:
            return False
        try:
            return uint_at(data, at, 0) == GROUP_ENDS
        except Fault as fault:
            raise _wrong_property(GROUP_SEQUENCE, fault) from None

    def text(self, data: bytes, field: i64) -> str | None:
        """Return a string of the properties section, None if it is absent.

        Raise LinkFault if it is something else.
        """
        at = property_at(data, self.properties, self.end, field)
        if at < 0:
            return None
        try:
            return text_at(data, at, self.end)
        except Fault as fault:
            raise _wrong_property(field, fault) from None

    def annotation(self, data: bytes, key: bytes) -> object:
        """Return the message annotation of `key` (a symbol), None if there is none.

        Raise LinkFault if the annotations are malformed.
        """
        at = annotation_at(data, self.message_annotations, self.end, key)
        if at < 0:
            return None
        try:
            value, _ = take_value(data, at, self.end, FIELD_VALUES_MAX)
        except Fault as fault:
            raise LinkFault(fault.condition, f"annotations: {fault.description}") from None
        return value


def in_field(section: str, field: str, fault: Fault) -> str:
    """Return the text of an error that names the field of a section that cannot be read."""
    return f"{section}: {field}: {fault.description}"


def _wrong_property(field: i64, fault: Fault) -> LinkFault:
    text = in_field("properties", PROPERTIES_NAMES[field], fault)
    return LinkFault(fault.condition, text)


def _cut_off(priority: i64) -> i64:
    """Return PRIORITY_MAX for a larger priority; ConnectionFault if it does not fit the field."""
    if priority > PRIORITY_FIELD_MAX:
        raise malformed(f"{int(priority)} does not fit 8 bits")
    return PRIORITY_MAX


def split(data: bytes, start: i64, end: i64) -> Sections:
    """Return the sections of the message in `data[start:end]`; LinkFault if it is malformed."""
    sections = Sections()
    sections.read(data, start, end)
    return sections


def property_at(data: bytes, properties: i64, end: i64, field: i64) -> i64:
    """Return the position of a field of the properties section that starts at `properties`.

    -1 if the section (its position is -1) or the field is absent, or the field is null. Raise
    LinkFault if the section is malformed.
    """
    if properties < 0:
        return -1
    try:
        count, at, behind = _open_list(data, properties, end)
        if field >= count:
            return -1
        while field > 0:
            at = skip(data, at, behind)
            field -= 1
        skip(data, at, behind)
    except Fault as fault:
        raise LinkFault(fault.condition, f"properties: {fault.description}") from None
    return at if data[at] != 0x40 else i64(-1)


def annotation_at(data: bytes, annotations: i64, end: i64, key: bytes) -> i64:
    """Return the position of the value of `key` in the map at `annotations`; -1 for none.

    Raise LinkFault if the map is malformed.
    """
    if annotations < 0:
        return -1
    try:
        count, at, behind = open_compound(data, annotations, end)
        while count > 0:
            value = skip(data, at, behind)
            if _is_symbol(data, at, value, key):
                skip(data, value, behind)
                return value
            at = skip(data, value, behind)
            count -= 2
    except Fault as fault:
        raise LinkFault(fault.condition, f"annotations: {fault.description}") from None
    return -1


def _is_symbol(data: bytes, at: i64, behind: i64, text: bytes) -> bool:
    code = data[at]
    if code == 0xA3:
        first = at + 2
    elif code == 0xB3:
        first = at + 5
    else:
        return False
    # most keys differ in length: no slice for them
    return behind - first == i64(len(text)) and data[first:behind] == text


def _section_at(data: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """Return the descriptor of the section at `at`, and the position of its value."""
    if at + 3 < end and data[at] == 0 and data[at + 1] == 0x53:
        return i64(data[at + 2]), at + 3
    code, value = descriptor_at(data, at, end)
    if value >= end:
        raise malformed("a section without content")
    return code, value


def _open_list(data: bytes, at: i64, end: i64) -> tuple[i64, i64, i64]:
    """Return count, first field and end of the list that a section must be."""
    code = i64(data[at])
    if code == 0xC0 or code == 0xD0:
        return open_body(data, at + 1, end, code)
    if code == 0x45:
        return 0, at + 1, at + 1
    raise malformed("a section that is not a list")


def _behind_map(data: bytes, at: i64, end: i64) -> i64:
    code = i64(data[at])
    if code == 0xC1 or code == 0xD1:
        return skip(data, at, end)
    raise malformed("a section that is not a map")


def _behind_body(data: bytes, at: i64, end: i64, kind: i64) -> i64:
    """Return the position after one section of the body."""
    code = i64(data[at])
    if kind == DATA:
        if code != 0xA0 and code != 0xB0:
            raise malformed("a data section that is not binary")
    elif kind == AMQP_SEQUENCE:
        if code != 0x45 and code != 0xC0 and code != 0xD0:
            raise malformed("a sequence section that is not a list")
    elif kind != AMQP_VALUE:
        raise malformed("a section that is unknown")
    return skip(data, at, end)


def put_header(
    out: BytesWriter,
    *,
    durable: bool,
    priority: i64,
    ttl: i64,
    first_acquirer: bool,
    delivery_count: i64,
) -> None:
    """Write the header section; `ttl` is in ms, -1 for none. Trailing defaults are left out."""
    put_descriptor(out, HEADER)
    if delivery_count > 0:
        count: i64 = 5
    elif first_acquirer:
        count = 4
    elif ttl >= 0:
        count = 3
    elif priority != PRIORITY_DEFAULT:
        count = 2
    elif durable:
        count = 1
    else:
        out.append(0x45)
        return
    start = len(out)
    out.append(0xC0)
    out.append(0)
    out.append(int(count))
    put_bool(out, durable)
    if count > 1:
        put_ubyte(out, priority)
    if count > 2:
        if ttl >= 0:
            put_uint(out, ttl)
        else:
            put_null(out)
    if count > 3:
        put_bool(out, first_acquirer)
    if count > 4:
        put_uint(out, delivery_count)
    # 22 bytes at most: the narrow form is always enough
    out[start + 1] = u8(len(out) - start - 2)
