"""Limits on what one user may hold and send: `[[limit]]` of the rules file, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

from broker.security.rules import WHO_MAX, RuleError, check_keys, check_who, strings

CONNECTIONS: Final = "connections"
SESSIONS: Final = "sessions"
LINKS: Final = "links"
SUBSCRIPTIONS: Final = "subscriptions"
NODES: Final = "nodes"
MESSAGES_PER_S: Final = "messages_per_s"
BYTES_PER_S: Final = "bytes_per_s"
BACKLOG_BYTES: Final = "backlog_bytes"
AMOUNTS: Final = (
    *(CONNECTIONS, SESSIONS, LINKS, SUBSCRIPTIONS, NODES),
    *(MESSAGES_PER_S, BYTES_PER_S, BACKLOG_BYTES),
)

WHO: Final = "who"

LIMITS_MAX: Final = 1000
"""Maximum limits of a set."""

AMOUNT_MAX: Final = 2**50

NONE: Final = 0
"""The amount of a user without a limit."""


@final
class Limit:
    """One limit. `number` is its place in the file, from 1; `amounts` has what it limits."""

    def __init__(self, number: int, *, who: tuple[str, ...], amounts: Mapping[str, int]) -> None:
        self.number: Final = number
        self.who: Final = who
        self.amounts: Final = dict(amounts)

    def name(self) -> str:
        """Return the limit for operators: limits have no ids."""
        return f"limit {self.number}"

    def record(self) -> dict[str, object]:
        """Return the limit for operators, with the keys of a rule's record."""
        return {
            "id": self.name(),
            "effect": "limit",
            "who": list(self.who),
            "can": [f"{name} = {amount}" for name, amount in self.amounts.items()],
            "on": [],
            "when": "",
        }


@final
class UserLimits:
    """The limits of one user, each the strictest that matches; NONE is no limit."""

    def __init__(self, limits: Iterable[Limit] = ()) -> None:
        self.amounts: Final[dict[str, int]] = {}
        for limit in limits:
            for name, amount in limit.amounts.items():
                self.amounts[name] = min(amount, self.amounts.get(name, amount))

    def most(self, name: str) -> int:
        """Return the maximum of one of the AMOUNTS, NONE if it is not limited."""
        return self.amounts.get(name, NONE)

    def text(self) -> str:
        """Return all limits of the user for people, such as `connections = 50`; empty for none."""
        return ", ".join(
            f"{name} = {self.amounts[name]}" for name in AMOUNTS if name in self.amounts
        )


NO_LIMITS: Final = UserLimits()
"""The limits of a user without any."""


def limit_of(record: Mapping[str, object], number: int) -> Limit:
    """Return the limit that a table of the rules file describes. Raise RuleError if invalid."""
    place = f"limit {number}"
    check_keys(record, (WHO, *AMOUNTS), place)
    who = strings(record, WHO, place=place, most=WHO_MAX)
    for each in who:
        check_who(each, place)
    amounts: dict[str, int] = {}
    for name in AMOUNTS:
        if name not in record:
            continue
        amount = record[name]
        if isinstance(amount, bool) or not isinstance(amount, int):
            raise RuleError(f"{place}: {name} must be a whole number")
        if not 1 <= amount <= AMOUNT_MAX:
            raise RuleError(f"{place}: {name} = {amount}: from 1 to {AMOUNT_MAX}")
        amounts[name] = amount
    if not amounts:
        raise RuleError(f"{place}: limits nothing; give one of {', '.join(AMOUNTS)}")
    return Limit(number, who=who, amounts=amounts)
