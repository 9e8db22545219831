"""The six kinds of JMS messages, row for row as in the specifications.

How they are sent: EARLY 4.2.4, which WD10 3.2.4.1 to 5 are taken from, and WD10 3.2.4.6 and 7. How
they are recognized: WD10 3.3.4, EARLY 4.3.7.
"""

from __future__ import annotations

import re
import uuid
from typing import Final, cast

import pytest

from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.errors import Fault
from broker.amqp.limits import BODY_VALUES_MAX
from broker.amqp.types import (
    Array,
    Byte,
    Char,
    Described,
    Float,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
)
from broker.jms import (
    Body,
    BodySection,
    BytesBody,
    MapBody,
    MappingError,
    MessageKind,
    NoBody,
    ObjectBody,
    Profile,
    SerializedBody,
    StreamBody,
    TextBody,
)
from broker.jms.bodies import (
    JAVA_NULL,
    Content,
    annotated_kind,
    body_of,
    kind_of,
    number_of_kind,
    read_content,
)
from tests.support.jms import DATA, FOOTER, SEQUENCE, VALUE, joined, sections_of

OCTET_STREAM: Final = "application/octet-stream"
JAVA: Final = "application/x-java-serialized-object"

MESSAGE: Final = MessageKind.MESSAGE
OBJECT: Final = MessageKind.OBJECT
MAP: Final = MessageKind.MAP
BYTES: Final = MessageKind.BYTES
STREAM: Final = MessageKind.STREAM
TEXT: Final = MessageKind.TEXT

NUMBERS: Final = [(MESSAGE, 0), (OBJECT, 1), (MAP, 2), (BYTES, 3), (STREAM, 4), (TEXT, 5)]

ALL_VALUES: Final[list[object]] = [
    *(None, True, False, Byte(-128), Short(-1), Int(2**31 - 1), -(2**63), Float(1.5), 2.5),
    *(Char(0xE9), "é", "", b"\x00\xff", b""),
]
"""A value of each type that JMS has."""


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(("kind", "number"), NUMBERS)
def test_each_kind_has_its_number(kind: MessageKind, number: int) -> None:
    assert number_of_kind(kind) == number
    assert annotated_kind(Byte(number)) is kind


@pytest.mark.requirement("MAP-07")
def test_any_integral_type_names_a_kind_and_nothing_else_does() -> None:
    assert annotated_kind(UInt(5)) is annotated_kind(5) is annotated_kind(ULong(5)) is TEXT
    assert annotated_kind(None) is None
    for annotation in (Byte(6), Byte(-1), "5", True, ULong(2**64 - 1)):
        with pytest.raises(MappingError, match="x-opt-jms-msg-type"):
            annotated_kind(annotation)


ENTRIES: Final = {f"name {at}": value for at, value in enumerate(ALL_VALUES)}

SENT: Final = [
    pytest.param(NoBody(), VALUE, None, None, id="Message: null"),
    pytest.param(TextBody("text"), VALUE, "text", None, id="TextMessage: a string"),
    pytest.param(TextBody(""), VALUE, "", None, id="TextMessage: an empty string"),
    pytest.param(TextBody(None), VALUE, None, None, id="TextMessage: null"),
    pytest.param(BytesBody(b"\x00\xff"), DATA, b"\x00\xff", OCTET_STREAM, id="BytesMessage"),
    pytest.param(BytesBody(b""), DATA, b"", OCTET_STREAM, id="BytesMessage: empty"),
    pytest.param(MapBody(ENTRIES), VALUE, Map(list(ENTRIES.items())), None, id="MapMessage"),
    pytest.param(MapBody({}), VALUE, Map([]), None, id="MapMessage: empty"),
    pytest.param(StreamBody(ALL_VALUES), VALUE, ALL_VALUES, None, id="StreamMessage"),
    pytest.param(StreamBody([]), VALUE, [], None, id="StreamMessage: empty"),
    pytest.param(SerializedBody(b"\xac\xed"), DATA, b"\xac\xed", JAVA, id="ObjectMessage of Java"),
    pytest.param(SerializedBody(), DATA, JAVA_NULL, JAVA, id="ObjectMessage: null of Java"),
    pytest.param(ObjectBody(UInt(7)), VALUE, UInt(7), None, id="ObjectMessage of AMQP"),
    pytest.param(ObjectBody(None), VALUE, None, None, id="ObjectMessage: null of AMQP"),
]


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(("body", "code", "value", "content_type"), SENT)
def test_a_kind_is_sent_in_its_section_and_comes_back(
    body: Body, code: int, value: object, content_type: str | None
) -> None:
    out = BytesWriter()
    body.write(out)
    data = out.getvalue()
    assert repr(sections_of(data)) == repr([(code, value)])
    assert body.content_type == content_type
    content = read_content(data, 0, len(data), content_type)
    assert repr(body_of(body.kind, content)) == repr(body)


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(
    "value", [UByte(1), Timestamp(1), uuid.UUID(int=1), Symbol("s"), [1], Map([])], ids=repr
)
def test_what_jms_has_no_type_for_is_not_sent_in_maps_and_streams(value: object) -> None:
    for body in (MapBody({"name": value}), StreamBody([value])):
        with pytest.raises(MappingError, match="no type"):
            body.write(BytesWriter())


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize("key", [1, Symbol("s"), b"b", None, True], ids=repr)
def test_the_names_of_a_map_are_strings_in_both_directions(key: object) -> None:
    with pytest.raises(MappingError, match=re.escape(f"not {key!r}")):
        MapBody(cast("dict[str, object]", {key: 1})).write(BytesWriter())
    with pytest.raises(MappingError, match=re.escape(f"not {key!r}")):
        body_of(MAP, Content(BodySection.VALUE, Map([(key, 1)]), None))


