"""Qpid JMS and `broker.jms` read the same facts from the same bytes of a message.

Qpid JMS sends messages of every kind, and writes down their facts. Then it receives these bytes,
those of messages that `broker.jms` makes, and those of messages that no JMS client would send, and
writes down the facts that it shows. Each is compared with the result of `decode`. All of it is in
WD10, the profile which Qpid JMS speaks. python-qpid-proton carries the bytes.
"""

from __future__ import annotations

import base64
import time
import uuid
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.types import (
    Byte,
    Char,
    Float,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
)
from broker.jms import (
    NON_PERSISTENT,
    PERSISTENT,
    BytesBody,
    Destination,
    DestinationType,
    JmsMessage,
    MapBody,
    MessageKind,
    NoBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
    decode,
    encode,
    stamp,
)
from tests.interop.broker_process import Broker
from tests.interop.junit import JUnit
from tests.interop.proton_peer import Peer
from tests.support.jms import DATA, SEQUENCE, VALUE, encoded

pytestmark = pytest.mark.slow

Facts = dict[str, tuple[str, str]]
"""The class and the text of every fact of a message, by name."""

REQUIREMENTS: Final = (
    *("MAP-01", "MAP-02", "MAP-03", "MAP-04", "MAP-05", "MAP-06", "MAP-07", "MAP-08"),
)

MADE: Final = 100
FOREIGN: Final = 200
"""First case numbers of messages made here and of foreign ones; Java's begin with 0."""

SENT: Final = f"mapping-sent-{uuid.uuid4()}"
SHOWN: Final = Destination(f"mapping-shown-{uuid.uuid4()}")
"""Addresses of this run alone."""

NOT_SHOWN: Final = {"JMS_AMQP_FIRST_ACQUIRER", "JMS_AMQP_TTL"}
"""Properties that Qpid JMS does not show to receivers."""

ITS_OWN: Final = "property JMS_AMQP_TYPED_ENCODING"
"""A property that Qpid JMS invents for objects not serialized by Java; no draft has it."""

CLASSES: Final[dict[type, str]] = {
    bool: "Boolean",
    Byte: "Byte",
    Short: "Short",
    Int: "Integer",
    int: "Long",
    Float: "Float",
    float: "Double",
    Char: "Character",
    str: "String",
    bytes: "byte[]",
    UInt: "UnsignedInteger",
    uuid.UUID: "UUID",
}
"""The Java class for each type of the codec."""


def java(value: object) -> tuple[str, str]:
    """Return the class and the text of a value, as MappingPhases.java writes them."""
    if value is None:
        return "null", "null"
    name = CLASSES[type(value)]
    if isinstance(value, bytes):
        return name, value.hex()
    if isinstance(value, bool):
        return name, str(value).lower()
    if isinstance(value, Float):
        return name, repr(float(value.value))
    if isinstance(value, Char):
        return name, chr(value.value)
    if isinstance(value, Byte | Short | Int | UInt):
        return name, str(value.value)
    return name, repr(value) if isinstance(value, float) else str(value)


def written(lines: list[str]) -> Facts:
    """Return the facts that MappingPhases.java has written of one message."""
    facts: Facts = {}
    for line in lines:
        name, kind, text = line.split("\t")
        raw = base64.b64decode(text)
        read = raw.hex() if kind == "byte[]" else raw.decode()
        facts[name] = (kind, repr(float(read)) if kind in ("Float", "Double") else read)
    return facts


def by_case(output: Path) -> dict[int, Facts]:
    """Return the facts that it has written of all messages, by their property `case`."""
    found: dict[int, Facts] = {}
    for block in output.read_text(encoding="utf-8").strip().split("\n\n"):
        facts = written(block.split("\n"))
        found[int(facts["property case"][1])] = facts
    return found


def facts_of(message: JmsMessage) -> Facts:
    """Return the facts of a message of `broker.jms`, in the same form."""
    facts = {
        "JMSMessageID": java(message.message_id),
        "JMSCorrelationID": java(message.correlation_id),
        "JMSTimestamp": java(message.timestamp),
        "JMSDestination": place(message.destination),
        "JMSReplyTo": place(message.reply_to),
        "JMSDeliveryMode": java(Int(message.delivery_mode)),
        "JMSType": java(message.type),
        "JMSExpiration": java(message.expiration),
        "JMSPriority": java(Int(message.priority)),
        "JMSDeliveryTime": java(message.delivery_time),
        "JMSRedelivered": java(message.redelivered),
        "kind": java(message.body.kind.value),
    }
    for name, value in message.all_properties().items():
        if name not in NOT_SHOWN:
            facts[f"property {name}"] = java(value)
    body = message.body
    if isinstance(body, MapBody):
        facts.update({f"body {name}": java(value) for name, value in body.entries.items()})
    elif isinstance(body, StreamBody):
        facts.update({f"body {at}": java(value) for at, value in enumerate(body.items)})
    elif isinstance(body, SerializedBody):
        facts["serialized"] = java(body.serialized)
    elif not isinstance(body, NoBody):
        facts["body"] = java(body.content)
    return facts


