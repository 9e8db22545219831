"""JMS selectors (JMS 2.0, 3.8.1): `parse_selector` turns a text into a condition on messages."""

from broker.routing.selector.facts import Facts
from broker.routing.selector.selector import Selector, parse_selector

__all__ = ["Facts", "Selector", "parse_selector"]
