"""What the annotations of a message say that was moved to a dead-letter or expiry node.

Annotations, for the bare message is not ours to change (PRD-05), unless `dead_letter_properties`
asks for properties, too. `x-opt-ORIG-…` are those of
ActiveMQ Artemis, which tools for it know. A message that is moved again tells of the last move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import Fault
from broker.amqp.types import Int, Map, Symbol, Timestamp, UInt
from broker.message import Message, with_annotations
from broker.routing.entries.application_properties import with_properties

if TYPE_CHECKING:
    from broker.routing.entries.entry import QueueEntry

ORIGINAL_ADDRESS: Final = "x-opt-ORIG-ADDRESS"
"""The address that the message was sent to: a queue's, or a topic's.

Of a subscription to several topics it is not known to which; then it is the queue's own.
"""

ORIGINAL_QUEUE: Final = "x-opt-ORIG-QUEUE"
"""The queue that it was in: that one, or a subscription's."""

REASON: Final = "x-opt-dead-letter-reason"
CONDITION: Final = "x-opt-dead-letter-condition"
DESCRIPTION: Final = "x-opt-dead-letter-description"
DELIVERY_COUNT: Final = "x-opt-dead-letter-delivery-count"
MOVED_AT: Final = "x-opt-dead-letter-time"

HELD: Final = "x-opt-dead-letter-held"
"""In the store alone: the annotations say why a message is held in its queue (`moves.py`)."""

PROPERTIES: Final = "x-opt-dead-letter-properties"
"""The message has application properties that say the same, those of PROPERTY_NAMES."""

OURS: Final = frozenset(
    {
        ORIGINAL_ADDRESS,
        ORIGINAL_QUEUE,
        REASON,
        CONDITION,
        DESCRIPTION,
        DELIVERY_COUNT,
        MOVED_AT,
        HELD,
        PROPERTIES,
    }
)

PROPERTY_NAMES: Final[dict[str, str]] = {
    ORIGINAL_ADDRESS: "dead_letter_address",
    ORIGINAL_QUEUE: "dead_letter_queue",
    REASON: "dead_letter_reason",
    CONDITION: "dead_letter_condition",
    DESCRIPTION: "dead_letter_description",
    DELIVERY_COUNT: "dead_letter_delivery_count",
    MOVED_AT: "dead_letter_time",
}
"""What JMS applications read in place of annotations, where `dead_letter_properties` is set.

Each is a String, but for the count (int) and the time (long). What a sender has set under
such a name is replaced.
"""

INT_MAX: Final = 2**31 - 1

OUR_PROPERTIES: Final = frozenset(PROPERTY_NAMES.values())

CONDITION_MAX: Final = 255
DESCRIPTION_MAX: Final = 1024
"""Characters that are kept of what a consumer says of a message that it rejects."""


@final
class Cause:
    """Why a message is moved; `condition` and `description` are those of a rejected outcome."""

    def __init__(self, reason: str, condition: str = "", description: str = "") -> None:
        self.reason: Final = reason
        self.condition: Final = condition[:CONDITION_MAX]
        self.description: Final = description[:DESCRIPTION_MAX]


REJECTED: Final = "rejected"
REJECTED_UNSAID: Final = Cause(REJECTED)
DELIVERY_LIMIT: Final = Cause("delivery-limit")
EXPIRED: Final = Cause("expired")


def departed(entry: QueueEntry, cause: Cause, wall_ms: i64) -> Message:
    """The message of `entry` as it goes to its dead-letter or expiry node.

    It has no delivery time any more and, where it has expired, no expiry. Where
    its own annotations or properties leave no room for ours, or cannot be read, it goes without.
    """
    message = entry.message
    expires = cause is not EXPIRED
    facts = _facts(entry, cause, wall_ms)
    if entry.queue.policy.dead_letter_properties:
        told = [*facts, (Symbol(PROPERTIES), True)]
        try:
            encoded = with_properties(message.encoded, _told(facts), without=OUR_PROPERTIES)
            return message.moved(_annotated(message, told, encoded), expires=expires)
        except Fault:
            pass  # with annotations alone
    try:
        return message.moved(_annotated(message, facts, _bare(message)), expires=expires)
    except Fault:
        return message.moved(None, expires=expires)


def marked_as_held(entry: QueueEntry, cause: Cause, wall_ms: i64) -> bytes | None:
    """Return what the store is to have of `entry` until it can be moved because of `cause`.

    None if its own annotations leave no room, or cannot be read.
    """
    message = entry.message
    facts = [*_facts(entry, cause, wall_ms), (Symbol(HELD), True)]
    try:
        return _annotated(message, facts, _bare(message))
    except Fault:
        return None


def cause_marked(message: Message) -> Cause | None:
    """Return the cause of a stored message that was `marked_as_held`; None for any other."""
    try:
        said = {str(key): value for key, value in message.annotations().pairs}
    except Fault:
        return None
    if said.get(HELD) is not True:
        return None
    return Cause(
        str(said.get(REASON, REJECTED)),
        str(said.get(CONDITION, "")),
        str(said.get(DESCRIPTION, "")),
    )


def returned(message: Message) -> Message:
    """A message as it was before it was moved there: without our annotations and properties."""
    try:
        return message.moved(_annotated(message, [], _bare(message)), expires=True)
    except Fault:
        return message


def _annotated(message: Message, facts: list[tuple[object, object]], encoded: bytes) -> bytes:
    """Return `encoded` with the annotations of `message`, and `facts` in place of ours."""
    kept = [pair for pair in message.annotations().pairs if not _is_ours(pair[0])]
    return with_annotations(encoded, Map(kept + facts))


def _bare(message: Message) -> bytes:
    """Return the encoded message without the properties that an earlier move has added."""
    if Symbol(PROPERTIES) not in message.annotations():
        return message.encoded
    return with_properties(message.encoded, [], without=OUR_PROPERTIES)


def _told(facts: list[tuple[object, object]]) -> list[tuple[object, object]]:
    """Return annotations as application properties, of types that JMS has."""
    told: list[tuple[object, object]] = []
    for key, value in facts:
        if isinstance(value, Symbol):
            value = value.text
        elif isinstance(value, UInt):
            value = Int(min(value.value, INT_MAX))
        elif isinstance(value, Timestamp):
            value = value.value
        told.append((PROPERTY_NAMES[str(key)], value))
    return told


def _is_ours(key: object) -> bool:
    return isinstance(key, Symbol) and key.text in OURS


def _facts(entry: QueueEntry, cause: Cause, wall_ms: i64) -> list[tuple[object, object]]:
    queue = entry.queue
    address = queue.address
    if len(queue.topics) == 1:
        for topic in queue.topics:
            address = topic.address
    facts: list[tuple[object, object]] = [
        (Symbol(ORIGINAL_ADDRESS), address),
        (Symbol(ORIGINAL_QUEUE), queue.address),
        (Symbol(REASON), Symbol(cause.reason)),
        (Symbol(DELIVERY_COUNT), UInt(int(entry.delivery_count))),
        (Symbol(MOVED_AT), Timestamp(int(wall_ms))),
    ]
    if cause.condition:
        facts.append((Symbol(CONDITION), Symbol(cause.condition)))
    if cause.description:
        facts.append((Symbol(DESCRIPTION), cause.description))
    return facts
