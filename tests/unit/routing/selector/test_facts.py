"""Values of identifiers in a message: JMS headers, JMSX, application properties of all types."""

import math
import uuid

import pytest

from broker.amqp.types import (
    Byte,
    Char,
    Decimal,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from broker.message import Message
from broker.routing.selector import Facts, parse_selector
from broker.routing.selector.facts import STEPS_MAX
from tests.support.jms import encoded
from tests.support.routing import new_message
from tests.support.selected import selectable

pytestmark = pytest.mark.requirement("RCV-05", "MAP-03", "MAP-04", "MAP-06")


def annotated(jms_type: object, **properties: str) -> Message:
    """Return a message with the annotation x-opt-jms-type, and these properties."""
    return new_message(encoded(annotations={"x-opt-jms-type": jms_type}, properties={**properties}))


# -- identifiers of JMS

IDENTIFIERS = [
    pytest.param(selectable(), "JMSDeliveryMode = 'NON_PERSISTENT'", id="not durable"),
    pytest.param(selectable(durable=True), "JMSDeliveryMode = 'PERSISTENT'", id="durable"),
    pytest.param(selectable(), "JMSPriority = 4", id="default priority"),
    pytest.param(selectable(priority=9), "JMSPriority BETWEEN 8 AND 9", id="priority"),
    pytest.param(selectable(message_id="ID:a-1"), "JMSMessageID = 'ID:a-1'", id="a JMS id"),
    pytest.param(
        selectable(message_id="a"), "JMSMessageID = 'ID:AMQP_NO_PREFIX:a'", id="another string"
    ),
    pytest.param(
        selectable(message_id="ID:AMQP_ULONG:7"),
        "JMSMessageID = 'ID:AMQP_STRING:ID:AMQP_ULONG:7'",
        id="a string like a number",
    ),
    pytest.param(
        selectable(message_id=ULong(2**64 - 1)),
        "JMSMessageID = 'ID:AMQP_ULONG:18446744073709551615'",
        id="a number",
    ),
    pytest.param(
        selectable(message_id=uuid.UUID(int=0xAB)),
        "JMSMessageID = 'ID:AMQP_UUID:00000000-0000-0000-0000-0000000000ab'",
        id="a uuid",
    ),
    pytest.param(
        selectable(message_id=b"\x00\xfe"), "JMSMessageID = 'ID:AMQP_BINARY:00FE'", id="binary"
    ),
    pytest.param(selectable(correlation_id="a"), "JMSCorrelationID = 'a'", id="any correlation"),
    pytest.param(
        selectable(correlation_id=b"\x0a"),
        "JMSCorrelationID = 'ID:AMQP_BINARY:0A'",
        id="binary correlation",
    ),
    pytest.param(
        selectable(correlation_id="ID:AMQP_UUID:x"),
        "JMSCorrelationID = 'ID:AMQP_STRING:ID:AMQP_UUID:x'",
        id="a correlation like a uuid",
    ),
    pytest.param(
        selectable(creation_time=Timestamp(1000)), "JMSTimestamp = 1000", id="a timestamp"
    ),
    pytest.param(selectable(), "JMSTimestamp = 0 AND JMSTimestamp IS NOT NULL", id="no timestamp"),
    pytest.param(selectable(subject="t"), "JMSType = 't'", id="type"),
    pytest.param(annotated("t"), "JMSType = 't'", id="a type that is only annotated"),
    pytest.param(annotated("t", subject=""), "JMSType = ''", id="a type in both: the subject"),
    pytest.param(annotated(1), "JMSType IS NULL", id="an annotated type that is no string"),
    pytest.param(
        selectable(reply_to_group_id="g"),
        "JMS_AMQP_REPLY_TO_GROUP_ID = 'g'",
        id="the group of replies",
    ),
    pytest.param(
        selectable(subject="s"), "JMS_AMQP_REPLY_TO_GROUP_ID IS NULL", id="no group of replies"
    ),
    pytest.param(selectable(group_id="g"), "JMSXGroupID = 'g'", id="group"),
    pytest.param(selectable(group_sequence=UInt(3)), "JMSXGroupSeq = 3", id="sequence"),
    pytest.param(
        selectable(group_sequence=UInt(2**32 - 1)), "JMSXGroupSeq = -1", id="a wrapped sequence"
    ),
    pytest.param(selectable(user_id=b"\xc3\xa9"), "JMSXUserID = 'é'", id="user"),
    pytest.param(
        selectable(user_id=b"\xff"),
        "JMSXUserID IS NOT NULL AND NOT JMSXUserID LIKE '%'",
        id="a user that is no text",
    ),
    pytest.param(selectable(), "JMSXDeliveryCount = 1", id="first delivery"),
    pytest.param(selectable(), "JMSXUserID IS NULL AND JMSType IS NULL", id="nothing set"),
    pytest.param(selectable({"JMSXAppID": "x"}), "JMSXAppID = 'x'", id="an optional JMSX"),
    pytest.param(new_message(b"junk"), "JMSType IS NULL AND a IS NULL", id="no message at all"),
]


@pytest.mark.parametrize(("message", "text"), IDENTIFIERS)
def test_an_identifier_of_jms(message: Message, text: str) -> None:
    assert parse_selector(text).matches(message)


def test_an_entry_that_failed_before_has_a_higher_delivery_count() -> None:
    assert parse_selector("JMSXDeliveryCount = 3").admits(Facts(selectable(), 2))


TYPES = [
    pytest.param(True, "x AND x = TRUE", id="boolean"),
    pytest.param(UByte(255), "x = 255", id="ubyte"),
    pytest.param(UShort(65535), "x = 65535", id="ushort"),
    pytest.param(UInt(2**32 - 1), "x = 4294967295", id="uint"),
    pytest.param(ULong(2**64 - 1), "x > 9223372036854775807", id="ulong"),
    pytest.param(Byte(-1), "x = -1", id="byte"),
    pytest.param(Short(-300), "x = -300", id="short"),
    pytest.param(Int(-70_000), "x = -70000", id="int"),
    pytest.param(-(2**63), "x = -9223372036854775808", id="long"),
    pytest.param(Float(0.5), "x = 0.5", id="float"),
    pytest.param(0.1, "x = 0.1", id="double"),
    pytest.param(math.nan, "x <> x AND NOT x = x", id="NaN"),
    pytest.param(Char(0x1F600), "x = '😀'", id="char"),
    pytest.param(Timestamp(5), "x = 5", id="timestamp"),
    pytest.param(uuid.UUID(int=1), "x = '00000000-0000-0000-0000-000000000001'", id="uuid"),
    pytest.param("é", "x = 'é'", id="string"),
    pytest.param("l" * 300, "x LIKE 'l%l'", id="a long string"),
    pytest.param(Symbol("s"), "x = 's'", id="symbol"),
    pytest.param(b"b", "x IS NOT NULL AND NOT (x = 'b' OR x <> 'b')", id="binary"),
    pytest.param(Decimal(b"1234"), "x IS NOT NULL AND NOT (x = 1 OR x <> 1)", id="decimal"),
    pytest.param([1], "x IS NOT NULL AND NOT (x = 1)", id="a list, which is not allowed"),
]


@pytest.mark.parametrize(("value", "text"), TYPES)
def test_an_application_property_may_be(value: object, text: str) -> None:
    message = selectable({"before": "x", "x": value, "xx": "no"})
    assert parse_selector(text).matches(message)


def test_a_name_longer_than_255_bytes_is_found() -> None:
    name = "n" * 300
    assert parse_selector(f"{name} = 1").matches(selectable({name: 1}))


# -- cost

MANY = selectable({f"p{number}": number for number in range(1000)})


def test_each_property_that_is_passed_over_counts_as_work() -> None:
    facts = Facts(MANY)
    assert parse_selector("p999 = 999").admits(facts)
    assert facts.steps == 999


def test_what_one_selector_has_found_costs_the_next_nothing() -> None:
    facts = Facts(MANY)
    assert parse_selector("p999 = 999").admits(facts)
    assert parse_selector("p999 > 0 AND p999 < 1000").admits(facts)
    assert facts.steps == 0


def test_what_was_not_found_for_lack_of_budget_is_looked_for_again() -> None:
    facts = Facts(MANY)
    facts.spend(STEPS_MAX - 998)
    assert facts.application_property("p999", b"p999") is None
    assert facts.is_overspent()
    facts.begin()
    assert facts.application_property("p999", b"p999") == 999


def test_reading_a_long_value_counts_as_work() -> None:
    long = selectable({"x": "a" * 6400}, correlation_id="b" * 12_800)
    facts = Facts(long)
    assert not parse_selector("x = 'a'").admits(facts)
    assert facts.steps == 100
    assert not parse_selector("x = JMSCorrelationID").admits(facts)
    assert facts.steps == 200 + 6


def test_annotations_that_are_searched_for_a_type_count_as_work() -> None:
    annotations: dict[str, object] = {f"x-{number:04}": None for number in range(1000)}
    facts = Facts(new_message(encoded(annotations=annotations)))
    assert not parse_selector("JMSType = 'a'").admits(facts)
    assert 1000 < facts.steps < 4000


def test_a_selector_that_takes_too_much_work_takes_no_message() -> None:
    long = selectable({"x": "a" * 200_000})
    text = " OR ".join(["x LIKE '%aaab%'"] * 10)
    assert parse_selector(f"NOT ({text})").matches(selectable({"x": "a"}))
    assert not parse_selector(f"NOT ({text})").matches(long)
