"""Messages built from the properties that configure a SOAP-over-JMS sender (PROPS).

All properties are in one dict of names and values; values may be text, as in a configuration file.
"""

from __future__ import annotations

from typing import Final

from broker.amqp.sections import PRIORITY_MAX
from broker.amqp.types import Int
from broker.jms.bodies import Body, BytesBody, TextBody
from broker.jms.errors import MappingError
from broker.jms.message import (
    INT_MAX,
    JMSX_GROUP_SEQ,
    NON_PERSISTENT,
    PERSISTENT,
    JmsMessage,
)

DELIVERY_MODE: Final = "jms.deliveryMode"
PRIORITY: Final = "jms.priority"
TIME_TO_LIVE: Final = "jms.timeToLive"
MESSAGE_TYPE: Final = "jms.messageType"

DELIVERY_MODES: Final = {
    "PERSISTENT": PERSISTENT,
    "NON_PERSISTENT": NON_PERSISTENT,
    str(PERSISTENT): PERSISTENT,
    str(NON_PERSISTENT): NON_PERSISTENT,
}

TIME_TO_LIVE_MAX: Final = 2**53
"""Maximum time to live in ms, some 285,000 years: a time plus this still fits a timestamp."""

DIGITS_MAX: Final = 19
"""Maximum digits of a number in a text: those of the largest Java long."""

REFUSED: Final = frozenset(
    {
        *("JMSMessageID", "JMSExpiration", "JMSRedelivered", "JMSTimestamp"),
        *("JMSDeliveryMode", "JMSPriority", "JMSReplyTo", "JMSDestination"),
        "JMSDeliveryTime",  # not in PROPS' list, which is older than this header of JMS 2.0
    }
)
"""Headers that the caller may not set."""


def soap_message(properties: dict[str, object], envelope: bytes) -> JmsMessage:
    """Return the message to send; MappingError names an invalid property.

    With `jms.messageType` TextMessage, `envelope` must be UTF-8.
    """
    message = JmsMessage(_body(properties.get(MESSAGE_TYPE), envelope))
    for name, value in properties.items():
        if name in REFUSED:
            raise MappingError(f"{name} is not for the sender to give")
        if name.startswith("jms."):
            _set(message, name, value)
        elif name == "JMSType":
            message.type = _text(name, value)
        elif name == "JMSCorrelationID":
            message.correlation_id = _text(name, value)
        elif name == JMSX_GROUP_SEQ:
            message.set_property(name, Int(_number(name, value, low=-INT_MAX - 1, high=INT_MAX)))
        else:
            message.set_property(name, value)
    return message


def _body(message_type: object, envelope: bytes) -> Body:
    if message_type != "TextMessage":
        return BytesBody(envelope)
    try:
        return TextBody(envelope.decode())
    except UnicodeDecodeError as error:
        raise MappingError(f"{MESSAGE_TYPE} is TextMessage, and the envelope no UTF-8") from error


def _set(message: JmsMessage, name: str, value: object) -> None:
    """Apply a run-time setting, such as `jms.priority`, to `message`."""
    if name == DELIVERY_MODE:
        mode = DELIVERY_MODES.get(str(value))
        if mode is None:
            raise MappingError(f"{name} is one of {', '.join(DELIVERY_MODES)}, not {value!r:.100}")
        message.delivery_mode = mode
    elif name == PRIORITY:
        message.priority = _number(name, value, low=0, high=PRIORITY_MAX)
    elif name == TIME_TO_LIVE:
        message.time_to_live = _number(name, value, low=0, high=TIME_TO_LIVE_MAX)
    elif name != MESSAGE_TYPE:
        raise MappingError(f"there is no setting {name:.100}")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise MappingError(f"{name} is a string, not {value!r:.100}")
    return value


def _number(name: str, value: object, *, low: int, high: int) -> int:
    number = _parsed(value) if isinstance(value, str) else value
    if isinstance(number, int) and not isinstance(number, bool) and low <= number <= high:
        return number
    raise MappingError(f"{name} is a number from {low} to {high}, not {value!r:.100}")


def _parsed(text: str) -> int | None:
    """Return the whole number in decimal digits, None for the other forms that Python reads too."""
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX
    return int(text) if is_number else None
