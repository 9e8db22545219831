"""Entries of the indexes, and indexes of those with variables for the values of one connection."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar, final

from broker.security.patterns import RulePattern
from broker.security.rules import Rule

KEPT_MAX: Final = 4096
"""Maximum entries in all indexes that one `FilledIndexes` keeps; the one in use may have more."""


@final
class RuleEntry:
    """One pattern of one rule, as the indexes hold it."""

    def __init__(self, rule: Rule, pattern: RulePattern) -> None:
        self.rule: Final = rule
        self.pattern: Final = pattern
        self.verbs: Final = rule.verbs
        self.when: Final = rule.when


class EntryIndex(Protocol):
    """An index that entries are added to."""

    def add(self, entry: RuleEntry) -> None:
        """Add an entry."""


T = TypeVar("T", bound=EntryIndex)


class FilledIndexes(Generic[T]):
    """Entries with variables, and an index of them for each pair of values that was used lately.

    Variables that no entry has do not tell connections apart: all connections of a user share an
    index if the entries have only `{user}`.
    """

    def __init__(self, new_index: Callable[[], T]) -> None:
        self._new_index: Final = new_index
        self._entries: Final[list[RuleEntry]] = []
        self._indexes: Final[OrderedDict[tuple[str, str], T]] = OrderedDict()
        self._has_user = False
        self._has_client_id = False

    def add(self, entry: RuleEntry) -> None:
        self._entries.append(entry)
        self._has_user |= entry.pattern.has_user
        self._has_client_id |= entry.pattern.has_client_id
        self._indexes.clear()

    def of(self, user: str, client_id: str) -> T | None:
        """Return the index for these values, made if it is missing; None if there are no entries.

        It lacks entries with a variable whose value is empty: they match nothing.
        """
        if not self._entries:
            return None
        values = (user if self._has_user else "", client_id if self._has_client_id else "")
        found = self._indexes.get(values)
        if found is not None:
            self._indexes.move_to_end(values)
            return found
        index = self._new_index()
        for entry in self._entries:
            pattern = entry.pattern.filled(user, client_id)
            if pattern is not None:
                index.add(RuleEntry(entry.rule, pattern))
        self._indexes[values] = index
        while len(self._indexes) > 1 and len(self._indexes) * len(self._entries) > KEPT_MAX:
            self._indexes.popitem(last=False)
        return index
