"""Properties by their JMS names: WD10 3.2.2 and 4, EARLY 4.2.2 and 5, PROPS."""

from __future__ import annotations

import re
import uuid
from typing import Final

import pytest

from broker.amqp.sections import split
from broker.amqp.types import Byte, Char, Float, Int, Map, Short, Symbol, Timestamp, UInt
from broker.jms import JmsMessage, MappingError, NoBody, Profile, decode, encode
from broker.message import read_message
from broker.routing.selector import parse_selector
from tests.support.clock import SimulatedClock

WD10: Final = Profile.WD10
EARLY: Final = Profile.EARLY

# name, value, the attribute that holds it, its value there, the profiles that have it
DEFINED: Final[list[tuple[str, object, str, object, tuple[Profile, ...]]]] = [
    ("JMSXUserID", "someone", "user_id", "someone", (WD10, EARLY)),
    ("JMSXGroupID", "group", "group_id", "group", (WD10, EARLY)),
    ("JMSXGroupSeq", Int(-1), "group_sequence", -1, (WD10, EARLY)),
    ("JMS_AMQP_TTL", 2**32 - 1, "amqp_ttl", 2**32 - 1, (WD10, EARLY)),
    ("JMS_AMQP_REPLY_TO_GROUP_ID", "group", "reply_to_group_id", "group", (WD10, EARLY)),
    ("JMS_AMQP_SUBJECT", "about", "subject", "about", (EARLY,)),
    ("JMS_AMQP_CONTENT_TYPE", "text/plain", "content_type", "text/plain", (EARLY,)),
    ("JMS_AMQP_CONTENT_ENCODING", "gzip", "content_encoding", "gzip", (EARLY,)),
]


@pytest.mark.requirement("MAP-05", "MAP-06")
@pytest.mark.parametrize("row", DEFINED, ids=[row[0] for row in DEFINED])
@pytest.mark.parametrize("profile", list(Profile), ids=[profile.value for profile in Profile])
def test_a_property_of_the_mapping_has_a_place_of_its_own(
    row: tuple[str, object, str, object, tuple[Profile, ...]], profile: Profile
) -> None:
    name, value, attribute, held, profiles = row
    message = JmsMessage(NoBody(), profile=profile)
    if profile not in profiles:
        with pytest.raises(MappingError, match=name):
            message.set_property(name, value)
        return
    message.set_property(name, value)
    assert getattr(message, attribute) == held
    assert message.get_property(name) == value
    assert message.properties == {}
    message.set_property(name, None)
    assert getattr(message, attribute) is None
    assert name not in message.all_properties()


@pytest.mark.requirement("MAP-06")
@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("JMSAMQPCONTENTTYPE", "JMS_AMQP_CONTENT_TYPE"),
        ("JMSAMQPCONTENTENCODING", "JMS_AMQP_CONTENT_ENCODING"),
    ],
)
def test_early_knows_the_names_without_underscores_too(printed: str, name: str) -> None:
    message = JmsMessage(NoBody(), properties={printed: "x"}, profile=EARLY)
    assert message.get_property(printed) == message.get_property(name) == "x"
    assert printed not in message.all_properties()
    with pytest.raises(MappingError, match=printed):
        JmsMessage(NoBody(), properties={printed: "x"})


@pytest.mark.requirement("MAP-05", "MAP-06")
@pytest.mark.parametrize(
    "name",
    [
        *("JMSXDeliveryCount", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp"),
        *("JMSXState", "JMS_AMQP_FIRST_ACQUIRER", "JMS_AMQP_OTHER", "JMS_AMQP", "JMS_AMQPX"),
    ],
)
@pytest.mark.parametrize("profile", list(Profile), ids=[profile.value for profile in Profile])
def test_an_application_may_not_set(name: str, profile: Profile) -> None:
    message = JmsMessage(NoBody(), profile=profile)
    with pytest.raises(MappingError, match=name):
        message.set_property(name, "x")
    with pytest.raises(MappingError, match=name):
        JmsMessage(NoBody(), properties={name: "x"}, profile=profile)


@pytest.mark.requirement("MAP-05", "MAP-06")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JMSXUserID", b"someone"),
        ("JMSXAppID", 1),
        ("JMSXGroupID", 1),
        ("JMSXGroupSeq", 2**31),
        ("JMSXGroupSeq", -(2**31) - 1),
        ("JMSXGroupSeq", "1"),
        ("JMSXGroupSeq", True),
        ("JMS_AMQP_TTL", -1),
        ("JMS_AMQP_TTL", 2**32),
        ("JMS_AMQP_TTL", 1.0),
        ("JMS_AMQP_REPLY_TO_GROUP_ID", Symbol("x")),
    ],
)
def test_a_property_of_the_mapping_has_its_type(name: str, value: object) -> None:
    with pytest.raises(MappingError, match=name):
        JmsMessage(NoBody()).set_property(name, value)


