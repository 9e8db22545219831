"""Audit records: their lines, and how texts of clients are held in bounds."""

import json

import pytest

from broker.audit.record import (
    BEGINNING,
    BODY_MAX,
    ENTRIES_MAX,
    FIELDS,
    TEXT_MAX,
    Actor,
    AuditEvent,
    ChainLink,
    body_of,
    bounded,
    hash_of,
    line_of,
)


def test_a_line_has_every_field_in_order() -> None:
    event = AuditEvent(
        action="user.added",
        resource="user:bob",
        actor=Actor(user="ada", roles=("b", "a"), via="amqp", address="10.0.0.1:7"),
        rule="admin",
        after={"roles": ("application",)},
        request_id="3-1",
    )
    line = line_of(body_of(event), at_ms=1_795_489_463_007, previous=ChainLink(6, "f" * 64))
    record = json.loads(line)
    assert tuple(record) == FIELDS
    assert record == {
        "at": "2026-11-24T03:04:23.007Z",
        "seq": 7,
        "actor": "ada",
        "roles": ["a", "b"],
        "via": "amqp",
        "from": "10.0.0.1:7",
        "action": "user.added",
        "resource": "user:bob",
        "result": "done",
        "rule": "admin",
        "before": None,
        "after": {"roles": ["application"]},
        "request_id": "3-1",
        "previous_hash": "f" * 64,
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\nb\r\n", id="line feeds"),
        pytest.param("\x1b[31m\x00\x7f", id="escape sequences"),
        pytest.param('","seq":1,"x":"', id="quotes"),
        pytest.param("Ünïcödé \u2028 \U0001f600 \ud800", id="unicode, and half a character"),
    ],
)
def test_a_text_of_a_client_forges_no_line(text: str) -> None:
    event = AuditEvent(action="access.denied", resource=text, actor=Actor(user=text))
    line = line_of(body_of(event), at_ms=0, previous=BEGINNING)
    assert line.isascii()
    assert line.decode().isprintable()
    record = json.loads(line)
    assert (record["resource"], record["actor"], record["seq"]) == (text, text, 1)


BOUNDED = [
    pytest.param("x" * 300, "x" * TEXT_MAX + "…", id="a long text"),
    pytest.param([1] * 40, [1] * ENTRIES_MAX + ["… 40 in all"], id="a long list"),
    pytest.param({"a": {"b": {"c": {"d": 1}}}}, {"a": {"b": {"c": "{'d': 1}"}}}, id="deep maps"),
    pytest.param(float("nan"), "nan", id="no number"),
    pytest.param(1.5, 1.5, id="a number"),
    pytest.param(b"ab", "b'ab'", id="bytes"),
]


@pytest.mark.parametrize(("value", "expected"), BOUNDED)
def test_values_are_small(value: object, expected: object) -> None:
    assert bounded(value) == expected


def test_a_map_with_too_many_keys_says_how_many() -> None:
    found = bounded({str(number): number for number in range(50)})
    assert isinstance(found, dict)
    assert (len(found), found["…"]) == (ENTRIES_MAX + 1, 50)


def test_a_record_is_never_large() -> None:
    wide = {f"{number}": ["x" * TEXT_MAX] * ENTRIES_MAX for number in range(ENTRIES_MAX)}
    body = body_of(AuditEvent(action="x", before=wide, after=wide))
    assert len(body) < BODY_MAX
    assert json.loads(f"{{{body}}}")["after"] == {"left_out": "the values were too large"}


def test_a_hash_is_that_of_the_bytes() -> None:
    assert hash_of(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
