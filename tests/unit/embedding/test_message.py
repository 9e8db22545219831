"""A message as a test sees it: every kind of body, with Python's types in place of AMQP's."""

import uuid

import pytest

from broker.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Map,
    Symbol,
    Timestamp,
    UInt,
    ULong,
)
from broker.embedding.message import plain, view
from broker.message import NEVER, Message, opaque_message
from tests.support.encoded import NULL, listed, mapped, section, string, symbol

BODIES = [
    pytest.param("", None, id="none"),
    pytest.param(section(0x75, "a002 6869"), b"hi", id="data"),
    pytest.param(section(0x75, "a00168") + section(0x75, "a00169"), b"hi", id="data in two"),
    pytest.param(section(0x75, "a000"), b"", id="no data"),
    pytest.param(section(0x77, string("hi")), "hi", id="a string"),
    pytest.param(section(0x77, NULL), None, id="null"),
    pytest.param(section(0x77, "a00168"), b"h", id="binary as a value"),
    pytest.param(section(0x77, mapped(string("a"), "5401")), {"a": 1}, id="a map"),
    pytest.param(
        section(0x76, listed("5401")) + section(0x76, listed("41")), [1, True], id="lists"
    ),
    pytest.param(section(0x75, "a00168") + section(0x78, mapped()), b"h", id="a footer behind"),
    pytest.param(section(0x78, mapped()), None, id="a footer alone"),
]


def message(encoded: str) -> Message:
    return Message(
        encoded=bytes.fromhex(encoded),
        durable=True,
        priority=7,
        ttl_ms=1000,
        arrived_ms=1,
        expires_at_ms=NEVER,
    )


@pytest.mark.parametrize(("encoded", "expected"), BODIES)
def test_the_body(encoded: str, expected: object) -> None:
    seen = view(message(encoded), 0)
    assert seen.body == expected
    assert type(seen.body) is type(expected)


def test_all_sections() -> None:
    seen = view(
        message(
            section(0x72, mapped(symbol("x-opt"), "5405"))
            + section(0x73, listed(string("ID:1"), NULL, string("orders"), NULL, NULL, "5307"))
            + section(0x74, mapped(string("kind"), string("book"), string("n"), "5401"))
            + section(0x77, string("hi"))
        ),
        2,
    )
    assert seen.message_annotations == {"x-opt": 5}
    assert seen.properties == {"message_id": "ID:1", "to": "orders", "correlation_id": 7}
    assert seen.application_properties == {"kind": "book", "n": 1}
    assert (seen.durable, seen.priority, seen.ttl_ms, seen.delivery_count) == (True, 7, 1000, 2)


UUID = uuid.UUID(int=5)
VALUES = [
    pytest.param(Byte(-1), -1, id="a narrow integer"),
    pytest.param(Timestamp(5), 5, id="a timestamp"),
    pytest.param(Char(0x41), "A", id="a character"),
    pytest.param(Float(0.5), 0.5, id="a float"),
    pytest.param(Symbol("s"), "s", id="a symbol"),
    pytest.param(UUID, UUID, id="what Python has"),
    pytest.param([UInt(1), [UInt(2)]], [1, [2]], id="lists in lists"),
    pytest.param(Array(0x70, [UInt(1)]), [1], id="an array"),
    pytest.param(Map([(Symbol("k"), Map([]))]), {"k": {}}, id="maps in maps"),
    pytest.param(Described(ULong(1), UInt(2)), 2, id="a described value"),
    pytest.param(Decimal(b"1234"), Decimal(b"1234"), id="a decimal stays what it is"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_plain(value: object, expected: object) -> None:
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def test_an_opaque_message_shows_its_payload() -> None:
    seen = view(opaque_message(b"\x00?", message_format=7), 2)
    assert (seen.body, seen.message_format, seen.delivery_count) == (b"\x00?", 7, 2)
    assert (seen.properties, seen.message_annotations) == ({}, {})
