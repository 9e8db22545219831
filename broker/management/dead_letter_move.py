"""The move that made a message a dead letter, by its annotations: from where, why and when."""

from __future__ import annotations

from dataclasses import dataclass

from broker.amqp.errors import Fault
from broker.amqp.types import Map, Symbol, Timestamp, UInt
from broker.message import Message
from broker.routing.entries.dead_letter import (
    DELIVERY_COUNT,
    MOVED_AT,
    ORIGINAL_ADDRESS,
    REASON,
)


@dataclass(frozen=True)
class DeadLetterMove:
    """The address that a dead letter was sent to, the reason of its move, and the move's time.

    The time is in ms since 1970, 0 if it is unknown; texts are empty if they are unknown.
    `delivery_count` is that of the message before the move, None if unknown.
    """

    source: str
    reason: str
    moved_at: int
    delivery_count: int | None = None


def move_of(message: Message) -> DeadLetterMove | None:
    """Return the move of a dead letter, None for any other message."""
    try:
        annotations = message.annotations()
    except Fault:
        return None
    reason = _text(annotations, REASON)
    if not reason:
        return None
    moved_at = annotations.get(Symbol(MOVED_AT))
    count = annotations.get(Symbol(DELIVERY_COUNT))
    return DeadLetterMove(
        source=_text(annotations, ORIGINAL_ADDRESS),
        reason=reason,
        moved_at=moved_at.value if isinstance(moved_at, Timestamp) else 0,
        delivery_count=count.value if isinstance(count, UInt) else None,
    )


def _text(annotations: Map, name: str) -> str:
    value = annotations.get(Symbol(name))
    if isinstance(value, Symbol):
        return value.text
    return value if isinstance(value, str) else ""
