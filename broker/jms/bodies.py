"""The bodies of the six kinds of JMS messages, and the AMQP sections that hold them.

WD10 3.2.4 and 3.3.4, EARLY 4.2.4 and 4.3.7. Clauses missing from the text of WD10 (3.2.4.1 to
3.2.4.5) are taken from EARLY.

Values of JMS types are represented as in the codec: bool, Byte, Short, Int, int (a long), Float,
float (a double), Char, str, bytes and None.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.decode import descriptor_at, take_value
from broker.amqp.descriptors import AMQP_SEQUENCE, AMQP_VALUE, DATA
from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.limits import BODY_VALUES_MAX
from broker.amqp.types import Array, Byte, Char, Described, Float, Int, Map, Short
from broker.jms.content_type import (
    JAVA_OBJECT,
    OCTET_STREAM,
    charset_of,
    decoded,
    is_java_object,
    is_text,
)
from broker.jms.destinations import whole_number
from broker.jms.errors import MappingError
from broker.jms.profile import Profile

JAVA_NULL: Final = b"\xac\xed\x00\x05p"
"""The Java value null, serialized by Java."""


class MessageKind(Enum):
    """The six kinds of JMS messages, in the order of their numbers in x-opt-jms-msg-type."""

    MESSAGE = "message"
    OBJECT = "object"
    MAP = "map"
    BYTES = "bytes"
    STREAM = "stream"
    TEXT = "text"


KINDS: Final = tuple(MessageKind)
"""The kinds, indexed by their number in x-opt-jms-msg-type."""


class BodySection(Enum):
    """The type of AMQP section that holds a body."""

    NONE = "none"
    DATA = "data"
    VALUE = "amqp-value"
    SEQUENCE = "amqp-sequence"


@mypyc_attr(acyclic=True)
class Body:
    """The body of a message.

    `section` is the type of section in which it is sent; `content_type` is the content-type that
    its kind requires, None if it requires none.
    """

    def __init__(
        self,
        kind: MessageKind,
        content: object,
        *,
        section: BodySection = BodySection.VALUE,
        content_type: str | None = None,
    ) -> None:
        self.kind: Final = kind
        self.content: Final = content
        self.section: Final = section
        self.content_type: Final = content_type

    @abstractmethod
    def write(self, out: BytesWriter) -> None:
        """Write the sections of the body. MappingError if it holds a value that has no JMS type."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.content!r})"


@mypyc_attr(acyclic=True)
@final
class NoBody(Body):
    """The empty body of a Message (WD10 3.2.4.7)."""

    def __init__(self) -> None:
        super().__init__(MessageKind.MESSAGE, None)

    def write(self, out: BytesWriter) -> None:
        _put_section(out, AMQP_VALUE, None)


NO_BODY: Final = NoBody()


@mypyc_attr(acyclic=True)
@final
class TextBody(Body):
    """The body of a TextMessage (EARLY 4.2.4.3)."""

    def __init__(self, text: str | None) -> None:
        super().__init__(MessageKind.TEXT, text)
        self.text: Final = text

    def write(self, out: BytesWriter) -> None:
        _put_section(out, AMQP_VALUE, self.text)


@mypyc_attr(acyclic=True)
@final
class BytesBody(Body):
    """The body of a BytesMessage (EARLY 4.2.4.2)."""

    def __init__(self, data: bytes) -> None:
        super().__init__(
            MessageKind.BYTES, data, section=BodySection.DATA, content_type=OCTET_STREAM
        )
        self.data: Final = data

    def write(self, out: BytesWriter) -> None:
        _put_section(out, DATA, self.data)


@mypyc_attr(acyclic=True)
@final
class MapBody(Body):
    """The body of a MapMessage (EARLY 4.2.4.4)."""

    def __init__(self, entries: dict[str, object]) -> None:
        super().__init__(MessageKind.MAP, entries)
        self.entries: Final = entries

    def write(self, out: BytesWriter) -> None:
        names: Iterable[object] = self.entries  # compiled code would refuse others by itself
        for name in names:
            _require_name(name)
        for value in self.entries.values():
            _require_jms_value(value)
        _put_section(out, AMQP_VALUE, self.entries)


