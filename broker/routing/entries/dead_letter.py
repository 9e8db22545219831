"""Annotations of messages that were moved to a dead-letter or expiry node.

They are annotations because the broker must not change the bare message (PRD-05), unless
`dead_letter_properties` asks for properties, too. `x-opt-ORIG-…` are the names that ActiveMQ
Artemis uses and its tools know. A message that is moved again has the annotations of the last move.
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

It is unknown for a subscription to several topics; then this is the queue's own address.
"""

ORIGINAL_QUEUE: Final = "x-opt-ORIG-QUEUE"
"""The queue that the message was in; for a subscription the address or pattern that it is to."""

SUBSCRIPTION: Final = "x-opt-dead-letter-subscription"
"""Only of a subscription's message: its identity (`identity_of`), empty if it has no name."""

REASON: Final = "x-opt-dead-letter-reason"
CONDITION: Final = "x-opt-dead-letter-condition"
DESCRIPTION: Final = "x-opt-dead-letter-description"
DELIVERY_COUNT: Final = "x-opt-dead-letter-delivery-count"
MOVED_AT: Final = "x-opt-dead-letter-time"

HELD: Final = "x-opt-dead-letter-held"
"""Only in the store: the annotations say why a message is held back in its queue (`moves.py`)."""

PROPERTIES: Final = "x-opt-dead-letter-properties"
"""The message also has the application properties of PROPERTY_NAMES, with the same values."""

OURS: Final = frozenset(
    {
        ORIGINAL_ADDRESS,
        ORIGINAL_QUEUE,
        SUBSCRIPTION,
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
    SUBSCRIPTION: "dead_letter_subscription",
    REASON: "dead_letter_reason",
    CONDITION: "dead_letter_condition",
    DESCRIPTION: "dead_letter_description",
    DELIVERY_COUNT: "dead_letter_delivery_count",
    MOVED_AT: "dead_letter_time",
}
"""Properties for JMS applications in place of annotations, if `dead_letter_properties` is set.

Each is a String, except the count (int) and the time (long). A sender's own property of
such a name is replaced.
"""

INT_MAX: Final = 2**31 - 1

OUR_PROPERTIES: Final = frozenset(PROPERTY_NAMES.values())

CONDITION_MAX: Final = 255
DESCRIPTION_MAX: Final = 1024
"""Maximum characters kept of a condition or description from a consumer that rejects a message."""


@final
class Cause:
    """Reason for a move; `condition` and `description` are those of a rejected outcome."""

    def __init__(self, reason: str, condition: str = "", description: str = "") -> None:
        self.reason: Final = reason
        self.condition: Final = condition[:CONDITION_MAX]
        self.description: Final = description[:DESCRIPTION_MAX]


REJECTED: Final = "rejected"
REJECTED_UNSAID: Final = Cause(REJECTED)
DELIVERY_LIMIT: Final = Cause("delivery-limit")
EXPIRED: Final = Cause("expired")


def departed(entry: QueueEntry, cause: Cause, wall_ms: i64) -> Message:
    """Return the message of `entry` as its dead-letter or expiry node gets it.

    It has no delivery time any more and, if it has expired, no expiry. If its own annotations
    or properties leave no room for ours, or cannot be read, ours are left out.
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
            pass  # try it with annotations alone
    try:
        return message.moved(_annotated(message, facts, _bare(message)), expires=expires)
    except Fault:
        return message.moved(None, expires=expires)


def marked_as_held(entry: QueueEntry, cause: Cause, wall_ms: i64) -> bytes | None:
    """Return the encoded message for the store, until `entry` can be moved because of `cause`.

    None if the message's own annotations leave no room, or cannot be read.
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


def origin_of(message: Message) -> tuple[str, str | None]:
    """Return the queue that a dead letter was in, and the subscription; empty, None if unknown.

    `subscription` is empty for one without a name, None for a message of a queue.
    """
    if message.opaque:
        return "", None
    try:
        said = {str(key): value for key, value in message.annotations().pairs}
    except Fault:  # its producer wrote annotations that cannot be decoded
        return "", None
    queue, subscription = said.get(ORIGINAL_QUEUE), said.get(SUBSCRIPTION)
    return (
        queue if isinstance(queue, str) else "",
        subscription if isinstance(subscription, str) else None,
    )


def returned(message: Message) -> Message:
    """Return a message as it was before its move: without our annotations and properties."""
    try:
        return message.moved(_annotated(message, [], _bare(message)), expires=True)
    except Fault:
        return message


def _annotated(message: Message, facts: list[tuple[object, object]], encoded: bytes) -> bytes:
    """Return `encoded` with the annotations of `message`, and `facts` in place of ours."""
    kept = [pair for pair in message.annotations().pairs if not _is_ours(pair[0])]
    return with_annotations(encoded, Map(kept + facts))


def _bare(message: Message) -> bytes:
    """Return the encoded message without the properties that an earlier move added."""
    if Symbol(PROPERTIES) not in message.annotations():
        return message.encoded
    return with_properties(message.encoded, [], without=OUR_PROPERTIES)


def _told(facts: list[tuple[object, object]]) -> list[tuple[object, object]]:
    """Return annotations as application properties of types that JMS has."""
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
    if queue.is_subscription:
        facts.append((Symbol(SUBSCRIPTION), queue.subscription))
    if cause.condition:
        facts.append((Symbol(CONDITION), Symbol(cause.condition)))
    if cause.description:
        facts.append((Symbol(DESCRIPTION), cause.description))
    return facts
