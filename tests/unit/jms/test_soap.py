"""The table of PROPS, row for row: properties that a SOAP-over-JMS sender may set, and others."""

from __future__ import annotations

import pytest

from broker.jms import NON_PERSISTENT, PERSISTENT, BytesBody, MappingError, TextBody
from broker.jms.soap import soap_message

ENVELOPE = "<Envelope>é</Envelope>".encode()


@pytest.mark.requirement("MAP-09")
@pytest.mark.parametrize(
    ("name", "value", "attribute", "held"),
    [
        ("jms.deliveryMode", "PERSISTENT", "delivery_mode", PERSISTENT),
        ("jms.deliveryMode", "NON_PERSISTENT", "delivery_mode", NON_PERSISTENT),
        ("jms.deliveryMode", "1", "delivery_mode", NON_PERSISTENT),
        ("jms.deliveryMode", 2, "delivery_mode", PERSISTENT),
        ("jms.priority", "9", "priority", 9),
        ("jms.priority", 0, "priority", 0),
        ("jms.timeToLive", "60000", "time_to_live", 60000),
        ("jms.priority", "07", "priority", 7),
        ("JMSType", "kind", "type", "kind"),
        ("JMSCorrelationID", "ID:AMQP_ULONG:42", "correlation_id", "ID:AMQP_ULONG:42"),
        ("JMSXGroupID", "group", "group_id", "group"),
        ("JMSXGroupSeq", "-1", "group_sequence", -1),
        ("JMSXGroupSeq", 7, "group_sequence", 7),
    ],
)
def test_settings_and_standard_headers(
    name: str, value: object, attribute: str, held: object
) -> None:
    message = soap_message({name: value}, ENVELOPE)
    assert getattr(message, attribute) == held
    assert message.properties == {}


@pytest.mark.requirement("MAP-09")
@pytest.mark.parametrize(
    "name", ["requestURI", "bindingVersion", "soapAction", "targetService", "contentType"]
)
def test_application_properties(name: str) -> None:
    message = soap_message({f"SOAPJMS_{name}": "x"}, ENVELOPE)
    assert message.properties == {f"SOAPJMS_{name}": "x"}


@pytest.mark.requirement("MAP-09")
@pytest.mark.parametrize(
    "name",
    [
        *("JMSMessageID", "JMSExpiration", "JMSRedelivered", "JMSTimestamp", "JMSDeliveryMode"),
        *("JMSPriority", "JMSReplyTo", "JMSDestination", "JMSDeliveryTime"),
    ],
)
def test_headers_that_are_not_the_senders_are_refused_by_name(name: str) -> None:
    with pytest.raises(MappingError, match=name):
        soap_message({name: "x"}, ENVELOPE)


@pytest.mark.requirement("MAP-09")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jms.deliveryMode", "3"),
        ("jms.deliveryMode", "persistent"),
        ("jms.priority", "10"),
        ("jms.priority", "high"),
        ("jms.priority", True),
        ("jms.priority", "0_7"),
        ("jms.priority", "\N{ARABIC-INDIC DIGIT SEVEN}"),
        ("jms.priority", "\N{FULLWIDTH DIGIT SEVEN}"),
        ("jms.priority", "\N{SUPERSCRIPT TWO}"),
        ("jms.priority", " 7"),
        ("jms.priority", "+7"),
        ("jms.priority", "7" * 5000),
        ("jms.priority", ""),
        ("jms.priority", "-"),
        ("jms.timeToLive", "60_000"),
        ("JMSXGroupSeq", "1_0"),
        ("jms.timeToLive", "-1"),
        ("jms.timeToLive", 2**60),
        ("jms.timeToLive", None),
        ("jms.timetolive", "1"),
        ("JMSType", 1),
        ("JMSCorrelationID", b"x"),
        ("JMSXGroupID", 1),
        ("JMSXGroupSeq", "2147483648"),
        ("JMSXState", "1"),
        ("JMS_AMQP_OTHER", "x"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(MappingError, match=name):
        soap_message({name: value}, ENVELOPE)


@pytest.mark.requirement("MAP-09")
@pytest.mark.parametrize("kind", ["BytesMessage", "textmessage", "", None])
def test_the_envelope_is_bytes_unless_text_is_asked_for(kind: object) -> None:
    message = soap_message({"jms.messageType": kind}, ENVELOPE)
    assert isinstance(message.body, BytesBody)
    assert message.body.data == ENVELOPE
    assert isinstance(soap_message({}, ENVELOPE).body, BytesBody)


@pytest.mark.requirement("MAP-09")
def test_a_text_message_has_the_envelope_as_text() -> None:
    message = soap_message({"jms.messageType": "TextMessage"}, ENVELOPE)
    assert isinstance(message.body, TextBody)
    assert message.body.text == ENVELOPE.decode()
    with pytest.raises(MappingError, match=r"jms\.messageType"):
        soap_message({"jms.messageType": "TextMessage"}, b"\xff")
