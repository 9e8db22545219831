"""Bodies of messages over HTTP: each kind of message, and large ones."""

from __future__ import annotations

import math
import time
import uuid

import pytest

from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.sections import split
from broker.amqp.types import Array, Byte, Char, Described, Float, Map, Symbol, ULong
from broker.http.jms_content import JmsContent, decoded_content, plain_value, undecoded_content
from broker.jms import (
    Body,
    BytesBody,
    JmsMessage,
    MapBody,
    NoBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
    encode,
)

pytestmark = pytest.mark.requirement("MAP-09")

BODIES = [
    (TextBody("é"), {}, "text/plain; charset=utf-8", "TextMessage", "é".encode()),
    (
        TextBody("<a/>"),
        {"SOAPJMS_contentType": "text/xml; charset=latin-1"},
        "text/xml; charset=utf-8",
        "TextMessage",
        b"<a/>",
    ),
    (TextBody(None), {}, "text/plain; charset=utf-8", "TextMessage", b""),
    (BytesBody(b"\0"), {}, "application/octet-stream", "BytesMessage", b"\0"),
    (
        BytesBody(b"<a/>"),
        {"SOAPJMS_contentType": 'application/soap+xml; action="x"'},
        'application/soap+xml; action="x"',
        "BytesMessage",
        b"<a/>",
    ),
    (
        BytesBody(b""),
        {"SOAPJMS_contentType": "text/html\r\nSet-Cookie: a"},
        "application/octet-stream",
        "BytesMessage",
        b"",
    ),
    (NoBody(), {}, "application/octet-stream", "Message", b""),
    (
        SerializedBody(b"java"),
        {},
        "application/x-java-serialized-object",
        "ObjectMessage",
        b"java",
    ),
    (MapBody({"a": Byte(1)}), {}, "application/json", "MapMessage", b'{"a": 1}'),
    (StreamBody([1, "x"]), {}, "application/json", "StreamMessage", b'[1, "x"]'),
    (ObjectBody([None]), {}, "application/json", "ObjectMessage", b"[null]"),
]


@pytest.mark.parametrize(("body", "properties", "media_type", "kind", "data"), BODIES)
def test_each_kind_of_message(
    body: Body, properties: dict[str, object], media_type: str, kind: str, data: bytes
) -> None:
    found = decoded_content(JmsMessage(body, properties=properties))
    assert found == JmsContent(media_type=media_type, kind=kind, data=data)
    assert found.size() == len(data)


def test_the_type_of_the_message_is_that_of_its_bytes() -> None:
    message = JmsMessage(BytesBody(b""))
    message.content_type = "image/png"
    assert decoded_content(message).media_type == "image/png"
    message.content_type = "nonsense"
    assert decoded_content(message).media_type == "application/octet-stream"


@pytest.mark.attack("C7")
@pytest.mark.parametrize(
    ("given", "media_type"),
    [
        pytest.param("a/b/c", "a/b/c", id="a slash in the second part"),
        pytest.param("/b", "application/octet-stream", id="no first part"),
        pytest.param("a" * 128 + "/b", "application/octet-stream", id="a long first part"),
        pytest.param("a/" + "b" * 201, "application/octet-stream", id="a long second part"),
        pytest.param("/" * 200_000 + "\n", "application/octet-stream", id="nothing but slashes"),
    ],
)
def test_a_type_that_a_response_repeats_is_short(given: str, media_type: str) -> None:
    message = JmsMessage(BytesBody(b""), properties={"SOAPJMS_contentType": given})
    began_s = time.process_time()
    assert decoded_content(message).media_type == media_type
    assert time.process_time() - began_s < 0.2


UNDECODED = [
    (BytesBody(bytes(300)), "application/octet-stream", "BytesMessage", bytes(300)),
    (BytesBody(bytes(30)), "application/octet-stream", "BytesMessage", bytes(30)),
    (TextBody("x" * 300), "text/plain; charset=utf-8", "TextMessage", b"x" * 300),
    (MapBody({"a": 1}), "application/vnd.amqp.body", "Message", None),
]


@pytest.mark.parametrize(("body", "media_type", "kind", "data"), UNDECODED)
def test_a_body_that_is_not_decoded(
    body: Body, media_type: str, kind: str, data: bytes | None
) -> None:
    message = JmsMessage(body)
    encoded = encode(message)
    sections = split(encoded, 0, len(encoded))
    found = undecoded_content(message, encoded, sections)
    expected = encoded[sections.body :] if data is None else data
    assert found == JmsContent(media_type=media_type, kind=kind, data=expected)


def test_a_body_of_several_sections_stays_encoded() -> None:
    out = BytesWriter()
    for _ in range(2):
        put_descriptor(out, 0x75)
        put_value(out, b"part")
    encoded = out.getvalue()
    found = undecoded_content(JmsMessage(NoBody()), encoded, split(encoded, 0, len(encoded)))
    assert (found.media_type, found.data) == ("application/vnd.amqp.body", encoded)


def test_a_message_without_a_body_has_no_bytes() -> None:
    found = undecoded_content(JmsMessage(NoBody()), b"", split(b"", 0, 0))
    assert (found.media_type, found.data) == ("application/octet-stream", b"")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (b"\0", "AA=="),
        (1.5, 1.5),
        (Float(0.5), 0.5),
        (math.inf, "inf"),
        (math.nan, "nan"),
        (Char(0x41), "A"),
        (ULong(2**64 - 1), 2**64 - 1),
        (Map([("a", 1), (2, [b""])]), {"a": 1, "2": [""]}),
        (Array(0x71, [1, 2]), [1, 2]),
        (Described(ULong(1), "x"), "x"),
        (Symbol("s"), "s"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_values_as_json(value: object, plain: object) -> None:
    assert plain_value(value) == plain