NONE: Final = BodySection.NONE

# section, value, content-type; the kind of message in WD10, in EARLY
UNANNOTATED: Final[list[tuple[BodySection, object, str | None, MessageKind, MessageKind]]] = [
    (BodySection.DATA, b"x", None, BYTES, BYTES),
    (BodySection.DATA, b"x", OCTET_STREAM, BYTES, BYTES),
    (BodySection.DATA, b"x", "image/png", BYTES, BYTES),
    (BodySection.DATA, b"x", "text/plain; charset=unknown", BYTES, BYTES),
    (BodySection.DATA, b"x", JAVA, OBJECT, OBJECT),
    (BodySection.DATA, b"x", "text/plain", TEXT, TEXT),
    (BodySection.DATA, b"", "text/plain", TEXT, TEXT),
    (BodySection.DATA, b"x", "text/html", TEXT, BYTES),
    (BodySection.DATA, b"x", "application/xml", TEXT, BYTES),
    (BodySection.DATA, b"x", "application/xml-dtd", TEXT, BYTES),
    (BodySection.DATA, b"x", "application/soap+xml", TEXT, BYTES),
    (BodySection.DATA, b"x", "application/json", TEXT, BYTES),
    (BodySection.DATA, b"x", "application/ld+json", TEXT, BYTES),
    (BodySection.DATA, b"x", "application/javascript", TEXT, BYTES),
    (BodySection.DATA, b"x", "application/ecmascript", TEXT, BYTES),
    (BodySection.VALUE, "x", None, TEXT, TEXT),
    (BodySection.VALUE, None, None, TEXT, TEXT),
    (BodySection.VALUE, b"x", None, BYTES, BYTES),
    (BodySection.VALUE, Map([]), None, OBJECT, OBJECT),
    (BodySection.VALUE, [], None, OBJECT, OBJECT),
    (BodySection.VALUE, 1, None, OBJECT, OBJECT),
    (BodySection.VALUE, Symbol("x"), "text/plain", OBJECT, OBJECT),
    (BodySection.SEQUENCE, [], None, OBJECT, OBJECT),
    (BodySection.SEQUENCE, ["x"], "text/plain", OBJECT, OBJECT),
    (NONE, None, None, BYTES, BYTES),
    (NONE, None, "unknown", BYTES, BYTES),
    (NONE, None, OCTET_STREAM, BYTES, BYTES),
    (NONE, None, JAVA, OBJECT, OBJECT),
    (NONE, None, "text/plain", TEXT, TEXT),
]


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(
    ("section", "value", "content_type", "in_wd10", "in_early"),
    UNANNOTATED,
    ids=[f"{row[0].value} {row[1]!r} {row[2]}" for row in UNANNOTATED],
)
def test_without_the_annotation_section_and_content_type_tell_the_kind(
    section: BodySection,
    value: object,
    content_type: str | None,
    in_wd10: MessageKind,
    in_early: MessageKind,
) -> None:
    content = Content(section, value, content_type)
    assert kind_of(content, Profile.WD10) is in_wd10
    assert kind_of(content, Profile.EARLY) is in_early


