"""JMS selectors (JMS 2.0, 3.8.1): `parse_selector` makes of a text what a message is asked."""

from broker.routing.selector.facts import Facts
from broker.routing.selector.selector import Selector, parse_selector

__all__ = ["Facts", "Selector", "parse_selector"]
