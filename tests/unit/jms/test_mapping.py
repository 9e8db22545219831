"""Whole messages, both ways: JMS to AMQP to JMS changes nothing, and hostile bytes are refused."""

from __future__ import annotations

import contextlib
import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.types import Byte, Char, Float, Int, Map, Short, Symbol, Timestamp, UInt
from broker.jms import (
    NON_PERSISTENT,
    PERSISTENT,
    BodySection,
    BytesBody,
    Decoder,
    Destination,
    DestinationType,
    JmsMessage,
    MapBody,
    MappingError,
    NoBody,
    ObjectBody,
    Profile,
    SerializedBody,
    StreamBody,
    TextBody,
    decode,
    encode,
    stamp,
)
from tests.support.amqp_values import scalars, values
from tests.support.jms import (
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    SEQUENCE,
    VALUE,
    annotations_of,
    application_of,
    bodies_of,
    encoded,
    header_of,
    joined,
    properties_of,
    sections_of,
    told,
)
from tests.support.tidy import ROOT

NOW: Final = 1_700_000_000_000
CONSUMER: Final = Destination("here", DestinationType.TOPIC)


def test_the_page_converts_a_message_there_and_back() -> None:
    page = (ROOT / "docs" / "jms" / "mapping.md").read_text()
    (example,) = re.findall(r'```python title="convert.py"\n(.*?)```', page, re.DOTALL)
    exec(example, {})


def test_three_lines_convert_a_message_there_and_back() -> None:
    message = JmsMessage(TextBody("hello"), properties={"colour": "red", "JMSXGroupID": "g"})
    stamp(message, now_ms=NOW, message_id="ID:1", destination=Destination("orders"))
    received = decode(encode(message), now_ms=NOW + 5)
    assert isinstance(received.body, TextBody)
    assert received.body.text == "hello"
    assert received.body_section is BodySection.VALUE
    assert told(received) == told(message)


@pytest.mark.requirement("MAP-01", "MAP-03", "MAP-04", "MAP-05", "MAP-06", "MAP-07", "MAP-08")
def test_what_is_sent_section_by_section() -> None:
    message = JmsMessage(BytesBody(b"x"), properties={"own": Int(1), "JMSXUserID": "me"})
    message.reply_to = Destination("answers", DestinationType.TEMPORARY_QUEUE)
    message.type = "kind"
    message.delivery_mode = NON_PERSISTENT
    message.time_to_live = 60
    stamp(
        message,
        now_ms=NOW,
        message_id="ID:AMQP_BINARY:AB",
        destination=Destination("a", DestinationType.TOPIC),
        delivery_delay=10,
    )
    data = encode(message)
    assert [code for code, _ in sections_of(data)] == [0x70, 0x72, 0x73, 0x74, 0x75]
    assert header_of(data)["durable"] is False
    assert repr(header_of(data)["ttl"]) == "UInt(60)"
    assert annotations_of(data) == {
        "x-opt-jms-msg-type": Byte(3),
        "x-opt-jms-dest": Byte(1),
        "x-opt-jms-reply-to": Byte(2),
        "x-opt-delivery-time": NOW + 10,
    }
    assert properties_of(data) == {
        "message-id": b"\xab",
        "user-id": b"me",
        "to": "a",
        "subject": "kind",
        "reply-to": "answers",
        "content-type": Symbol("application/octet-stream"),
        "absolute-expiry-time": Timestamp(NOW + 60),
        "creation-time": Timestamp(NOW),
    }
    assert application_of(data) == {"own": Int(1)}
    assert bodies_of(data) == [(DATA, b"x")]


@pytest.mark.requirement("MAP-06")
def test_jms_amqp_ttl_is_no_application_property() -> None:
    message = JmsMessage(NoBody(), properties={"JMS_AMQP_TTL": 7})
    data = encode(message)
    assert application_of(data) == {}
    assert repr(header_of(data)["ttl"]) == "UInt(7)"


