"""Messages as text: JSON with all their facts, and bodies that can be piped."""

import json
from uuid import UUID

import pytest

pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")

from proton import UNDESCRIBED, Array, Data, Described, Message, symbol, timestamp, ubyte, ulong

from broker.cli.message_text import as_json, body_as_text, plain

VALUES = [
    pytest.param(None, None, id="null"),
    pytest.param("text", "text", id="a string"),
    pytest.param(symbol("name"), "name", id="a symbol"),
    pytest.param(ulong(2**64 - 1), 2**64 - 1, id="an unsigned number"),
    pytest.param(ubyte(1), 1, id="a small number"),
    pytest.param(timestamp(5), 5, id="a time"),
    pytest.param(1.5, 1.5, id="a fraction"),
    pytest.param(True, True, id="a truth"),
    pytest.param(b"\x00\xff", {"base64": "AP8="}, id="binary"),
    pytest.param(memoryview(b"a"), {"base64": "YQ=="}, id="binary as a view"),
    pytest.param(
        UUID("12345678123456781234567812345678"), "12345678-1234-5678-1234-567812345678", id="uuid"
    ),
    pytest.param([1, b"a"], [1, {"base64": "YQ=="}], id="a list"),
    pytest.param({"a": {"b": b"c"}}, {"a": {"b": {"base64": "Yw=="}}}, id="maps"),
    pytest.param({1: "a"}, {"1": "a"}, id="a number as key"),
    pytest.param(
        Described(symbol("a:b"), [1]), {"descriptor": "a:b", "value": [1]}, id="a described value"
    ),
    pytest.param(
        Array(UNDESCRIBED, Data.INT, 1, 2),  # type: ignore[arg-type]  # proton's own word for none
        [1, 2],
        id="an array",
    ),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_a_value_in_the_types_of_json(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_a_message_leaves_out_what_it_does_not_say() -> None:
    assert json.loads(as_json(Message(body="hello"))) == {
        "durable": False,
        "priority": 4,
        "delivery_count": 0,
        "body": "hello",
    }


def test_a_message_says_all_it_has() -> None:
    message = Message(
        body={"a": b"b"},
        durable=True,
        priority=9,
        ttl=1.5,
        id="ID:1",
        user_id=b"alice",
        address="queue",
        subject="subject",
        reply_to="replies",
        correlation_id=UUID(int=1),
        content_type="text/plain",
        group_id="group",
        group_sequence=3,
        creation_time=1.25,
        expiry_time=2.0,
        properties={"colour": "red"},
        annotations={symbol("x-opt-a"): 1},
    )
    assert json.loads(as_json(message)) == {
        "durable": True,
        "priority": 9,
        "delivery_count": 0,
        "ttl_ms": 1500,
        "creation_time_ms": 1250,
        "expiry_time_ms": 2000,
        "id": "ID:1",
        "address": "queue",
        "subject": "subject",
        "reply_to": "replies",
        "correlation_id": "00000000-0000-0000-0000-000000000001",
        "content_type": "text/plain",
        "group_id": "group",
        "group_sequence": 3,
        "user_id": {"base64": "YWxpY2U="},
        "annotations": {"x-opt-a": 1},
        "properties": {"colour": "red"},
        "body": {"a": {"base64": "Yg=="}},
    }


def test_json_is_one_line() -> None:
    assert "\n" not in as_json(Message(body="a\nb"))


BODIES = [
    pytest.param(None, b"", id="nothing"),
    pytest.param("ä\n", "ä\n".encode(), id="text as it is"),
    pytest.param(b"\x00\xff", b"\x00\xff", id="bytes as they are"),
    pytest.param({"a": 1}, b'{"a": 1}', id="a map as JSON"),
    pytest.param(5, b"5", id="a number"),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_a_body_as_text(body: str | bytes | dict[str, int] | int | None, expected: bytes) -> None:
    assert body_as_text(Message(body=body)) == expected
