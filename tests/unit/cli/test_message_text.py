"""Messages as text: JSON with all their facts, and bodies that can be piped."""

import json
from uuid import UUID

import pytest

pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")

from proton import Message, symbol

from broker.cli.message_text import as_json, body_as_text


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