@mypyc_attr(acyclic=True)
@final
class StreamBody(Body):
    """The body of a StreamMessage (EARLY 4.2.4.5): written as one list, also read as a sequence."""

    def __init__(self, items: list[object]) -> None:
        super().__init__(MessageKind.STREAM, items)
        self.items: Final = items

    def write(self, out: BytesWriter) -> None:
        for value in self.items:
            _require_jms_value(value)
        _put_section(out, AMQP_VALUE, self.items)


@mypyc_attr(acyclic=True)
@final
class SerializedBody(Body):
    """The body of an ObjectMessage whose object Java has serialized (WD10 3.2.4.6)."""

    def __init__(self, serialized: bytes = JAVA_NULL) -> None:
        super().__init__(
            MessageKind.OBJECT, serialized, section=BodySection.DATA, content_type=JAVA_OBJECT
        )
        self.serialized: Final = serialized

    def write(self, out: BytesWriter) -> None:
        _put_section(out, DATA, self.serialized)


@mypyc_attr(acyclic=True)
@final
class ObjectBody(Body):
    """The body of an ObjectMessage whose object is a value of any AMQP type (WD10 3.2.4.6)."""

    def __init__(self, value: object) -> None:
        super().__init__(MessageKind.OBJECT, value)
        self.value: Final = value

    def write(self, out: BytesWriter) -> None:
        _put_section(out, AMQP_VALUE, self.value)


@mypyc_attr(acyclic=True, free_list_len=1)
@final
class Content:
    """A body as AMQP encodes it: all its data or sequence sections joined, or its one value."""

    def __init__(self, section: BodySection, value: object, content_type: str | None) -> None:
        self.section: Final = section
        self.value: Final = value
        self.content_type: Final = content_type


def read_content(data: bytes, at: i64, end: i64, content_type: str | None) -> Content:
    """Return the body that starts at `at`, -1 for none; the message must be well-formed."""
    if at < 0:
        return Content(BodySection.NONE, None, content_type)
    code, first = descriptor_at(data, at, end)
    if code == AMQP_VALUE:
        value, _ = take_value(data, first, end, BODY_VALUES_MAX)
        return Content(BodySection.VALUE, value, content_type)
    if code == AMQP_SEQUENCE:
        return Content(BodySection.SEQUENCE, _joined_lists(data, at, end), content_type)
    return Content(BodySection.DATA, _joined_bytes(data, at, end), content_type)


def _joined_bytes(data: bytes, at: i64, end: i64) -> bytes:
    parts: list[bytes] = []
    while at < end:
        _, at = descriptor_at(data, at, end)
        part, at = take_value(data, at, end, 1)
        assert isinstance(part, bytes)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _joined_lists(data: bytes, at: i64, end: i64) -> list[object]:
    items: list[object] = []
    left: i64 = BODY_VALUES_MAX
    while at < end:
        _, at = descriptor_at(data, at, end)
        part, at = take_value(data, at, end, left)
        assert isinstance(part, list)
        items += part
        if at < end:
            left -= _values_in(part)
    return items


def _values_in(value: object) -> i64:
    """Return the number of values in `value`, itself included, as `take_value` counts them."""
    if isinstance(value, Described):
        return _values_in(value.value)
    count: i64 = 1
    if isinstance(value, list):
        for item in value:
            count += _values_in(item)
    elif isinstance(value, Map):
        for key, held in value.pairs:
            count += _values_in(key) + _values_in(held)
    elif isinstance(value, Array):
        count += _values_in(value.values) - 1
    return count


def annotated_kind(annotation: object) -> MessageKind | None:
    """Return the kind that x-opt-jms-msg-type names, None if it is absent.

    Any integral type is accepted. Raise MappingError for any other value.
    """
    if annotation is None:
        return None
    number = whole_number(annotation)
    if number is None or not 0 <= number < len(KINDS):
        raise MappingError(f"x-opt-jms-msg-type is {annotation!r:.100}, and no kind of message")
    return KINDS[number]


