"""Messages as text: JSON with all their facts, and bodies that can be piped."""

import json
import os
import sys
from pathlib import Path
from uuid import UUID

import pytest

pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")

from proton import Message, symbol

from broker.cli.message_text import as_json, body_as_text, body_on_terminal
from broker.cli.messages import _print_all

EVIL = "\x9b31mRED\x9d0;title\x07\u202eabc\x1b[2J"


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


def test_json_of_a_hostile_message_is_printable() -> None:
    message = Message(
        body={EVIL: EVIL}, id=EVIL, subject=EVIL, reply_to=EVIL, properties={EVIL: [EVIL]}
    )
    text = as_json(message)
    assert text.isprintable()
    facts = json.loads(text)
    assert [facts[name] for name in ("id", "subject", "reply_to")] == [EVIL] * 3
    assert facts["properties"] == {EVIL: [EVIL]}
    assert facts["body"] == {EVIL: EVIL}


BODIES = [
    pytest.param(None, b"", id="nothing"),
    pytest.param("ä\n", "ä\n".encode(), id="text as it is"),
    pytest.param(b"\x00\xff", b"\x00\xff", id="bytes as they are"),
    pytest.param({"a": 1}, b'{"a": 1}', id="a map as JSON"),
    pytest.param(5, b"5", id="a number"),
    pytest.param(EVIL, EVIL.encode(), id="controls as they are"),
    pytest.param({"a": "\x9b"}, rb'{"a": "\u009b"}', id="controls in a map"),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_a_body_as_text(body: str | bytes | dict[str, int] | int | None, expected: bytes) -> None:
    assert body_as_text(Message(body=body)) == expected


ON_TERMINAL = [
    pytest.param("ä\n\tb", "ä\n\tb", id="lines and tabs"),
    pytest.param("a\r\nb\rc", "a\nb\ufffdc", id="lines of Windows"),
    pytest.param("\x9b31m\x1b[2J\u202e", "\ufffd31m\ufffd[2J\ufffd", id="controls"),
    pytest.param(b"a\x1b\xff", "a\ufffd\ufffd", id="bytes"),
    pytest.param({"\x9b": 1}, r'{"\u009b": 1}', id="a map as JSON"),
    pytest.param(None, "", id="nothing"),
]


@pytest.mark.parametrize(("body", "expected"), ON_TERMINAL)
def test_a_body_on_a_terminal(body: str | bytes | dict[str, int] | None, expected: str) -> None:
    assert body_on_terminal(Message(body=body)).decode() == expected


def test_only_a_terminal_gets_other_bodies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    messages = [Message(body=EVIL)]
    with (tmp_path / "printed").open("w+") as file:
        monkeypatch.setattr(sys, "stdout", file)
        _print_all(messages, as_json=False, expected=1)
    assert (tmp_path / "printed").read_bytes() == EVIL.encode() + b"\n"

    terminal, its_other_end = os.openpty()
    with os.fdopen(terminal, "rb", 0) as screen, os.fdopen(its_other_end, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        _print_all(messages, as_json=False, expected=1)
        assert screen.read(1000).decode().strip() == EVIL.translate(
            dict.fromkeys(map(ord, "\x9b\x9d\x07\u202e\x1b"), "\ufffd")
        )
