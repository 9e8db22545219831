"""Filters of receivers: by selector, and against messages that the receiver has sent itself."""

from __future__ import annotations

from typing import final

from broker.message import Message
from broker.routing.entries.bridge_marks import may_pass
from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.selector import Facts, Selector


@final
class ConsumerFilter:
    """A selector or None, and a publisher whose messages are not wanted, or an empty name.

    Filters that say the same are equal. None stands for a filter that everything passes. `part`
    limits a filter to a part of the backlog; the code that judges entries checks it itself.
    `bridge` leaves out what may not pass the bridge of that name; empty for none.
    """

    def __init__(
        self,
        selector: Selector | None = None,
        excluded_publisher: str = "",
        *,
        part: BrowseSlice | None = None,
        bridge: str = "",
    ) -> None:
        self.selector = selector
        self.excluded_publisher = excluded_publisher
        self.part = part
        self.bridge = bridge

    def passes(self, message: Message) -> bool:
        """Return whether `message` passes; `part` is not checked."""
        return self.admits(Facts(message))

    def admits(self, facts: Facts) -> bool:
        """Like `passes`, for callers that ask several filters about one message."""
        if self.excluded_publisher and facts.message.publisher == self.excluded_publisher:
            return False
        if self.bridge and not may_pass(facts.message, self.bridge):
            return False
        return self.selector is None or self.selector.admits(facts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ConsumerFilter)
            and self.selector == other.selector
            and self.excluded_publisher == other.excluded_publisher
            and self.part is other.part
            and self.bridge == other.bridge
        )

    def __hash__(self) -> int:
        return hash((self.selector, self.excluded_publisher))
