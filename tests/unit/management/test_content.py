"""The contents of a message that management shows."""

import pytest

from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.types import Described, Map, Symbol, ULong
from broker.large_body import LargeBody
from broker.management.content import BODY_BYTES_MAX, content_of, properties_of, shown, text_of
from broker.message import NEVER, Message, OptionalFields, opaque_message
from storage.records import StoredContent
from tests.support.frames import message
from tests.support.management import request
from tests.unit.test_large_body import Recorder


def of(encoded: bytes) -> Message:
    return Message(
        encoded=encoded, durable=False, priority=4, ttl_ms=-1, arrived_ms=0, expires_at_ms=NEVER
    )


def section(code: int, value: object) -> bytes:
    out = BytesWriter()
    put_descriptor(out, code)
    put_value(out, value)
    return out.getvalue()


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


BODIES = [
    pytest.param(b"", "empty", None, False, id="none"),
    pytest.param(section(0x75, b"ab") + section(0x75, b"c"), "bytes", b"abc", False, id="data"),
    pytest.param(section(0x77, "abc"), "text", "abc", False, id="a text"),
    pytest.param(section(0x77, b"abc"), "bytes", b"abc", False, id="binary"),
    pytest.param(section(0x77, None), "value", None, False, id="null"),
    pytest.param(section(0x77, {"a": 1}), "value", Map([("a", 1)]), False, id="a map"),
    pytest.param(section(0x76, [1]) + section(0x76, [2]), "sequence", [1, 2], False, id="lists"),
    pytest.param(
        section(0x77, "x" * (BODY_BYTES_MAX + 1)), "text", "x" * BODY_BYTES_MAX, True, id="long"
    ),
    pytest.param(
        section(0x77, "x" * BODY_BYTES_MAX), "text", "x" * BODY_BYTES_MAX, False, id="all of it"
    ),
    pytest.param(
        section(0x77, "x" * (BODY_BYTES_MAX - 1) + "\u20ac"),
        "text",
        "x" * (BODY_BYTES_MAX - 1),
        True,
        id="a character in two",
    ),
    pytest.param(
        section(0x75, b"x" * (BODY_BYTES_MAX + 1)), "bytes", b"x" * BODY_BYTES_MAX, True, id="data"
    ),
    pytest.param(
        section(0x75, b"x" * BODY_BYTES_MAX) + section(0x75, b"y"),
        "bytes",
        b"x" * BODY_BYTES_MAX,
        True,
        id="a section too many",
    ),
    pytest.param(section(0x77, [b"x" * BODY_BYTES_MAX]), "value", None, True, id="a large list"),
    pytest.param(section(0x76, [b"x" * BODY_BYTES_MAX]), "sequence", None, True, id="sequence"),
    pytest.param(section(0x77, [0] * 10_001), "value", None, False, id="many values"),
    pytest.param(section(0x77, deep(30)), "value", None, False, id="too deep to be passed on"),
    pytest.param(section(0x77, "a") + section(0x78, {}), "text", "a", False, id="with a footer"),
]


@pytest.mark.parametrize(("encoded", "kind", "body", "truncated"), BODIES)
def test_a_body(encoded: bytes, kind: str, body: object, truncated: bool) -> None:
    found = content_of(of(encoded))
    assert (found["body_kind"], found["body"], found["body_truncated"]) == (kind, body, truncated)


@pytest.mark.parametrize(
    ("beginning", "kind", "body"),
    [
        pytest.param(section(0x75, b"x" * 999)[:100], "bytes", b"x" * 92, id="data"),
        pytest.param(section(0x75, b"ab") + section(0x75, b"c"), "bytes", b"ab", id="short data"),
        pytest.param(section(0x77, "\u20ac" * 300)[:100], "text", "\u20ac" * 30, id="a text"),
        pytest.param(section(0x77, [1] * 999)[:100], "value", None, id="a list"),
        pytest.param(section(0x76, [1] * 999)[:100], "sequence", None, id="a sequence"),
    ],
)
def test_the_beginning_of_a_large_body(beginning: bytes, kind: str, body: object) -> None:
    stored = StoredContent(number=1, size=2**21, beginning=beginning)
    large = LargeBody(stored, Recorder().hold(1), is_saved=True)
    of_it = Message(
        encoded=section(0x74, {"a": 1}),
        durable=False,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=NEVER,
        optional_fields=OptionalFields(large=large),
    )
    shown_of_it = content_of(of_it)
    assert (shown_of_it["body_kind"], shown_of_it["body"]) == (kind, body)
    assert shown_of_it["body_truncated"]
    assert shown_of_it["application_properties"] == Map([("a", 1)])
    assert of_it.size == 2**21 + len(of_it.encoded)


@pytest.mark.parametrize("size", [0, 3, BODY_BYTES_MAX, BODY_BYTES_MAX + 1])
def test_the_payload_of_an_opaque_message(size: int) -> None:
    found = content_of(opaque_message(b"x" * size, message_format=7))
    assert (found["body_kind"], found["body"]) == ("opaque", b"x" * min(size, BODY_BYTES_MAX))
    assert found["body_truncated"] is (size > BODY_BYTES_MAX)
    assert (found["properties"], found["annotations"]) == ({}, None)


def test_the_beginning_of_a_large_opaque_message() -> None:
    stored = StoredContent(number=1, size=2**21, beginning=b"bc")
    large = LargeBody(stored, Recorder().hold(1), is_saved=True)
    found = content_of(opaque_message(b"a", message_format=7, large=large))
    assert (found["body"], found["body_truncated"]) == (b"abc", True)


def test_sections_before_the_body() -> None:
    encoded = request("READ", "queue", to="there", reply_to=None, message_id="m")
    found = content_of(of(encoded))
    assert found["properties"] == {"message_id": "m", "to": "there"}
    assert found["application_properties"] == Map([("operation", "READ"), ("type", "queue")])
    assert found["annotations"] is None


def test_annotations_as_they_are() -> None:
    annotations: dict[str, object] = {"x-opt-a": Described(ULong(1), [1])}
    found = content_of(of(message(annotations=annotations)))
    assert found["annotations"] == Map([(Symbol("x-opt-a"), Described(ULong(1), [1]))])


def test_no_properties() -> None:
    assert properties_of(of(b"")) == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(deep(20), deep(20), id="what can be written"),
        pytest.param(deep(40), None, id="what is too deep"),
    ],
)
def test_what_fits_into_a_response(value: object, expected: object) -> None:
    assert shown(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, "", id="nothing"),
        pytest.param("abc", "abc", id="a text"),
        pytest.param("abcdef", "abcd\u2026", id="a long text"),
        pytest.param(ULong(7), "7", id="a number"),
        pytest.param(b"\x00\xff", "00ff", id="binary"),
    ],
)
def test_an_id_in_a_list(value: object, expected: str) -> None:
    assert text_of(value, 5) == expected
