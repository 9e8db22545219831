"""Messages to the anonymous relay: which node each of them is for (PRD-01, DST-03 to DST-05)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from broker.amqp.errors import NOT_FOUND, LinkFault
from broker.amqp.sections import Sections
from broker.jms.destinations import is_topic, type_of_number, type_of_words
from broker.routing.queues.node import QUEUE, TOPIC

DESTINATION: Final = b"x-opt-jms-dest"
DESTINATION_TYPE: Final = b"x-opt-to-type"


def unaddressed(message_format: i64) -> LinkFault:
    """Return the fault of an opaque message of that format that was sent to the anonymous relay."""
    return LinkFault(
        NOT_FOUND,
        f"a message of format {int(message_format):#x} that is not made of sections has no `to`:"
        " send it on a link to its address, not to the anonymous relay",
    )


def kind_of_destination(sections: Sections, data: bytes) -> str:
    """Return the kind of destination in a message's annotations, or empty (DST-03, DST-04)."""
    type = type_of_number(sections.annotation(data, DESTINATION))
    if type is None:
        type = type_of_words(sections.annotation(data, DESTINATION_TYPE))
    if type is None:
        return ""
    return TOPIC if is_topic(type) else QUEUE
