"""Requests, read from messages as the working draft of AMQP Management defines them.

Application properties name the operation and the entity, the body is a map of
arguments. Nothing in a request is trusted: one that cannot be read is refused with 400.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from broker.amqp.decode import descriptor_at, encoded_value, take_value
from broker.amqp.descriptors import AMQP_VALUE
from broker.amqp.errors import INVALID_FIELD, Fault, LinkFault
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.sections import REPLY_TO, Sections, property_at, split
from broker.amqp.types import Integer, Map, Symbol
from broker.message import Message
from broker.routing.addresses.address import ADDRESS_BYTES_MAX

MESSAGE_ID: Final = 0
CORRELATION_ID: Final = 5
"""Indexes of fields of the properties section that only this module reads (core 3.2.4)."""

BODY_BYTES_MAX: Final = 64 * 1024
"""Maximum bytes of a request's body. A list of a thousand ids takes a tenth of it."""

TEXT_HEAD_BYTES: Final = 5
"""Maximum bytes of a text's code and length."""

TEXT_BYTES_MAX: Final = 4 * ADDRESS_BYTES_MAX
"""Maximum bytes of any text in a request: names, patterns, operations and others."""

FAILURES_FROM: Final = 400
"""Status codes from here on are failures."""

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
CONFLICT: Final = 409
GONE: Final = 410
PRECONDITION_FAILED: Final = 412
FAILED: Final = 500
NOT_IMPLEMENTED: Final = 501
BUSY: Final = 503


