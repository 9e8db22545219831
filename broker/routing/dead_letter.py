"""What the annotations of a message say that was moved to a dead-letter or expiry node.

Annotations, for the bare message is not ours to change (PRD-05). `x-opt-ORIG-…` are those of
ActiveMQ Artemis, which tools for it know. A message that is moved again tells of the last move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import Fault
from broker.amqp.types import Map, Symbol, Timestamp, UInt
from broker.message import Message

if TYPE_CHECKING:
    from broker.routing.entry import QueueEntry

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
    }
)

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
    its own annotations leave no room for ours, or cannot be read, it goes without.
    """
    message = entry.message
    expires = cause is not EXPIRED
    try:
        annotations = _annotated(message.annotations(), _facts(entry, cause, wall_ms))
        return message.moved(annotations, expires=expires)
    except Fault:
        return message.moved(None, expires=expires)


def marked_as_held(entry: QueueEntry, cause: Cause, wall_ms: i64) -> bytes | None:
    """Return what the store is to have of `entry` until it can be moved because of `cause`.

    None if its own annotations leave no room, or cannot be read.
    """
    message = entry.message
    facts = [*_facts(entry, cause, wall_ms), (Symbol(HELD), True)]
    try:
        return message.moved(_annotated(message.annotations(), facts), expires=True).encoded
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
    """A message as it was before it was moved there: without our annotations."""
    try:
        annotations = message.annotations()
        kept = [pair for pair in annotations.pairs if not _is_ours(pair[0])]
        return message.moved(Map(kept), expires=True)
    except Fault:
        return message


def _annotated(theirs: Map, facts: list[tuple[object, object]]) -> Map:
    kept = [pair for pair in theirs.pairs if not _is_ours(pair[0])]
    return Map(kept + facts)


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
