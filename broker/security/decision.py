"""Decisions about rights, and their descriptions for clients."""

from __future__ import annotations

from typing import Final, final

from broker.security.resources import Resource

OVERLAP: Final = "overlap"
"""A deny rule matches the resource, or a part of the names that a wildcard stands for."""

COVER: Final = "cover"
"""Allow rules match the resource, and all names that a wildcard stands for."""

FIXED: Final = "fixed"
"""The broker decides it, whatever the rules say: temporary nodes, and the broker's own names."""

UNDECIDED: Final = "undecided"
"""The comparison with the rules exceeded a limit, so the request is refused."""

DEFAULT: Final = "default"
"""No rule matches, which means no."""


@final
class Decision:
    """The answer to one request: whether it is allowed, by which rule, and for which reason.

    `rule` is the id of the rule that decided, or empty. If several rules cover a wildcard
    together, it has their ids, separated by commas.
    """

    def __init__(self, *, allowed: bool, rule: str, because: str) -> None:
        self.allowed: Final = allowed
        self.rule: Final = rule
        self.because: Final = because

    def text(self, verb: str, resource: Resource) -> str:
        """Return the description of a refusal. It does not say whether the resource exists."""
        rule = f"rule {self.rule}" if self.rule else "no rule allows it"
        return f"not allowed to {verb} {resource.text()} ({rule})"