def number_of_kind(kind: MessageKind) -> int:
    """Return the number of `kind` in x-opt-jms-msg-type."""
    return KINDS.index(kind)


def kind_of(content: Content, profile: Profile) -> MessageKind:
    """Return the kind of a message without x-opt-jms-msg-type (WD10 3.3.4.2, EARLY 4.3.7.2).

    A data section is text if its type is in WD10's table of textual types, in EARLY only if it is
    text/plain. A message without a body follows EARLY's rules in both profiles: WD10 has none.
    """
    if content.section is BodySection.SEQUENCE:
        return MessageKind.OBJECT
    if content.section is BodySection.VALUE:
        if content.value is None or isinstance(content.value, str):
            return MessageKind.TEXT
        return MessageKind.BYTES if isinstance(content.value, bytes) else MessageKind.OBJECT
    if is_java_object(content.content_type):
        return MessageKind.OBJECT
    if is_text(content.content_type, profile) and charset_of(content.content_type) is not None:
        return MessageKind.TEXT
    return MessageKind.BYTES


def body_of(kind: MessageKind, content: Content) -> Body:
    """Return the body of a message of that kind; MappingError if `content` does not fit it."""
    if kind is MessageKind.TEXT:
        return _text_body(content)
    if kind is MessageKind.BYTES:
        return _bytes_body(content)
    if kind is MessageKind.OBJECT:
        return _object_body(content)
    if kind is MessageKind.MAP:
        return _map_body(content)
    if kind is MessageKind.STREAM:
        return _stream_body(content)
    return NoBody()


def _text_body(content: Content) -> Body:
    value = content.value
    if value is None or isinstance(value, str):
        return TextBody(value)
    if content.section is BodySection.DATA and isinstance(value, bytes):
        charset = charset_of(content.content_type)
        if charset is None:
            raise MappingError(f"the charset in {content.content_type!r:.100} is unknown")
        try:
            return TextBody(decoded(value, charset))
        except UnicodeDecodeError as error:
            raise MappingError(f"the text is not {charset}") from error
    raise _mismatch(MessageKind.TEXT, content)


def _bytes_body(content: Content) -> Body:
    value = content.value
    if value is None:
        return BytesBody(b"")
    if isinstance(value, bytes):
        return BytesBody(value)
    raise _mismatch(MessageKind.BYTES, content)


def _object_body(content: Content) -> Body:
    value = content.value
    if content.section is BodySection.DATA and isinstance(value, bytes):
        return SerializedBody(value or JAVA_NULL)
    if content.section is BodySection.NONE and is_java_object(content.content_type):
        return SerializedBody()
    return ObjectBody(value)


def _map_body(content: Content) -> Body:
    value = content.value
    entries: dict[str, object] = {}
    if value is None:
        return MapBody(entries)
    if not isinstance(value, Map):
        raise _mismatch(MessageKind.MAP, content)
    for key, held in value.pairs:
        entries[_require_name(key)] = held
    return MapBody(entries)


def _stream_body(content: Content) -> Body:
    value = content.value
    if value is None:
        return StreamBody([])
    if isinstance(value, list):
        return StreamBody(value)
    raise _mismatch(MessageKind.STREAM, content)


def _mismatch(kind: MessageKind, content: Content) -> MappingError:
    held = type(content.value).__name__
    return MappingError(f"a {kind.value} message cannot hold {content.section.value} with {held}")


def _put_section(out: BytesWriter, descriptor: i64, value: object) -> None:
    put_descriptor(out, descriptor)
    put_value(out, value)


def _require_name(key: object) -> str:
    if isinstance(key, str):
        return key
    raise MappingError(f"a name in a MapMessage is a string, not {key!r:.100}")


def _require_jms_value(value: object) -> None:
    if value is not None and not isinstance(
        value, (str, bool, int, float, bytes, Int, Short, Byte, Char, Float)
    ):
        raise MappingError(f"JMS has no type for {value!r:.100}")