def place(destination: Destination | None) -> tuple[str, str]:
    if destination is None:
        return "null", "null"
    return destination.type.value, destination.address


# ---- messages that broker.jms makes

VALUES: Final[dict[str, object]] = {
    "aBoolean": False,
    "aByte": Byte(-128),
    "aShort": Short(-(2**15)),
    "anInt": Int(2**31 - 1),
    "aLong": -(2**63),
    "aFloat": Float(1.5),
    "aDouble": 1e300,
    "aString": "grüße",
    "aNull": None,
}
ALL_VALUES: Final[dict[str, object]] = VALUES | {"aChar": Char(0xE9), "someBytes": b"\x00\xff"}

JAVA_TEXT: Final = b"\xac\xed\x00\x05t\x00\x02hi"


IDS: Final = [
    *("ID:plain", "ID:AMQP_UUID:12345678-9abc-def0-1234-56789abcdef0", "ID:AMQP_BINARY:00FF"),
    *("ID:AMQP_STRING:ID:AMQP_ULONG:x", "ID:AMQP_ULONG:18446744073709551615"),
    "ID:AMQP_NO_PREFIX:x",
]


def made() -> list[JmsMessage]:
    """Return one message for each kind of body, with everything set that a message can have."""
    bodies = [
        *(NoBody(), TextBody("grüße 😀"), TextBody(""), TextBody(None), BytesBody(b"\x00\xff")),
        *(BytesBody(b""), MapBody(ALL_VALUES), MapBody({}), StreamBody(list(ALL_VALUES.values()))),
        *(StreamBody([]), SerializedBody(JAVA_TEXT), SerializedBody(), ObjectBody("typed")),
        *(ObjectBody(UInt(7)), ObjectBody(None)),
    ]
    messages = [JmsMessage(body, properties=dict(VALUES)) for body in bodies]
    now = int(time.time() * 1000)
    for at, message in enumerate(messages):
        message.set_property("case", Int(MADE + at))
        message.set_property("JMSXUserID", "someone")
        message.set_property("JMSXAppID", "application")
        message.set_property("JMSXGroupID", f"group {at}")
        # not 0, which Qpid JMS does not show
        message.set_property("JMSXGroupSeq", Int(-1 - at))
        message.set_property("JMS_AMQP_REPLY_TO_GROUP_ID", "other group")
        message.set_property("JMS_AMQP_TTL", 3_600_000)
        message.correlation_id = IDS[at % 5] if at % 2 else "an application's own"
        message.type = "kind"
        message.reply_to = Destination("answers", list(DestinationType)[at % 4])
        message.delivery_mode = 1 + at % 2
        message.priority = at % 10
        message.time_to_live = 3_600_000
        stamp(
            message,
            now_ms=now,
            message_id=IDS[at % len(IDS)],
            destination=Destination("elsewhere", list(DestinationType)[at % 4]),
            delivery_delay=-1000 * (at % 2),
        )
    return messages


# ---- messages that no JMS client sends

JAVA: Final = Symbol("application/x-java-serialized-object")
TEXT_PLAIN: Final = Symbol("text/plain")

DATA_TYPES: Final = [
    *(None, "application/octet-stream", "image/png", "text/plain; charset=no-such", "text/html"),
    *("application/xml", "application/xml-dtd", "application/soap+xml", "application/json"),
    *("application/ld+json", "application/javascript", "application/ecmascript"),
]

SOME: Final = uuid.UUID(int=2**127)