@pytest.mark.requirement("MAP-03")
@pytest.mark.parametrize(
    ("subject", "annotation", "in_wd10", "in_early"),
    [
        ("s", None, "s", "s"),
        (None, "a", "a", "a"),
        ("s", "a", "s", "a"),
        (None, None, None, None),
        ("", "a", "", "a"),
        ("s", 1, "s", "s"),
    ],
)
def test_jms_type_is_read_where_either_profile_has_it(
    subject: str | None, annotation: object, in_wd10: str | None, in_early: str | None
) -> None:
    annotations = {} if annotation is None else {"x-opt-jms-type": annotation}
    data = encoded(annotations=annotations, properties={"subject": subject})
    assert decode(data, now_ms=NOW).type == in_wd10
    early = decode(data, now_ms=NOW, profile=Profile.EARLY)
    assert early.type == in_early
    assert early.subject == subject


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize("profile", list(Profile), ids=[profile.value for profile in Profile])
def test_the_consumer_fills_in_what_a_message_leaves_out(profile: Profile) -> None:
    bare = decode(b"", now_ms=NOW, consumer=CONSUMER, profile=profile)
    assert bare.destination == CONSUMER
    assert bare.reply_to is None
    data = encoded(properties={"to": "a", "reply-to": "b"})
    told_half = decode(data, now_ms=NOW, consumer=CONSUMER, profile=profile)
    assert told_half.destination == Destination("a", DestinationType.TOPIC)
    assert told_half.reply_to == Destination("b", DestinationType.TOPIC)
    annotations: dict[str, object] = {"x-opt-jms-dest": Byte(2), "x-opt-reply-type": "queue"}
    data = encoded(properties={"to": "a", "reply-to": "b"}, annotations=annotations)
    all_told = decode(data, now_ms=NOW, consumer=CONSUMER, profile=profile)
    assert all_told.destination == Destination("a", DestinationType.TEMPORARY_QUEUE)
    assert all_told.reply_to == Destination("b", DestinationType.QUEUE)


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize("annotation", [NOW + 5, Timestamp(NOW + 5)], ids=["long", "timestamp"])
def test_the_delivery_time_is_annotated_or_that_of_sending(annotation: object) -> None:
    properties: dict[str, object] = {"creation-time": Timestamp(NOW)}
    assert decode(encoded(properties=properties), now_ms=0).delivery_time == NOW
    annotations = {"x-opt-delivery-time": annotation}
    data = encoded(properties=properties, annotations=annotations)
    assert decode(data, now_ms=0).delivery_time == NOW + 5


# absolute-expiry-time and ttl, None for absent; JMSExpiration of a message received at NOW
EXPIRATIONS: Final = [
    pytest.param(5000, None, 5000, id="the absolute time"),
    pytest.param(5000, 60, 5000, id="the absolute time, whatever the ttl"),
    pytest.param(0, 60, 0, id="an absolute time of 0, whatever the ttl"),
    pytest.param(-1, 60, -1, id="an absolute time before 1970, whatever the ttl"),
    pytest.param(None, 60, NOW + 60, id="the ttl from now on"),
    pytest.param(None, 0, 0, id="never: a ttl of 0"),
    pytest.param(None, None, 0, id="never: neither"),
]


@pytest.mark.requirement("MAP-04", "MAP-08")
@pytest.mark.parametrize(("absolute_ms", "ttl", "expected"), EXPIRATIONS)
def test_when_a_message_expires(absolute_ms: int | None, ttl: int | None, expected: int) -> None:
    absolute = None if absolute_ms is None else Timestamp(absolute_ms)
    data = encoded(
        header={"ttl": None if ttl is None else UInt(ttl)},
        properties={"absolute-expiry-time": absolute},
    )
    assert decode(data, now_ms=NOW).expiration == expected


@pytest.mark.requirement("MAP-04", "MAP-08")
def test_jms_amqp_ttl_gives_an_expiration() -> None:
    message = JmsMessage(NoBody(), properties={"JMS_AMQP_TTL": 60})
    assert decode(encode(message), now_ms=NOW).expiration == NOW + 60


@pytest.mark.requirement("MAP-06")
def test_other_vendor_properties_are_read_untouched() -> None:
    given: dict[str, object] = {"JMS_AMQP_OTHER": 1, "JMSXState": Int(2), "own": None}
    received = decode(encoded((VALUE, None), application=given), now_ms=NOW)
    assert received.properties == given
    assert received.get_property("JMS_AMQP_OTHER") == 1


