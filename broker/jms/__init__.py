"""The OASIS mapping of JMS messages to AMQP 1.0 and back, in the profiles `wd10` and `early`."""

from __future__ import annotations

from broker.jms.bodies import (
    Body,
    BodySection,
    BytesBody,
    MapBody,
    MessageKind,
    NoBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
)
from broker.jms.destinations import Destination, DestinationType
from broker.jms.errors import MappingError
from broker.jms.mapping import Decoder, decode, encode
from broker.jms.message import NON_PERSISTENT, PERSISTENT, JmsMessage
from broker.jms.profile import Profile
from broker.jms.sending import stamp
from broker.jms.soap import soap_message

__all__ = [
    "NON_PERSISTENT",
    "PERSISTENT",
    "Body",
    "BodySection",
    "BytesBody",
    "Decoder",
    "Destination",
    "DestinationType",
    "JmsMessage",
    "MapBody",
    "MappingError",
    "MessageKind",
    "NoBody",
    "ObjectBody",
    "Profile",
    "SerializedBody",
    "StreamBody",
    "TextBody",
    "decode",
    "encode",
    "soap_message",
    "stamp",
]
