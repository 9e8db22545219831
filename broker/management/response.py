"""The response to a request, and its encoding as a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from broker.amqp.composite import FieldWriter
from broker.amqp.descriptors import AMQP_VALUE, APPLICATION_PROPERTIES, PROPERTIES
from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.sections import Sections
from broker.amqp.types import Int
from broker.clock import Clock
from broker.management.request import Envelope, Refused
from broker.message import Message, read_message

OK: Final = 200
CREATED: Final = 201
ACCEPTED: Final = 202
NO_CONTENT: Final = 204

STATUS_CODE: Final = "statusCode"
STATUS_DESCRIPTION: Final = "statusDescription"
STATUS: Final = (STATUS_CODE, STATUS_DESCRIPTION)
STATUS_OF_CLAIMS: Final = ("status-code", "status-description")
"""Names of the properties with the status, by the drafts of management and of claims."""


@dataclass(frozen=True, kw_only=True)
class Response:
    """A status code as in HTTP, and a body: a map, or a list if a list was requested.

    `properties` are sent as application properties. `condition` is the AMQP error condition of a
    failure, empty if it has none of its own; a response over AMQP does not have it.
    """

    status: int = OK
    description: str = "OK"
    body: Mapping[str, object] | list[object] = field(default_factory=dict)
    properties: Mapping[str, object] = field(default_factory=dict)
    condition: str = ""


def response_of(refusal: Refused) -> Response:
    """Return the response to a request that is refused."""
    return Response(status=refusal.status, description=str(refusal))


def as_message(
    response: Response,
    envelope: Envelope,
    clock: Clock,
    *,
    names: tuple[str, str] = STATUS,
) -> Message:
    """Return `response` as a message to `envelope.reply_to`; `names` are those of its status.

    The message is not durable, because the client can send its request again.
    """
    out = BytesWriter()
    _put_properties(out, envelope)
    put_descriptor(out, APPLICATION_PROPERTIES)
    status: dict[str, object] = {
        names[0]: Int(response.status),
        names[1]: response.description,
    }
    put_value(out, {**status, **response.properties})
    put_descriptor(out, AMQP_VALUE)
    put_value(out, response.body if isinstance(response.body, list) else dict(response.body))
    data = out.getvalue()
    sections = Sections()
    sections.read(data, 0, len(data))
    return read_message(sections, data, clock)


def _put_properties(out: BytesWriter, envelope: Envelope) -> None:
    """Write the properties section with `to` and correlation-id (core 3.2.4)."""
    fields = FieldWriter()
    fields.skip()  # message-id
    fields.skip()  # user-id
    fields.string(envelope.reply_to)
    fields.skip()  # subject
    fields.skip()  # reply-to
    fields.raw(envelope.correlation_id)
    fields.close(out, PROPERTIES)
