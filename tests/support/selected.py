"""Messages with the properties that selectors evaluate."""

from collections.abc import Mapping
from typing import Final

from broker.amqp.descriptors import AMQP_VALUE, APPLICATION_PROPERTIES, PROPERTIES
from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.types import Map
from broker.embedding.message import PROPERTIES as NAMES
from broker.message import NEVER, Message

NO_FIELDS: Final[dict[str, object]] = {}


def selectable(
    application_properties: Mapping[str, object] = NO_FIELDS,
    *,
    durable: bool = False,
    priority: int = 4,
    body: str = "x",
    **properties: object,
) -> Message:
    """Return a message with these application properties, and fields of the properties section."""
    out = BytesWriter()
    if properties:
        put_descriptor(out, PROPERTIES)
        put_value(out, [properties.get(name) for name in NAMES])
    if application_properties:
        put_descriptor(out, APPLICATION_PROPERTIES)
        put_value(out, Map(list(application_properties.items())))
    put_descriptor(out, AMQP_VALUE)
    put_value(out, body)
    return Message(
        encoded=out.getvalue(),
        durable=durable,
        priority=priority,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=NEVER,
    )
