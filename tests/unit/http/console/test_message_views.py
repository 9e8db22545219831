"""A message as people read it: its body in several forms, its JMS headers."""

from __future__ import annotations

import pytest

from broker.amqp.types import Map
from broker.http.console.message_views import INDENTED_MAX, body_forms, jms_headers

pytestmark = pytest.mark.requirement("OPS-06")


@pytest.mark.parametrize(
    ("body", "titles"),
    [
        pytest.param("hello", ["Text", "Hexadecimal"], id="a text"),
        pytest.param('{"a": [1]}', ["JSON, indented", "Text", "Hexadecimal"], id="JSON"),
        pytest.param(b'{"a": 1}', ["JSON, indented", "Text", "Hexadecimal"], id="JSON as bytes"),
        pytest.param("{not JSON", ["Text", "Hexadecimal"], id="a brace"),
        pytest.param("[" * 5000, ["Text", "Hexadecimal"], id="nested too deeply"),
        pytest.param("[" + " " * INDENTED_MAX + "]", ["Text", "Hexadecimal"], id="long JSON"),
        pytest.param(b"\xff\xfe", ["Hexadecimal"], id="not UTF-8"),
        pytest.param(b"a\x00b", ["Hexadecimal"], id="control characters"),
        pytest.param(b"a\r\n\tb", ["Text", "Hexadecimal"], id="lines"),
        pytest.param(Map([("a", 1)]), ["Value"], id="a map"),
        pytest.param(7, ["Value"], id="a number"),
        pytest.param(None, [], id="nothing"),
        pytest.param("", [], id="an empty text"),
        pytest.param(b"", [], id="no bytes"),
    ],
)
def test_a_body_has_its_forms(body: object, titles: list[str]) -> None:
    assert [each.title for each in body_forms(body)] == titles


def test_json_is_indented() -> None:
    assert body_forms('{"a":[1]}')[0].text == '{\n  "a": [\n    1\n  ]\n}'


def test_half_a_character_in_json_stays_an_escape() -> None:
    text = body_forms('["\\ud800"]')[0].text
    assert text.encode() == b'[\n  "\\ud800"\n]'


def test_headers_are_those_that_are_set() -> None:
    message = {
        "properties": {"message_id": "ID:1", "to": "orders", "creation_time": 1_795_710_050_249},
        "durable": True,
        "priority": 4,
        "delivery_count": 1,
        "expires_at": None,
    }
    assert jms_headers(message) == [
        ("JMSMessageID", "ID:1"),
        ("JMSDestination", "orders"),
        ("JMSDeliveryMode", "PERSISTENT"),
        ("JMSPriority", "4"),
        ("JMSTimestamp", "2026-11-26 16:20:50"),
        ("JMSRedelivered", "yes"),
    ]


def test_a_message_whose_properties_are_unreadable_has_headers() -> None:
    message = {
        "properties": None,
        "durable": False,
        "priority": 0,
        "delivery_count": 0,
        "expires_at": 1_795_710_050_249,
    }
    assert jms_headers(message) == [
        ("JMSDeliveryMode", "NON_PERSISTENT"),
        ("JMSPriority", "0"),
        ("JMSExpiration", "2026-11-26 16:20:50"),
        ("JMSRedelivered", "no"),
    ]
