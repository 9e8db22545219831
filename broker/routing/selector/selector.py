"""Selectors, and the cache of those that were parsed."""

from __future__ import annotations

from typing import Final, final

from broker.message import Message
from broker.routing.selector.expression import Expression
from broker.routing.selector.facts import Facts

PARSED_MAX: Final = 1000
"""Maximum selectors in the cache, for all brokers of a process; the oldest is removed first."""


@final
class Selector:
    """A condition that selects messages. Two selectors of one text are equal."""

    def __init__(self, text: str, condition: Expression) -> None:
        self.text: Final = text
        self._condition: Final = condition

    def matches(self, message: Message) -> bool:
        """Return whether `message` is selected. It is not if the result is unknown."""
        return self.admits(Facts(message))

    def admits(self, facts: Facts) -> bool:
        """Like `matches`, for a message whose `facts` several selectors share."""
        facts.begin()
        return self._condition.evaluate(facts) is True and not facts.is_overspent()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


PARSED: Final[dict[str, Selector]] = {}


def parse_selector(text: str) -> Selector:
    """Return the selector of `text`. InvalidSelector, with the position, if it is none."""
    selector = PARSED.get(text)
    if selector is None:
        # imported here, so that a broker without selectors does not load lark
        from broker.routing.selector.parse import parse

        selector = Selector(text, parse(text))
        if len(PARSED) >= PARSED_MAX:
            PARSED.pop(next(iter(PARSED)), None)
        PARSED[text] = selector
    return selector