@pytest.mark.requirement("MAP-07")
def test_the_annotation_counts_more_than_the_body() -> None:
    data = encoded((VALUE, None), annotations={"x-opt-jms-msg-type": Byte(0)})
    assert isinstance(decode(data, now_ms=NOW).body, NoBody)
    data = encoded((DATA, b"x"), properties={"content-type": Symbol("text/plain")})
    assert isinstance(decode(data, now_ms=NOW).body, TextBody)
    data = encoded(
        (DATA, b"x"),
        annotations={"x-opt-jms-msg-type": Byte(3)},
        properties={"content-type": Symbol("text/plain")},
    )
    message = decode(data, now_ms=NOW)
    assert isinstance(message.body, BytesBody)
    assert message.body_section is BodySection.DATA
    assert message.content_type == "text/plain"


def test_sections_that_are_not_for_jms_are_gone_past() -> None:
    data = joined(
        (HEADER, [True]),
        (DELIVERY_ANNOTATIONS, Map([])),
        (DATA, b"a"),
        (DATA, b"b"),
        (FOOTER, Map([])),
    )
    received = decode(data, now_ms=NOW)
    assert repr(received.body) == "BytesBody(b'ab')"
    assert received.delivery_mode == PERSISTENT


def test_the_content_type_of_serialized_objects_is_theirs_alone() -> None:
    java = "application/x-java-serialized-object"
    typed = JmsMessage(ObjectBody(1), profile=Profile.EARLY)
    typed.set_property("JMS_AMQP_CONTENT_TYPE", java)
    serialized = JmsMessage(SerializedBody(), profile=Profile.EARLY)
    assert serialized.content_type == java
    serialized.set_property("JMS_AMQP_CONTENT_TYPE", "text/plain")
    for message in (typed, serialized):
        with pytest.raises(MappingError, match=java):
            encode(message)


JAVA: Final = Symbol("application/x-java-serialized-object")
OCTET_STREAM: Final = Symbol("application/octet-stream")
PLAIN: Final = Symbol("text/plain; charset=iso-8859-1")

# x-opt-jms-msg-type, section and content-type received; section and content-type sent anew
SENT_ANEW: Final = [
    pytest.param(1, DATA, b"\xac", None, DATA, JAVA, id="object: no type"),
    pytest.param(1, DATA, b"\xac", JAVA, DATA, JAVA, id="object: its type"),
    pytest.param(
        *(None, DATA, b"\xac", Symbol("Application/X-Java-Serialized-Object"), DATA, JAVA),
        id="object: its type in another case",
    ),
    pytest.param(
        *(None, DATA, b"\xac", Symbol(f"{JAVA}; v=1"), DATA, JAVA), id="object: with a parameter"
    ),
    pytest.param(1, DATA, b"\xac", OCTET_STREAM, DATA, JAVA, id="object: another type"),
    pytest.param(1, VALUE, "x", JAVA, VALUE, None, id="object in a value: the type of Java's"),
    pytest.param(None, DATA, b"\xe9", PLAIN, VALUE, None, id="text out of data"),
    pytest.param(5, VALUE, "x", PLAIN, VALUE, PLAIN, id="text out of a value: as it was"),
    pytest.param(5, VALUE, "x", JAVA, VALUE, None, id="text: the type of Java's objects"),
    pytest.param(None, VALUE, b"x", None, DATA, OCTET_STREAM, id="bytes out of a value"),
    pytest.param(3, DATA, b"x", None, DATA, OCTET_STREAM, id="bytes: no type"),
    pytest.param(3, DATA, b"x", PLAIN, DATA, PLAIN, id="bytes: as it was"),
    pytest.param(4, SEQUENCE, [1], PLAIN, VALUE, None, id="stream out of a sequence"),
]


@pytest.mark.requirement("MAP-07")
@pytest.mark.parametrize("profile", list(Profile), ids=[profile.value for profile in Profile])
@pytest.mark.parametrize(("kind", "code", "value", "given", "sent_as", "sent"), SENT_ANEW)
def test_the_content_type_of_a_message_that_is_sent_anew(
    kind: int | None,
    code: int,
    value: object,
    given: Symbol | None,
    sent_as: int,
    sent: Symbol | None,
    profile: Profile,
) -> None:
    annotations: dict[str, object] = {} if kind is None else {"x-opt-jms-msg-type": Byte(kind)}
    data = encoded((code, value), annotations=annotations, properties={"content-type": given})
    received = decode(data, now_ms=NOW, profile=profile)
    stamp(received, now_ms=NOW, message_id="ID:2", destination=Destination("b"))
    again = encode(received)
    assert [section for section, _ in bodies_of(again)] == [sent_as]
    assert properties_of(again).get("content-type") == sent
    assert repr(decode(again, now_ms=NOW, profile=profile).body) == repr(received.body)


