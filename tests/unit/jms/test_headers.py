"""Header and properties, field for field: WD10 3.2.1, 3.2.2, 3.3.1, 3.3.2, EARLY alike, PROPS."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.sections import split
from broker.amqp.types import Symbol, Timestamp, UByte, UInt, ULong, UShort
from broker.jms import (
    NON_PERSISTENT,
    PERSISTENT,
    Destination,
    JmsMessage,
    MappingError,
    NoBody,
    Profile,
)
from broker.jms.headers import (
    put_message_header,
    put_properties,
    read_header,
    read_properties,
    signed_sequence,
    unsigned_sequence,
)
from tests.support.jms import encoded, header_of, properties_of

NOTHING: Final[dict[str, object]] = {}


def message(profile: Profile = Profile.WD10, **attributes: object) -> JmsMessage:
    made = JmsMessage(NoBody(), profile=profile)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def written_header(made: JmsMessage) -> dict[str, object]:
    out = BytesWriter()
    put_message_header(out, made)
    return header_of(out.getvalue())


def written_properties(made: JmsMessage) -> dict[str, object]:
    out = BytesWriter()
    put_properties(out, made, content_type=made.content_type)
    return properties_of(out.getvalue())


# ---- the header section

RECEIVED: Final = [
    pytest.param({"durable": True}, "delivery_mode", PERSISTENT, id="durable: persistent"),
    pytest.param({"durable": False}, "delivery_mode", NON_PERSISTENT, id="not durable"),
    pytest.param({}, "delivery_mode", NON_PERSISTENT, id="durable unset: not persistent"),
    pytest.param({"priority": UByte(0)}, "priority", 0, id="lowest priority"),
    pytest.param({"priority": UByte(9)}, "priority", 9, id="highest priority"),
    pytest.param({"priority": UByte(10)}, "priority", 9, id="above nine: nine"),
    pytest.param({"priority": UByte(255)}, "priority", 9, id="the largest: nine"),
    pytest.param({}, "priority", 4, id="priority unset: four"),
    pytest.param({"ttl": UInt(60)}, "time_to_live", 60, id="ttl"),
    pytest.param({}, "time_to_live", 0, id="no ttl"),
    pytest.param({"ttl": UInt(60)}, "amqp_ttl", None, id="JMS_AMQP_TTL is an application's"),
    pytest.param({"first-acquirer": True}, "first_acquirer", True, id="first-acquirer"),
    pytest.param({}, "first_acquirer", False, id="first-acquirer unset"),
    pytest.param({}, "delivery_count", 1, id="delivery-count unset: the first"),
    pytest.param({"delivery-count": UInt(0)}, "delivery_count", 1, id="the first attempt"),
    pytest.param({"delivery-count": UInt(1)}, "delivery_count", 2, id="the second"),
    pytest.param(
        {"delivery-count": UInt(2**32 - 1)}, "delivery_count", 2**31 - 1, id="no more than an int"
    ),
    pytest.param({"delivery-count": UInt(0)}, "redelivered", False, id="not redelivered"),
    pytest.param({"delivery-count": UInt(1)}, "redelivered", True, id="redelivered"),
]


@pytest.mark.requirement("MAP-04", "MAP-05", "MAP-06")
@pytest.mark.parametrize(("header", "attribute", "value"), RECEIVED)
def test_what_a_received_header_says(
    header: dict[str, object], attribute: str, value: object
) -> None:
    data = encoded(header=header)
    read = message()
    read_header(read, data, split(data, 0, len(data)).header, len(data))
    assert getattr(read, attribute) == value


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize("data", [b"", encoded(properties={})], ids=["nothing", "properties"])
def test_a_message_without_a_header_is_not_persistent(data: bytes) -> None:
    read = message()
    read_header(read, data, split(data, 0, len(data)).header, len(data))
    assert (read.delivery_mode, read.priority, read.delivery_count) == (NON_PERSISTENT, 4, 1)


@pytest.mark.requirement("MAP-04", "MAP-05", "MAP-08")
@pytest.mark.parametrize(
    ("made", "header"),
    [
        (message(delivery_mode=NON_PERSISTENT), {}),
        (message(), {"durable": True}),
        (message(priority=9), {"durable": True, "priority": UByte(9)}),
        (
            message(delivery_mode=NON_PERSISTENT, time_to_live=7),
            {"durable": False, "priority": UByte(4), "ttl": UInt(7)},
        ),
        (
            message(delivery_count=3),
            {
                "durable": True,
                "priority": UByte(4),
                "first-acquirer": False,
                "delivery-count": UInt(2),
            },
        ),
    ],
)
def test_what_is_sent_in_the_header(made: JmsMessage, header: dict[str, object]) -> None:
    assert written_header(made) == header


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize(
    "made", [message(priority=10), message(priority=-1), message(delivery_mode=0)]
)
def test_jms_knows_two_delivery_modes_and_ten_priorities(made: JmsMessage) -> None:
    with pytest.raises(MappingError, match="JMS"):
        written_header(made)


# ---- the properties section; ids have their own tables in test_ids.py

FIELDS: Final = [
    pytest.param("message_id", "ID:1", "message-id", "ID:1", id="JMSMessageID"),
    pytest.param("user_id", "grüße", "user-id", "grüße".encode(), id="JMSXUserID: UTF-8"),
    pytest.param("type", "kind", "subject", "kind", id="JMSType"),
    pytest.param("type", "", "subject", "", id="JMSType: empty"),
    pytest.param("correlation_id", "x", "correlation-id", "x", id="JMSCorrelationID"),
    pytest.param("content_type", "a/b", "content-type", Symbol("a/b"), id="content-type"),
    pytest.param("content_encoding", "gz", "content-encoding", Symbol("gz"), id="encoding"),
    pytest.param("expiration", 5, "absolute-expiry-time", Timestamp(5), id="JMSExpiration"),
    pytest.param("timestamp", 5, "creation-time", Timestamp(5), id="JMSTimestamp"),
    pytest.param("group_id", "g", "group-id", "g", id="JMSXGroupID"),
    pytest.param("group_sequence", 0, "group-sequence", UInt(0), id="JMSXGroupSeq"),
    pytest.param("group_sequence", -1, "group-sequence", UInt(2**32 - 1), id="the last group-seq"),
    pytest.param("reply_to_group_id", "g", "reply-to-group-id", "g", id="REPLY_TO_GROUP_ID"),
]


@pytest.mark.requirement("MAP-03", "MAP-04", "MAP-05", "MAP-06")
@pytest.mark.parametrize(("attribute", "value", "field", "sent"), FIELDS)
def test_a_header_is_a_field_of_properties(
    attribute: str, value: object, field: str, sent: object
) -> None:
    made = message()
    setattr(made, attribute, value)
    assert written_properties(made) == {field: sent}
    data = encoded(properties={field: sent})
    read = message()
    assert read_properties(read, data, 3, len(data), known=NOTHING) == (None, None)
    attribute = "subject" if attribute == "type" else attribute  # read later as type or subject
    assert getattr(read, attribute) == value


@pytest.mark.requirement("MAP-04")
def test_addresses_are_fields_of_properties() -> None:
    made = message(destination=Destination("a"), reply_to=Destination("b"))
    assert written_properties(made) == {"to": "a", "reply-to": "b"}
    data = encoded(properties={"to": "a", "reply-to": "b"})
    assert read_properties(message(), data, 3, len(data), known=NOTHING) == ("a", "b")
    assert read_properties(message(), b"", -1, 0, known=NOTHING) == (None, None)


@pytest.mark.requirement("MAP-03", "MAP-06")
def test_early_has_the_subject_for_itself() -> None:
    made = message(Profile.EARLY, type="kind", subject="about")
    assert written_properties(made) == {"subject": "about"}


@pytest.mark.requirement("MAP-04")
def test_zero_is_how_jms_writes_that_a_time_is_not_set() -> None:
    assert written_properties(message(expiration=0, timestamp=0)) == {}
    data = encoded(properties={})
    read = message()
    read_properties(read, data, 3, len(data), known=NOTHING)
    assert (read.expiration, read.timestamp) == (0, 0)


@pytest.mark.requirement("MAP-02")
@pytest.mark.parametrize(
    ("annotation", "text"), [(True, "x"), (False, "ID:x"), (None, "ID:x"), ("true", "ID:x")]
)
def test_early_asks_an_annotation_whose_a_correlation_id_is(annotation: object, text: str) -> None:
    data = encoded(properties={"correlation-id": "x"})
    read = message(Profile.EARLY)
    read_properties(read, data, 3, len(data), known={"x-opt-app-correlation-id": annotation})
    assert read.correlation_id == text


@pytest.mark.requirement("MAP-05")
def test_a_user_id_that_is_not_utf_8_is_read_as_java_does() -> None:
    data = encoded(properties={"user-id": b"a\xffb"})
    read = message()
    read_properties(read, data, 3, len(data), known=NOTHING)
    assert read.user_id == "a\ufffdb"


# a field of each section, and a value of another type than it has
WRONG_HEADER: Final[list[tuple[str, object]]] = [
    ("durable", UInt(1)),
    ("priority", "9"),
    ("ttl", "soon"),
    ("ttl", ULong(2**32)),
    ("first-acquirer", "true"),
    ("delivery-count", True),
]
WRONG_PROPERTIES: Final[list[tuple[str, object]]] = [
    ("message-id", 42),
    ("message-id", Symbol("x")),
    ("user-id", "me"),
    ("to", Symbol("queue")),
    ("subject", b"about"),
    ("reply-to", 1),
    ("correlation-id", UInt(1)),
    ("content-type", "text/plain"),
    ("content-encoding", "gzip"),
    ("absolute-expiry-time", ULong(5)),
    ("creation-time", 5),
    ("group-id", b"g"),
    ("group-sequence", "1"),
    ("reply-to-group-id", Symbol("g")),
]


@pytest.mark.requirement("MAP-04", "MAP-05", "MAP-06")
@pytest.mark.parametrize(("field", "value"), WRONG_HEADER, ids=[str(x) for x in WRONG_HEADER])
def test_the_error_names_the_field_of_the_header(field: str, value: object) -> None:
    data = encoded(header={field: value})
    with pytest.raises(MappingError, match=f"header: {field}: "):
        read_header(message(), data, 3, len(data))


@pytest.mark.requirement("MAP-04")
@pytest.mark.parametrize("number", [UInt(256), UInt(2**32 - 1)], ids=repr)
def test_a_priority_that_does_not_fit_its_field_is_refused(number: object) -> None:
    data = encoded(header={"priority": number})
    with pytest.raises(MappingError, match=r"header: priority: \d+ does not fit 8 bits"):
        read_header(message(), data, 3, len(data))


@pytest.mark.requirement("MAP-01", "MAP-02", "MAP-03", "MAP-04", "MAP-05", "MAP-06")
@pytest.mark.parametrize(
    ("field", "value"), WRONG_PROPERTIES, ids=[str(x) for x in WRONG_PROPERTIES]
)
def test_the_error_names_the_field_of_the_properties(field: str, value: object) -> None:
    data = encoded(properties={field: value})
    with pytest.raises(MappingError, match=f"properties: {field}: "):
        read_properties(message(), data, 3, len(data), known=NOTHING)


@pytest.mark.requirement("MAP-04", "MAP-05")
@pytest.mark.parametrize("number", [UByte(5), UShort(5), UInt(5), ULong(5)], ids=repr)
def test_a_number_may_be_unsigned_of_any_width(number: object) -> None:
    header = {"priority": number, "ttl": number, "delivery-count": number}
    data = encoded(header=header)
    read = message()
    read_header(read, data, 3, len(data))
    assert (read.priority, read.time_to_live, read.delivery_count) == (5, 5, 6)
    data = encoded(properties={"group-sequence": number})
    read_properties(read, data, 3, len(data), known=NOTHING)
    assert read.group_sequence == 5


@pytest.mark.requirement("MAP-05")
@pytest.mark.parametrize(
    ("unsigned", "signed"),
    [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32 - 2, -2), (2**32 - 1, -1)],
)
def test_group_sequences_beyond_an_int_are_negative(unsigned: int, signed: int) -> None:
    assert signed_sequence(unsigned) == signed
    assert unsigned_sequence(signed) == unsigned
