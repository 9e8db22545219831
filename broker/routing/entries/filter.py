"""What a receiver leaves out: what its selector does not take, and what it has sent itself."""

from __future__ import annotations

from typing import final

from broker.message import Message
from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.selector import Facts, Selector


@final
class ConsumerFilter:
    """A selector, or none, and a publisher whose messages are not wanted, or an empty name.

    Two that say the same are equal. Nobody has one that lets everything pass: None does that.
    Of what waits only a `part` may be wanted; whoever judges entries asks for that himself.
    """

    def __init__(
        self,
        selector: Selector | None = None,
        excluded_publisher: str = "",
        part: BrowseSlice | None = None,
    ) -> None:
        self.selector = selector
        self.excluded_publisher = excluded_publisher
        self.part = part

    def passes(self, message: Message) -> bool:
        """Whether `message` is wanted."""
        return self.admits(Facts(message))

    def admits(self, facts: Facts) -> bool:
        """As `passes`, for whoever asks several filters about a message."""
        if self.excluded_publisher and facts.message.publisher == self.excluded_publisher:
            return False
        return self.selector is None or self.selector.admits(facts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ConsumerFilter)
            and self.selector == other.selector
            and self.excluded_publisher == other.excluded_publisher
            and self.part is other.part
        )

    def __hash__(self) -> int:
        return hash((self.selector, self.excluded_publisher))