READ: Final = [
    pytest.param(TEXT, [(DATA, b"gr\xc3\xbc\xc3\x9fe")], None, TextBody("grüße"), id="UTF-8"),
    pytest.param(
        TEXT, [(DATA, b"\xe9")], "text/plain; charset=iso-8859-1", TextBody("é"), id="Latin 1"
    ),
    pytest.param(TEXT, [(DATA, b"")], "text/plain", TextBody(""), id="text of no length"),
    pytest.param(TEXT, [(DATA, b"\xc3"), (DATA, b"\x9f")], None, TextBody("ß"), id="text in two"),
    pytest.param(TEXT, [], "text/plain", TextBody(None), id="no text"),
    pytest.param(BYTES, [], None, BytesBody(b""), id="no bytes"),
    pytest.param(BYTES, [(DATA, b"a"), (DATA, b""), (DATA, b"b")], None, BytesBody(b"ab"), id="3"),
    pytest.param(BYTES, [(VALUE, b"a")], None, BytesBody(b"a"), id="binary"),
    pytest.param(BYTES, [(VALUE, None)], None, BytesBody(b""), id="bytes: null"),
    pytest.param(MAP, [(VALUE, None)], None, MapBody({}), id="map: null"),
    pytest.param(MAP, [], None, MapBody({}), id="no map"),
    pytest.param(STREAM, [(VALUE, None)], None, StreamBody([]), id="stream: null"),
    pytest.param(STREAM, [], None, StreamBody([]), id="no stream"),
    pytest.param(STREAM, [(SEQUENCE, [1]), (SEQUENCE, ["a"])], None, StreamBody([1, "a"]), id="2"),
    pytest.param(OBJECT, [], JAVA, SerializedBody(), id="no object of Java"),
    pytest.param(OBJECT, [(DATA, b"")], JAVA, SerializedBody(), id="an empty object of Java"),
    pytest.param(OBJECT, [(DATA, b"a"), (DATA, b"b")], JAVA, SerializedBody(b"ab"), id="continued"),
    pytest.param(OBJECT, [], None, ObjectBody(None), id="no object"),
    pytest.param(OBJECT, [(SEQUENCE, [1])], None, ObjectBody([1]), id="an object in a sequence"),
    pytest.param(MESSAGE, [], None, NoBody(), id="no body"),
    pytest.param(MESSAGE, [(VALUE, "ignored")], None, NoBody(), id="a Message has none"),
]


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(("kind", "sections", "content_type", "body"), READ)
def test_a_kind_is_read_out_of_other_sections_too(
    kind: MessageKind, sections: list[tuple[int, object]], content_type: str | None, body: Body
) -> None:
    data = joined(*sections)
    content = read_content(data, 0 if sections else -1, len(data), content_type)
    assert repr(body_of(kind, content)) == repr(body)


REFUSED: Final = [
    (TEXT, Content(BodySection.VALUE, 1, None)),
    (TEXT, Content(BodySection.VALUE, b"x", None)),
    (TEXT, Content(BodySection.DATA, b"\xff", None)),
    (TEXT, Content(BodySection.DATA, b"x", "text/plain; charset=unknown")),
    (BYTES, Content(BodySection.VALUE, "x", None)),
    (MAP, Content(BodySection.VALUE, [], None)),
    (MAP, Content(BodySection.DATA, b"", None)),
    (MAP, Content(BodySection.VALUE, Map([(1, 2)]), None)),
    (STREAM, Content(BodySection.VALUE, Map([]), None)),
    (STREAM, Content(BodySection.DATA, b"", None)),
]


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize(("kind", "content"), REFUSED)
def test_what_is_not_of_the_annotated_kind_is_refused(kind: MessageKind, content: Content) -> None:
    with pytest.raises(MappingError):
        body_of(kind, content)


def nulls(code: int, count: int, *, before: bytes = b"", more: int = 0) -> bytes:
    """Return a section with a list of `count` nulls after `more` values that `before` encodes."""
    size = 4 + len(before) + count
    sizes = size.to_bytes(4, "big") + (count + more).to_bytes(4, "big")
    return bytes([0, 0x53, code, 0xD0]) + sizes + before + b"@" * count


def test_only_so_many_values_are_made_of_a_body() -> None:
    """BODY_VALUES_MAX counts values within others, and those of all sequence sections together."""
    nested = BytesWriter()
    for value in (Map([("a", [1])]), Described(ULong(1), 1), Array(0x55, [1, 2])):
        put_value(nested, value)
    # values: the list itself; a map, its key, a list, its number; a described value; an array
    # and its two elements
    first, made = nulls(SEQUENCE, 0, before=nested.getvalue(), more=3), 1 + 4 + 1 + 3
    data = first + nulls(SEQUENCE, BODY_VALUES_MAX - made - 1)
    assert read_content(data, 0, len(data), None).section is BodySection.SEQUENCE
    data = first + nulls(SEQUENCE, BODY_VALUES_MAX - made)
    with pytest.raises(Fault, match="too many values"):
        read_content(data, 0, len(data), None)


def test_a_footer_is_no_part_of_the_body() -> None:
    body = joined((DATA, b"a"), (DATA, b"b"))
    data = body + joined((FOOTER, Map([])))
    assert read_content(data, 0, len(body), None).value == b"ab"