def unencodable() -> list[JmsMessage]:
    """Return messages that have no encoding, each for a reason of its own."""
    long = JmsMessage(MapBody({"number": 2**63}))
    surrogate = JmsMessage(TextBody("\ud800"))
    symbol = JmsMessage(NoBody())
    symbol.content_type = "é"
    no_prefix = JmsMessage(NoBody())
    no_prefix.message_id = "1"
    deep: list[object] = []
    for _ in range(40):
        deep = [deep, 1]
    nested, unknown = JmsMessage(ObjectBody(deep)), JmsMessage(ObjectBody(object()))
    return [long, surrogate, symbol, no_prefix, nested, unknown]


@pytest.mark.parametrize("message", unencodable(), ids=lambda message: repr(message.body)[:20])
def test_what_cannot_be_encoded_is_refused(message: JmsMessage) -> None:
    with pytest.raises(MappingError):
        encode(message)


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        joined((VALUE, 1), (VALUE, 1)),
        joined((DATA, "text")),
        encoded(application={"own": 1})[:-1],
        b"\x00\x53\x74\xc1\x05\x04\xa1\x00\x40\xa1\x00\x40",
        b"\x00\x53\x74\xc1\x07\x04\xa1\x00\x40\xa1\x00\x40",
        b"\x00\x53\x74\xc1\x03\x02\x40\x40",
        encoded(annotations={"x-opt-jms-msg-type": Byte(9)}),
        b"\x00\x53\x72\xc1\x09\x04\xa3\x01x\x40\xa3\x01x\x40",
        b"\x00\x53\x72\xc1\x03\x02\x45\x40",
        encoded(properties={"to": 1}),
    ],
    ids=repr,
)
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(MappingError):
        decode(data, now_ms=NOW)


@given(st.binary(max_size=64), st.sampled_from(Profile))
def test_any_bytes_end_in_a_message_or_an_error_of_the_mapping(
    data: bytes, profile: Profile
) -> None:
    with contextlib.suppress(MappingError):
        decode(data, now_ms=NOW, profile=profile)


# ---- JMS to AMQP to JMS is identity

TEXTS: Final = st.text(max_size=8)
JMS_VALUES: Final[st.SearchStrategy[object]] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**7), 2**7 - 1).map(Byte)
    | st.integers(-(2**15), 2**15 - 1).map(Short)
    | st.integers(-(2**31), 2**31 - 1).map(Int)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(width=32).map(Float)
    | st.floats()
    | st.integers(0, 0xFFFF).map(Char)
    | TEXTS
    | st.binary(max_size=8)
)
BODIES: Final = (
    st.builds(NoBody)
    | st.builds(TextBody, st.none() | st.text())
    | st.builds(BytesBody, st.binary())
    | st.builds(MapBody, st.dictionaries(TEXTS, JMS_VALUES, max_size=5))
    | st.builds(StreamBody, st.lists(JMS_VALUES, max_size=5))
    | st.builds(SerializedBody, st.binary(min_size=1))
    | st.builds(ObjectBody, values())
)
DESTINATIONS: Final = st.none() | st.builds(Destination, TEXTS, st.sampled_from(DestinationType))
MOMENTS: Final = st.integers(0, 2**62)
INTS: Final = st.integers(-(2**31), 2**31 - 1)

TYPED_IDS: Final = (
    st.uuids().map("ID:AMQP_UUID:{}".format)
    | st.integers(0, 2**64 - 1).map("ID:AMQP_ULONG:{}".format)
    | st.binary(max_size=8).map(lambda raw: f"ID:AMQP_BINARY:{raw.hex().upper()}")
)
"""Identifiers in the spelling that JMS clients see; other spellings are read back in this one."""

ESCAPED: Final = {
    Profile.WD10: st.sampled_from(
        ["ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_STRING:"]
    ),
    Profile.EARLY: st.sampled_from(["ID:AMQP_STRING:AMQP_UUID:x", "ID:AMQP_STRING:AMQP_STRING:"]),
}
PLAIN_IDS: Final = st.text("abc:-", max_size=6).map("ID:".__add__)