class Refused(Exception):  # noqa: N818 - named like the errors of routing
    """A request that is not executed. The text says why to people, `status` to programs."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status: Final = status


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """The address for the response, and its correlation-id, encoded; None if there is none."""

    reply_to: str
    correlation_id: bytes | None


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request for one operation on the entity that `name` or `identity` names.

    `properties` are all application properties, `arguments` the entries of the body.
    """

    operation: str
    type: str
    name: str | None = None
    identity: str | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)

    def subject(self) -> str:
        """Return the entity's name, or else its identity; Refused if the request has neither.

        For entities whose name is their identity, a client may give either.
        """
        found = self.identity if self.name is None else self.name
        if found is None:
            raise Refused(
                BAD_REQUEST,
                f"{self.operation} needs an entity: set the application property name or identity",
            )
        return found

    # -- arguments

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string argument; Refused if it is missing and there is no `default`."""
        value = self._argument(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise Refused(BAD_REQUEST, f"{name} must be a string")
        return checked_text(name, value)

    def flag(self, name: str) -> bool:
        """Return a boolean argument, false if it is left out."""
        value = self._argument(name)
        if value is not None and not isinstance(value, bool):
            raise Refused(BAD_REQUEST, f"{name} must be true or false")
        return value is True

    def number(self, name: str, default: int, *, low: int = 0, high: int) -> int:
        """Return an integer argument of any AMQP width, from `low` to `high`."""
        return checked_number(name, self._argument(name), default, low=low, high=high)

    def texts(self, name: str, *, at_most: int) -> list[str]:
        """Return an argument that is a list of up to `at_most` strings, empty if it is left out."""
        value = self._argument(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > at_most:
            raise Refused(BAD_REQUEST, f"{name} must be a list of at most {at_most} strings")
        return [self._text_of(name, each) for each in value]

    def _text_of(self, name: str, value: object) -> str:
        if not isinstance(value, str):
            raise Refused(BAD_REQUEST, f"{name} must be a list of strings")
        return checked_text(name, value)

    def _argument(self, name: str) -> object:
        return self.arguments.get(name)

    def only(self, *known: str) -> None:
        """Raise Refused if there are arguments other than `known`, which would be ignored."""
        for name in self.arguments:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise Refused(
                    BAD_REQUEST, f"{self.operation} knows no argument {name:.50}; known: {allowed}"
                )


def checked_text(name: str, value: str) -> str:
    """Return `value`; Refused if it is longer than TEXT_BYTES_MAX."""
    if len(value.encode(errors="surrogatepass")) > TEXT_BYTES_MAX:
        raise Refused(BAD_REQUEST, f"{name} must have at most {TEXT_BYTES_MAX} bytes")
    return value


def checked_number(name: str, value: object, default: int, *, low: int, high: int) -> int:
    """Return an integer of any AMQP type, or `default` for None; Refused if out of range."""
    if value is None:
        return default
    number = value.value if isinstance(value, Integer) else value
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise Refused(BAD_REQUEST, f"{name} must be a number from {low} to {high}")
    return number


def read_envelope(message: Message, *, otherwise: str = "") -> Envelope:
    """Return where to send the response to `message`; LinkFault if it has no valid `reply-to`.

    `otherwise` counts as reply-to for a message without one, if it is not empty. The message-id
    serves as the correlation-id if the request has none of its own.
    """
    data = message.encoded
    sections = split(data, 0, len(data))
    reply_to = sections.text(data, REPLY_TO) or otherwise
    if not reply_to or len(reply_to.encode()) > TEXT_BYTES_MAX:
        raise LinkFault(INVALID_FIELD, "set `reply-to` to the address for the response")
    for place in (CORRELATION_ID, MESSAGE_ID):
        at = property_at(data, sections.properties, sections.end, place)
        if at >= 0:
            return Envelope(reply_to=reply_to, correlation_id=_id_at(data, at))
    return Envelope(reply_to=reply_to, correlation_id=None)


def _id_at(data: bytes, at: int) -> bytes:
    found = encoded_value(data, at, len(data))
    if len(found) > TEXT_BYTES_MAX:
        raise LinkFault(INVALID_FIELD, f"an id must have at most {TEXT_BYTES_MAX} bytes")
    return found


def read_request(message: Message) -> Request:
    """Return the request in `message`; Refused if it is malformed."""
    data = message.encoded
    sections = split(data, 0, len(data))
    properties = read_properties(message)
    return Request(
        operation=_required(properties, "operation"),
        type=_required(properties, "type"),
        name=_optional(properties, "name"),
        identity=_optional(properties, "identity"),
        properties=properties,
        arguments=_arguments(sections, data),
    )


def read_properties(message: Message) -> dict[str, object]:
    """Return the application properties of a request; Refused if it has none."""
    data = message.encoded
    sections = split(data, 0, len(data))
    if sections.application_properties < 0:
        raise Refused(BAD_REQUEST, "set the application properties operation and type")
    return _map_at("application-properties", data, sections.application_properties)


def read_text(message: Message, *, at_most: int) -> str:
    """Return the body of a request, a text of at most so many bytes; Refused if it is none."""
    data = message.encoded
    sections = split(data, 0, len(data))
    code, at = (-1, 0) if sections.body < 0 else descriptor_at(data, sections.body, sections.end)
    if code != AMQP_VALUE or sections.end - at > at_most + TEXT_HEAD_BYTES:
        raise Refused(BAD_REQUEST, f"the body must be a text of at most {at_most} bytes")
    try:
        value, _ = take_value(data, at, sections.end, FIELD_VALUES_MAX)
    except Fault as fault:
        raise Refused(BAD_REQUEST, f"the body: {fault.description}") from None
    if not isinstance(value, str):
        raise Refused(BAD_REQUEST, f"the body must be a text of at most {at_most} bytes")
    return value


def _required(properties: Mapping[str, object], name: str) -> str:
    text = _optional(properties, name)
    if not text:
        raise Refused(BAD_REQUEST, f"set the application property {name}")
    return text


def _optional(properties: Mapping[str, object], name: str) -> str | None:
    value = properties.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(BAD_REQUEST, f"application property {name} must be a string")
    return None if value is None else checked_text(name, value)


def _arguments(sections: Sections, data: bytes) -> dict[str, object]:
    if sections.body < 0:
        return {}
    if sections.end - sections.body > BODY_BYTES_MAX:
        raise Refused(BAD_REQUEST, f"the body must have at most {BODY_BYTES_MAX} bytes")
    code, at = descriptor_at(data, sections.body, sections.end)
    if code != AMQP_VALUE:
        raise Refused(BAD_REQUEST, "the body must be a map, as an AMQP value")
    if data[at] == 0x40 or not data[at:]:
        return {}
    return _map_at("the body", data, at)


def _map_at(what: str, data: bytes, at: int) -> dict[str, object]:
    """Return the map at `at`, symbols turned into strings; Refused if it is no map
    with strings as keys.

    `what` names the map in errors.
    """
    try:
        value, _ = take_value(data, at, len(data), FIELD_VALUES_MAX)
    except Fault as fault:
        raise Refused(BAD_REQUEST, f"{what}: {fault.description}") from None
    if not isinstance(value, Map):
        raise Refused(BAD_REQUEST, f"{what} must be a map")
    found: dict[str, object] = {}
    for key, each in value.pairs:
        name = key.text if isinstance(key, Symbol) else key
        if not isinstance(name, str):
            raise Refused(BAD_REQUEST, f"the keys of {what} must be strings")
        found[name] = each.text if isinstance(each, Symbol) else each
    return found
