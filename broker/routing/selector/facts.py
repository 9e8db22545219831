"""The values of a message that selectors ask for, read from its bytes on demand.

Values are those of JMS: None (null, or absent), bool, int (exact), float (approximate) and str;
`OTHER` stands for a value of a type that JMS does not have.
"""

from __future__ import annotations

import uuid
from typing import Final, final

from mypy_extensions import i64

from broker.amqp.decode import open_compound, skip, take_value
from broker.amqp.errors import Fault
from broker.amqp.sections import Sections, property_at
from broker.amqp.types import Char, Float, Integer, Symbol
from broker.jms.headers import signed_sequence
from broker.jms.ids import correlation_id_text, message_id_text
from broker.message import Message

STEPS_MAX: Final[i64] = 100_000
"""Maximum steps for one selector on one message: what LIKE searches, properties passed over.

A step takes 0.1 µs at most, so all of them take 10 ms (compiled). Beyond them the result is
unknown, and the message is not selected.
"""

BYTES_PER_STEP: Final[i64] = 64
"""Bytes of a value whose decoding is one step."""

ANNOTATIONS_PER_STEP: Final[i64] = 4
"""Bytes of annotations that are one step: so long is the shortest annotation."""

# positions of the fields in the properties section, core 3.2.4
MESSAGE_ID: Final = 0
USER_ID: Final = 1
SUBJECT: Final = 3
CORRELATION_ID: Final = 5
CREATION_TIME: Final = 9
GROUP_ID: Final = 10
GROUP_SEQUENCE: Final = 11
REPLY_TO_GROUP_ID: Final = 12

JMS_TYPE: Final = b"x-opt-jms-type"
"""The annotation that carries JMSType in the profile EARLY (MAP-03)."""

PERSISTENT: Final = "PERSISTENT"
NON_PERSISTENT: Final = "NON_PERSISTENT"


@final
class Other:
    """A value that is present, and equal to no other."""


OTHER: Final = Other()