@pytest.mark.requirement("MAP-05", "MAP-06")
@pytest.mark.parametrize("value", [Byte(5), Short(5), Int(5), 5], ids=repr)
def test_numbers_may_be_of_any_type_that_jms_widens(value: object) -> None:
    properties = {"JMSXGroupSeq": value, "JMS_AMQP_TTL": value}
    message = JmsMessage(NoBody(), properties=properties)
    assert (message.group_sequence, message.amqp_ttl) == (5, 5)
    # the mapping's own property is a long, whatever it was set as (WD10 4)
    assert type(message.get_property("JMS_AMQP_TTL")) is int


@pytest.mark.requirement("MAP-05")
def test_the_application_id_is_a_property_like_others() -> None:
    assert JmsMessage(NoBody(), properties={"JMSXAppID": "app"}).properties == {"JMSXAppID": "app"}


OWN: Final[list[object]] = [
    *(None, True, Byte(1), Short(1), Int(1), 1, Float(1.5), 1.5, "x"),
    *(b"x", UInt(1), Timestamp(1), Symbol("s"), uuid.UUID(int=1)),
]


@pytest.mark.parametrize("value", OWN, ids=repr)
def test_an_applications_own_properties_are_of_any_simple_type(value: object) -> None:
    message = JmsMessage(NoBody(), properties={"own": value})
    assert message.get_property("own") == value
    assert message.properties == {"own": value}


@pytest.mark.parametrize("value", [[], {}, Map([])], ids=repr)
def test_a_property_is_no_list_and_no_map(value: object) -> None:
    message = JmsMessage(NoBody())
    for set_property in (message.set_property, message.set_any_property):
        with pytest.raises(MappingError, match="own"):
            set_property("own", value)


HEADERS: Final = [
    *("JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSReplyTo", "JMSDestination"),
    *("JMSDeliveryMode", "JMSRedelivered", "JMSType", "JMSExpiration", "JMSPriority"),
    *("JMSDeliveryTime", "JMSOther", "JMS"),
]
UNNAMEABLE: Final = [
    *("a-b", "1a", "a b", " a", "a.b", "x:y", "a\n", "☃", "a☃"),
    *("NULL", "and", "Or", "not", "TRUE", "false", "between", "like", "in", "is", "escape"),
]
"""Names that are no identifier of a selector."""


@pytest.mark.requirement("MAP-05")
@pytest.mark.parametrize("name", [*HEADERS, *UNNAMEABLE])
@pytest.mark.parametrize("profile", list(Profile), ids=[profile.value for profile in Profile])
def test_a_name_is_refused_to_applications_but_not_to_messages_of_others(
    name: str, profile: Profile
) -> None:
    message = JmsMessage(NoBody(), profile=profile)
    with pytest.raises(MappingError, match=re.escape(repr(name)[1:-1])):
        message.set_property(name, "x")
    message.set_any_property(name, "x")
    assert decode(encode(message), now_ms=0, profile=profile).properties == {name: "x"}


@pytest.mark.requirement("MAP-05")
@pytest.mark.parametrize("name", ["_", "$", "a1", "größe", "Null_", "And1", "JMSXOther", "JMS_x"])
def test_a_name_that_a_selector_can_use_is_taken(name: str) -> None:
    message = JmsMessage(NoBody(), properties={name: "x"})
    assert message.properties == {name: "x"}
    data = encode(message)
    assert parse_selector(f"{name} = 'x'").matches(
        read_message(split(data, 0, len(data)), data, SimulatedClock())
    )


@pytest.mark.requirement("MAP-05")
def test_a_char_is_refused_to_applications_but_not_to_messages_of_others() -> None:
    message = JmsMessage(NoBody())
    with pytest.raises(MappingError, match="own is a char"):
        message.set_property("own", Char(65))
    message.set_any_property("own", Char(65))
    assert decode(encode(message), now_ms=0).properties == {"own": Char(65)}


@pytest.mark.requirement("MAP-05", "MAP-06")
def test_properties_of_the_mapping_are_set_in_messages_of_others_too() -> None:
    message = JmsMessage(NoBody())
    message.set_any_property("JMSXGroupID", "g")
    assert (message.group_id, message.properties) == ("g", {})
    with pytest.raises(MappingError, match="JMSXState"):
        message.set_any_property("JMSXState", 1)


def test_a_property_has_a_name() -> None:
    with pytest.raises(MappingError, match="without a name"):
        JmsMessage(NoBody()).set_property("", 1)


@pytest.mark.requirement("MAP-05", "MAP-06")
def test_all_properties_are_those_of_jms() -> None:
    message = JmsMessage(NoBody(), properties={"own": "x", "JMSXGroupID": "g", "JMSXGroupSeq": 2})
    message.delivery_count = 3
    message.first_acquirer = True
    assert message.all_properties() == {
        "own": "x",
        "JMSXGroupID": "g",
        "JMSXGroupSeq": Int(2),
        "JMSXDeliveryCount": Int(3),
        "JMS_AMQP_FIRST_ACQUIRER": True,
    }
    assert message.get_property("other") is None
    assert message.redelivered
    assert not JmsMessage(NoBody()).redelivered