@st.composite
def messages(draw: st.DrawFn) -> JmsMessage:
    """Draw any message that an application can send or has received."""
    profile = draw(st.sampled_from(Profile))
    message = JmsMessage(draw(BODIES), profile=profile)
    ids = st.none() | PLAIN_IDS | TYPED_IDS | ESCAPED[profile]
    no_prefix = st.just("ID:AMQP_NO_PREFIX:x") if profile is Profile.WD10 else st.none()
    message.message_id = draw(ids | no_prefix)
    message.correlation_id = draw(ids | TEXTS.filter(lambda text: not text.startswith("ID:")))
    message.timestamp = draw(MOMENTS)
    message.delivery_time = draw(st.just(message.timestamp) | MOMENTS.filter(bool))
    message.expiration = draw(MOMENTS)
    if message.expiration:
        message.time_to_live = draw(st.integers(0, 2**32 - 1))
    message.destination = draw(DESTINATIONS)
    message.reply_to = draw(DESTINATIONS)
    message.delivery_mode = draw(st.sampled_from([PERSISTENT, NON_PERSISTENT]))
    message.type = draw(st.none() | TEXTS)
    message.priority = draw(st.integers(0, 9))
    message.delivery_count = draw(st.integers(1, 2**31 - 1))
    message.first_acquirer = draw(st.booleans())
    names = {
        "JMSXUserID": TEXTS,
        "JMSXAppID": TEXTS,
        "JMSXGroupID": TEXTS,
        "JMSXGroupSeq": INTS.map(Int),
        "JMS_AMQP_REPLY_TO_GROUP_ID": TEXTS,
    }
    # in EARLY a message without a type takes its subject as type (MAP-03)
    if profile is Profile.EARLY and message.type is not None:
        names["JMS_AMQP_SUBJECT"] = TEXTS
    for name, value in draw(st.fixed_dictionaries({}, optional=names)).items():
        message.set_property(name, value)
    own = st.dictionaries(TEXTS.map("own".__add__), JMS_VALUES | scalars(), max_size=5)
    for name, value in draw(own).items():
        message.set_any_property(name, value)
    return message


@pytest.mark.requirement(
    *("MAP-01", "MAP-02", "MAP-03", "MAP-04", "MAP-05", "MAP-06", "MAP-07"),
)
@given(messages(), MOMENTS)
def test_jms_to_amqp_to_jms_is_identity(message: JmsMessage, now_ms: int) -> None:
    data = encode(message)
    received = decode(data, now_ms=now_ms, profile=message.profile)
    assert told(received) == told(message)
    assert encode(received) == data


@given(st.lists(messages(), min_size=1, max_size=3), st.permutations([0, 0, 1, 1, 2, 2]))
def test_one_decoder_decodes_messages_as_each_alone(
    given: list[JmsMessage], order: list[int]
) -> None:
    """A decoder reuses parts of the previous message only if the next one has the same bytes."""
    parts = [encode(given[at % len(given)]) for at in order] + [b"\x00garbage"]
    decoder = Decoder(consumer=CONSUMER)
    data = b"".join(parts)
    start = 0
    for part in parts:
        alone: JmsMessage | str
        try:
            alone = decode(part, now_ms=NOW, consumer=CONSUMER)
        except MappingError as error:
            alone = str(error)
        end = start + len(part)
        if isinstance(alone, str):
            with pytest.raises(MappingError, match=re.escape(alone)):
                decoder.decode(data, start, end, now_ms=NOW)
        else:
            assert told(decoder.decode(data, start, end, now_ms=NOW)) == told(alone)
            at = decoder.sections.application_properties
            assert (at < 0) == (not alone.properties)
            assert at < 0 or data[at : at + 1] in b"\xc1\xd1"
        start = end


def test_whoever_asks_for_neither_properties_nor_body_gets_the_headers() -> None:
    message = JmsMessage(MapBody({"a": 1}), properties={"colour": "red", "JMSXGroupID": "g"})
    stamp(message, now_ms=NOW, message_id="ID:1", destination=CONSUMER)
    data = encode(message)
    headers = decode(data, now_ms=NOW, properties=False, body=False)
    assert headers.properties == {}
    assert isinstance(headers.body, NoBody)
    whole = decode(data, now_ms=NOW)
    for name in ("message_id", "timestamp", "destination", "group_id", "delivery_count"):
        assert getattr(headers, name) == getattr(whole, name)