@final
class Facts:
    """One message as selectors see it.

    Its sections and application properties, once read, are kept for further selectors.
    `delivery_count` is the number of its deliveries that have failed. `steps` are those of the
    latest selector, which may take up to `steps_max`.
    """

    def __init__(self, message: Message, delivery_count: i64 = 0) -> None:
        self.message: Final = message
        self.delivery_count: Final[i64] = delivery_count
        self.steps: i64 = 0
        self.steps_max: i64 = STEPS_MAX
        self._sections: Sections | None = None
        self._known: dict[str, object] | None = None
        self._annotated_type: object = OTHER

    def begin(self) -> None:
        """Reset the steps: another selector begins."""
        self.steps = 0

    def spend(self, steps: i64) -> bool:
        """Count `steps` of work. Return False once they exceed `steps_max`."""
        self.steps += steps
        return self.steps <= self.steps_max

    def left(self) -> i64:
        """Return the steps that are left."""
        return max(self.steps_max - self.steps, 0)

    def give_up(self) -> None:
        """Spend more than is left: what comes next would take too long."""
        self.steps = max(self.steps, self.steps_max + 1)

    def is_overspent(self) -> bool:
        """Return whether the selector took more steps than `steps_max`."""
        return self.steps > self.steps_max

    # -- the header and the properties section

    def delivery_mode(self) -> str:
        return PERSISTENT if self.message.durable else NON_PERSISTENT

    def message_id(self) -> object:
        value = self._property(MESSAGE_ID)
        text = message_id_text(value)
        return scalar(value) if text is None else text

    def message_id_value(self) -> object:
        """Return the AMQP value of the message-id, None if there is none, OTHER if unreadable."""
        return self._property(MESSAGE_ID)

    def correlation_id(self) -> object:
        value = self._property(CORRELATION_ID)
        text = correlation_id_text(value)
        return scalar(value) if text is None else text

    def jms_type(self) -> object:
        """Return JMSType: the subject, or else its annotation if that is a string (MAP-03)."""
        subject = self._property(SUBJECT)
        if subject is not None:
            return scalar(subject)
        # searched for once: there may be many annotations
        if self._annotated_type is OTHER:
            self._annotated_type = self._annotated_text(JMS_TYPE)
        return self._annotated_type

    def creation_time(self) -> object:
        """Return JMSTimestamp, 0 if the message has none (WD10 3.3.2)."""
        value = self._property(CREATION_TIME)
        return 0 if value is None else scalar(value)

    def reply_to_group_id(self) -> object:
        return scalar(self._property(REPLY_TO_GROUP_ID))

    def group_id(self) -> object:
        return scalar(self._property(GROUP_ID))

    def group_sequence(self) -> object:
        """Return the sequence as a Java int, negative from 2^31 on (serial numbers, 3.2.4)."""
        value = scalar(self._property(GROUP_SEQUENCE))
        return signed_sequence(value) if isinstance(value, int) else value

    def user_id(self) -> object:
        value = self._property(USER_ID)
        if not isinstance(value, bytes):
            return scalar(value)
        try:
            return value.decode()
        except UnicodeDecodeError:
            return OTHER

    def _property(self, field: i64) -> object:
        if self.is_overspent():
            return OTHER
        sections = self._found()
        data = self.message.encoded
        try:
            at = property_at(data, sections.properties, sections.end, field)
            if at < 0:
                return None
            value, behind = take_value(data, at, sections.end, 1)
        except Fault:
            return OTHER
        self.steps += (behind - at) // BYTES_PER_STEP
        return value

    def _found(self) -> Sections:
        found = self._sections
        if found is None:
            found = Sections()
            encoded = b"" if self.message.opaque else self.message.encoded
            try:
                found.read(encoded, 0, i64(len(encoded)))
            except Fault:
                found.read(b"", 0, 0)
            self._sections = found
        return found

    # -- application properties

    def application_property(self, name: str, key: bytes) -> object:
        """Return the application property `name`, encoded as `key`: None if absent.

        OTHER if it cannot be read.
        """
        known = self._known
        if known is None:
            known = self._known = {}
        elif name in known:
            return known[name]
        try:
            value = self._look_up(key)
        except Fault:
            value = OTHER
        if not self.is_overspent():
            known[name] = value
        return value

    def application_value(self, key: bytes) -> object:
        """Return the AMQP value of the application property of that encoded name; None if absent.

        Raise Fault if it cannot be read.
        """
        at = self._application_property_at(key)
        if at < 0:
            return None
        value, behind = take_value(self.message.encoded, at, self._found().end, 1)
        self.steps += (behind - at) // BYTES_PER_STEP
        return value

    def annotation(self, key: bytes) -> object:
        """Return the AMQP value of the message annotation of that name; None if absent.

        Raise Fault if it cannot be read.
        """
        return self._found().annotation(self.message.encoded, key)

    def _annotated_text(self, key: bytes) -> str | None:
        """Return the string with which a message is annotated, None for any other value."""
        sections = self._found()
        at = sections.message_annotations
        try:
            if at >= 0:
                behind = skip(self.message.encoded, at, sections.end)
                self.steps += (behind - at) // ANNOTATIONS_PER_STEP
            value = self.annotation(key)
        except Fault:
            return None
        return value if isinstance(value, str) else None

    def _look_up(self, key: bytes) -> object:
        return scalar(self.application_value(key))

    def _application_property_at(self, key: bytes) -> i64:
        """Return the position of a property's value; -1 if absent, or the search takes too long."""
        sections = self._found()
        if sections.application_properties < 0:
            return -1
        data = self.message.encoded
        count, at, behind = open_compound(data, sections.application_properties, sections.end)
        size = i64(len(key))
        while count > 1:
            code = i64(data[at])
            value = skip(data, at, behind)
            # most names differ in length, and so need no slice
            first = at + (2 if code == 0xA1 else 5)
            is_string = code == 0xA1 or code == 0xB1
            if is_string and value - first == size and data[first:value] == key:
                return value
            if not self.spend(1):
                return -1
            at = skip(data, value, behind)
            count -= 2
        return -1


def scalar(value: object) -> object:
    """Return the JMS value of an AMQP value; OTHER if JMS does not have its type."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Char):
        return chr(value.value)
    if isinstance(value, Integer):
        return value.value
    if isinstance(value, Float):
        return value.value
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, uuid.UUID):
        return str(value)
    return OTHER
