"""Headers and properties of a message as those of HTTP, and as JSON."""

from __future__ import annotations

from urllib.parse import unquote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.types import Int, ULong
from broker.http.jms_fields import fields_of as read_fields
from broker.http.jms_message import OMITTED, encoded, fields_of, headers_of, shown
from broker.http.limits import (
    JMS_DECODED_BYTES_MAX,
    JMS_FIELDS_BYTES_MAX,
    JMS_PROPERTIES_MAX,
    JMS_SHOWN_BYTES_MAX,
)
from broker.jms import (
    BytesBody,
    Destination,
    DestinationType,
    JmsMessage,
    MapBody,
    TextBody,
    encode,
)

pytestmark = pytest.mark.requirement("MAP-09")

QUEUE = Destination("q")


def test_all_headers() -> None:
    message = JmsMessage(TextBody("x"))
    message.message_id = "ID:1"
    message.correlation_id = "c"
    message.type = "t"
    message.destination = Destination("a/b", DestinationType.TOPIC)
    message.reply_to = Destination("$tmp/1", DestinationType.TEMPORARY_QUEUE)
    message.timestamp = 5
    message.group_id, message.group_sequence, message.user_id = "g", 1, "ada"
    message.delivery_count = 2
    assert fields_of(message) == {
        "JMSMessageID": "ID:1",
        "JMSCorrelationID": "c",
        "JMSType": "t",
        "JMSDestination": "topic:a/b",
        "JMSReplyTo": "temporary-queue:$tmp/1",
        "JMSDeliveryMode": "PERSISTENT",
        "JMSPriority": 4,
        "JMSTimestamp": 5,
        "JMSExpiration": 0,
        "JMSRedelivered": True,
        "JMSXDeliveryCount": 2,
        "JMSXGroupID": "g",
        "JMSXGroupSeq": 1,
        "JMSXUserID": "ada",
    }
    assert ("JMSRedelivered", "true") in headers_of(message)


def test_properties_have_their_types() -> None:
    message = JmsMessage(BytesBody(b""))
    message.properties.update(
        {
            "a": "x",
            "b": Int(1),
            "c": True,
            "d": 1.5,
            "e": 7,
            "f": None,
            "g": b"\0",
            "h": ULong(1),
            "i": "x;type=int",
            "j": UUID(int=1),
            "SOAPJMS_isFault": True,
        }
    )
    found = headers_of(message)
    assert ("SOAPJMS_isFault", "true") in found
    assert [value for name, value in found if name == "JMS-Property"] == [
        "a=x",
        "b=1;type=int",
        "c=true;type=boolean",
        "d=1.5;type=double",
        "e=7;type=long",
        "f=;type=null",
        "g=AA==;type=base64",
        "h=1;type=ulong",
        "i=x;type=int;type=string",
        "j=00000000-0000-0000-0000-000000000001;type=uuid",
    ]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_text_is_a_header_value_and_is_read_back(text: str) -> None:
    value = encoded(text)
    assert value.isascii()
    assert value.isprintable()
    assert unquote(value) == text
    property_ = encoded(f"n={text};type=string").encode()
    read = read_fields([(b"jms-property", property_)], [])
    assert read.properties == {"n": text}


def test_line_breaks_and_other_alphabets_are_percent_encoded() -> None:
    assert encoded("a\r\nb: é 100%") == "a%0D%0Ab: %C3%A9 100%25"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"correlation_id": "c" * 200_000}, id="a correlation-id"),
        pytest.param({"type": "é" * JMS_FIELDS_BYTES_MAX}, id="a type that is percent-encoded"),
        pytest.param({"message_id": "ID:" + "m" * 100_000}, id="a message-id"),
    ],
)
def test_a_long_jms_header_is_left_out(fields: dict[str, str]) -> None:
    message = JmsMessage(BytesBody(b""))
    message.properties["n"] = "x"
    for name, value in fields.items():
        setattr(message, name, value)
    found = headers_of(message)
    assert sum(len(name) + len(value) for name, value in found) < JMS_FIELDS_BYTES_MAX
    assert {("JMSPriority", "4"), ("JMS-Property", "n=x"), (OMITTED, "1")} <= set(found)


def test_only_so_many_properties_become_headers() -> None:
    message = JmsMessage(BytesBody(b""))
    message.properties.update({f"n{number}": "x" for number in range(JMS_PROPERTIES_MAX + 3)})
    found = headers_of(message)
    assert len([name for name, _ in found if name == "JMS-Property"]) == JMS_PROPERTIES_MAX
    assert (OMITTED, "3") in found


def test_only_so_many_bytes_become_headers() -> None:
    message = JmsMessage(BytesBody(b""))
    message.properties.update({"small": "x", "long": "x" * 9000})
    found = headers_of(message)
    assert ("JMS-Property", "small=x") in found
    assert (OMITTED, "1") in found


def test_a_message_as_json() -> None:
    message = JmsMessage(TextBody("é"), properties={"n": Int(1)})
    found = shown(encode(message), QUEUE, now_ms=0)
    assert found["body"] == "é"
    assert found["properties"] == {"n": 1}
    assert found["messageType"] == "TextMessage"
    assert found["JMSDestination"] == "queue:q"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(BytesBody(b"\0"), "AA==", id="bytes as base64"),
        pytest.param(MapBody({"a": 1}), {"a": 1}, id="a map as JSON"),
    ],
)
def test_other_bodies_as_json(body: BytesBody | MapBody, expected: object) -> None:
    assert shown(encode(JmsMessage(body)), QUEUE, now_ms=0)["body"] == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(TextBody("x" * 9000), "x" * 9000, id="a text that is not decoded"),
        pytest.param(
            TextBody("x" * JMS_SHOWN_BYTES_MAX), "x" * JMS_SHOWN_BYTES_MAX, id="a long one"
        ),
        pytest.param(TextBody("x" * (JMS_SHOWN_BYTES_MAX + 1)), None, id="a longer one"),
        pytest.param(BytesBody(bytes(JMS_SHOWN_BYTES_MAX + 1)), None, id="many bytes"),
    ],
)
def test_a_large_body_is_left_out(body: TextBody | BytesBody, expected: str | None) -> None:
    found = shown(encode(JmsMessage(body)), QUEUE, now_ms=0)
    assert found["body"] == expected


def test_only_a_small_body_is_decoded() -> None:
    values = MapBody({"a": "x" * JMS_DECODED_BYTES_MAX})
    found = shown(encode(JmsMessage(values)), QUEUE, now_ms=0)
    assert found["contentType"] == "application/vnd.amqp.body"


def test_a_message_that_is_none_of_jms_is_reported() -> None:
    found = shown(b"\0\0", QUEUE, now_ms=0)
    assert found["problem"]
    assert found["body"] is None