def foreign() -> list[bytes]:
    """Return bodies without annotation, identifiers of all types, annotations of another draft."""
    messages: list[bytes] = []

    def add(
        *sections: tuple[int, object],
        header: dict[str, object] | None = None,
        annotations: dict[str, object] | None = None,
        properties: dict[str, object] | None = None,
    ) -> None:
        case: dict[str, object] = {"case": Int(FOREIGN + len(messages))}
        message = encoded(
            *sections,
            header=header,
            annotations=annotations,
            properties=properties,
            application=case,
        )
        messages.append(message)

    for content_type in DATA_TYPES:
        kind = None if content_type is None else Symbol(content_type)
        add((DATA, b"x"), properties={"content-type": kind})
    add((DATA, JAVA_TEXT), properties={"content-type": JAVA})
    add((DATA, "ß".encode()), properties={"content-type": TEXT_PLAIN})
    add((DATA, b"\xe9"), properties={"content-type": Symbol("text/plain;charset=iso-8859-1")})
    add((DATA, b""), properties={"content-type": TEXT_PLAIN})
    for held in ("x", None, b"x", 1, SOME):
        add((VALUE, held))
    for content in (None, Symbol("application/octet-stream"), TEXT_PLAIN, JAVA):
        add(properties={"content-type": content})
    ids: list[object] = [
        *("ID:my-string-id", "non-prefixed-string-id", SOME, ULong(42), b"\xab\xcd\xef"),
        *("ID:AMQP_ULONG:string-id", "AMQP_ULONG:foo", ""),
    ]
    for identifier in ids:
        add((VALUE, "x"), properties={"message-id": identifier})
        add((VALUE, "x"), properties={"correlation-id": identifier})
    to: dict[str, object] = {"to": "a", "reply-to": "b"}
    for words in ("queue", "topic", "queue,temporary", "topic,temporary"):
        annotations: dict[str, object] = {"x-opt-to-type": words, "x-opt-reply-type": words}
        add((VALUE, "x"), properties=to, annotations=annotations)
    add((VALUE, "x"), properties=to)
    add((VALUE, "x"), header={"durable": True, "priority": UByte(255)})
    moment = int(time.time() * 1000)
    for due in (moment, Timestamp(moment), ULong(moment)):
        add((VALUE, "x"), annotations={"x-opt-delivery-time": due})
    annotated: list[tuple[int, int, object]] = [
        *((2, VALUE, Map([("a", 1)])), (3, VALUE, b"x"), (4, SEQUENCE, [1, "a"])),
        *((4, VALUE, [1, "a"]), (5, DATA, b"x"), (0, VALUE, None)),
    ]
    for number, section, value in annotated:
        add((section, value), annotations={"x-opt-jms-msg-type": Byte(number)})
    add(annotations={"x-opt-jms-msg-type": Byte(0)})
    return messages


def take_all(peer: Peer, address: str, count: int) -> list[bytes]:
    """Consume `count` messages at `address`; return their bytes."""
    receiver = peer.receiver(address, credit=count)
    taken = [peer.take_bytes(receiver) for _ in range(count)]
    peer.accept(*(delivery for delivery, _ in taken))
    return [data for _, data in taken]


class Exchange:
    """The bytes that were sent, and the facts that Qpid JMS has written of them, by case."""

    def __init__(self, *, sent: list[bytes], said: dict[int, Facts]) -> None:
        self.sent: Final = sent
        self.said: Final = said
        self.made: Final = made()
        self.foreign: Final = foreign()
        self.shown: dict[int, Facts] = {}

    def everything(self) -> list[bytes]:
        return [*self.sent, *(encode(message) for message in self.made), *self.foreign]


@pytest.fixture(scope="module")
def exchange(junit: JUnit, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Exchange:
    """Return the facts of all messages, after Qpid JMS has sent its own and received all."""
    folder = tmp_path_factory.mktemp("mapping")
    sent, shown = folder / "sent", folder / "shown"
    given = {"mapping.address": SENT, "mapping.output": str(sent)}
    junit.phase("MappingPhases#send", folder, url=broker.url, properties=given)
    said = by_case(sent)
    with Peer(broker.url) as peer:
        peer.opened()
        found = Exchange(sent=take_all(peer, SENT, len(said)), said=said)
        peer.fill(SHOWN.address, *found.everything())
    given = {
        "mapping.address": SHOWN.address,
        "mapping.output": str(shown),
        "mapping.count": str(len(found.everything())),
    }
    junit.phase("MappingPhases#show", folder, url=broker.url, properties=given)
    found.shown.update(by_case(shown))
    return found


@pytest.mark.requirement(*REQUIREMENTS)
def test_what_qpid_jms_sends_is_decoded_as_it_says(exchange: Exchange) -> None:
    assert len(exchange.sent) == 13
    for data in exchange.sent:
        message = decode(data, now_ms=0)
        assert as_shown(message, exchange.said) == facts_of(message)


@pytest.mark.requirement(*REQUIREMENTS)
def test_what_we_send_is_shown_as_we_say(exchange: Exchange) -> None:
    assert {message.delivery_mode for message in exchange.made} == {PERSISTENT, NON_PERSISTENT}
    for message in exchange.made:
        assert as_shown(message, exchange.shown) == facts_of(message)


@pytest.mark.requirement(*REQUIREMENTS)
def test_what_anybody_sends_is_decoded_as_qpid_jms_shows_it(exchange: Exchange) -> None:
    for data in exchange.everything():
        message = decode(data, now_ms=0, consumer=SHOWN)
        assert as_shown(message, exchange.shown) == facts_of(message)


def as_shown(message: JmsMessage, cases: dict[int, Facts]) -> Facts:
    """Return the facts that Qpid JMS wrote of the message, except those that it alone knows."""
    case = message.properties["case"]
    assert isinstance(case, Int)
    missing = {ITS_OWN}
    if message.body.kind is MessageKind.OBJECT:
        # Qpid JMS shows an object in both forms, and `decode` in one
        missing.add("body" if isinstance(message.body, SerializedBody) else "serialized")
    return {name: fact for name, fact in cases[case.value].items() if name not in missing}
