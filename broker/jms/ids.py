"""JMSMessageID and JMSCorrelationID: text that keeps the AMQP type of an identifier.

An identifier in AMQP is a string, a ulong, a uuid or a binary. WD10 (3.2.1.1) sends the `ID:`
of a JMSMessageID; EARLY (4.2.1.1) removes it before sending, and adds it to what is received.
"""

from __future__ import annotations

import uuid
from typing import Final

from broker.amqp.types import ULong
from broker.jms.errors import MappingError
from broker.jms.profile import Profile

ID: Final = "ID:"
BINARY: Final = "AMQP_BINARY:"
UUID: Final = "AMQP_UUID:"
ULONG: Final = "AMQP_ULONG:"
STRING: Final = "AMQP_STRING:"
NO_PREFIX: Final = "AMQP_NO_PREFIX:"

ULONG_DIGITS_MAX: Final = 20


def message_id_text(value: object, profile: Profile = Profile.WD10) -> str | None:
    """Return the JMSMessageID of a message-id; None if that is null or of an invalid type."""
    if not isinstance(value, str):
        return _typed_text(value)
    if profile is Profile.EARLY:
        return _with_prefix(value)
    return _escaped(value) if value.startswith(ID) else f"{ID}{NO_PREFIX}{value}"


def correlation_id_text(
    value: object, profile: Profile = Profile.WD10, *, is_application: bool = False
) -> str | None:
    """Return the JMSCorrelationID of a correlation-id; None as in `message_id_text`.

    `is_application` is the annotation x-opt-app-correlation-id, which only EARLY uses.
    """
    if not isinstance(value, str):
        return _typed_text(value)
    if profile is Profile.EARLY:
        return value if is_application else _with_prefix(value)
    return _escaped(value) if value.startswith(ID) else value


def message_id_value(text: str, profile: Profile = Profile.WD10) -> str | ULong | uuid.UUID | bytes:
    """Return the message-id of a JMSMessageID; MappingError if `text` is not a valid one."""
    if not text.startswith(ID):
        raise MappingError(f"a JMSMessageID begins with {ID}, not {text!r:.100}")
    return _value(text, profile)


def correlation_id_value(
    text: str, profile: Profile = Profile.WD10
) -> str | ULong | uuid.UUID | bytes:
    """Return the correlation-id of a JMSCorrelationID: `text` itself if it is no JMSMessageID."""
    return _value(text, profile) if is_message_id(text) else text


def is_message_id(text: str) -> bool:
    """Return whether a JMSCorrelationID is a message's id, not a string of the application."""
    return text.startswith(ID)


def correlation_id_bytes(text: str) -> bytes:
    """Return the bytes of a binary correlation-id (getJMSCorrelationIDAsBytes).

    Raise MappingError if it is of another type.
    """
    if not text.startswith(ID + BINARY):
        raise MappingError(f"the correlation-id {text!r:.100} is not binary")
    return _binary(text[len(ID) + len(BINARY) :])


def _typed_text(value: object) -> str | None:
    if isinstance(value, uuid.UUID):
        return f"{ID}{UUID}{value}"
    if isinstance(value, ULong):
        return f"{ID}{ULONG}{value.value}"
    if isinstance(value, bytes):
        return f"{ID}{BINARY}{value.hex().upper()}"
    return None


def _escaped(text: str) -> str:
    """Escape a string that begins with `ID:` if it would be read as another type."""
    rest = text[len(ID) :]
    if _names_a_type(rest) or rest.startswith(NO_PREFIX):
        return f"{ID}{STRING}{text}"
    return text


def _with_prefix(text: str) -> str:
    return f"{ID}{STRING}{text}" if _names_a_type(text) else f"{ID}{text}"


def _names_a_type(text: str) -> bool:
    # for almost every id the first, short comparison is enough
    return text.startswith("AMQP_") and text.startswith((BINARY, UUID, ULONG, STRING))


def _value(text: str, profile: Profile) -> str | ULong | uuid.UUID | bytes:
    rest = text[len(ID) :]
    if rest.startswith(BINARY):
        return _binary(rest[len(BINARY) :])
    if rest.startswith(UUID):
        return _uuid(rest[len(UUID) :])
    if rest.startswith(ULONG):
        return _ulong(rest[len(ULONG) :])
    if rest.startswith(STRING):
        return rest[len(STRING) :]
    if profile is Profile.EARLY:
        return rest
    return rest[len(NO_PREFIX) :] if rest.startswith(NO_PREFIX) else text


# Python's parsers accept more than the mapping does, so each result must give the same text again.


def _binary(text: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if value.hex() != text.lower():
        raise MappingError(f"{text!r:.100} is not the hexadecimal form of bytes")
    return value


def _uuid(text: str) -> uuid.UUID:
    try:
        value = uuid.UUID(text)
    except ValueError:
        value = None
    if value is None or str(value) != text.lower():
        raise MappingError(f"{text!r:.100} is not a UUID")
    return value


def _ulong(text: str) -> ULong:
    try:
        value = ULong(int(text[: ULONG_DIGITS_MAX + 1]))
    except ValueError:
        value = None
    if value is None or str(value.value) != text:
        raise MappingError(f"{text!r:.100} is not an unsigned number of 64 bits")
    return value
