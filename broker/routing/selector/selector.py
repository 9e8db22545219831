"""A selector that can be asked, and the memory of those that were parsed."""

from __future__ import annotations

from typing import Final, final

from broker.message import Message
from broker.routing.selector.expression import Expression
from broker.routing.selector.facts import Facts

PARSED_MAX: Final = 1000
"""Parses that are remembered, for all brokers of a process; the oldest is forgotten first."""


@final
class Selector:
    """Which messages somebody wants. Two of one text are one."""

    def __init__(self, text: str, condition: Expression) -> None:
        self.text: Final = text
        self._condition: Final = condition

    def matches(self, message: Message) -> bool:
        """Whether `message` is wanted: what is unknown is not."""
        return self.admits(Facts(message))

    def admits(self, facts: Facts) -> bool:
        """As `matches`, for whoever asks several selectors about a message."""
        facts.begin()
        return self._condition.evaluate(facts) is True and not facts.is_overspent()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


PARSED: Final[dict[str, Selector]] = {}


def parse_selector(text: str) -> Selector:
    """The selector that `text` says; InvalidSelector, naming the place, where it says none."""
    selector = PARSED.get(text)
    if selector is None:
        # here, because it imports lark: a broker without selectors does without
        from broker.routing.selector.parse import parse

        selector = Selector(text, parse(text))
        if len(PARSED) >= PARSED_MAX:
            PARSED.pop(next(iter(PARSED)), None)
        PARSED[text] = selector
    return selector
