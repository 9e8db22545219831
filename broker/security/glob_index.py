"""Index of the patterns of kinds that have globs: subscriptions, client ids, listeners and others.

A pattern without wildcards is found by its text at once, the others by the literal beginning that
they have before their first wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from broker.security.patterns import (
    KEY,
    MANY,
    VARIABLES,
    Piece,
    RulePattern,
    Template,
    glob_matches,
)
from broker.security.variables import FilledIndexes, RuleEntry

BORDER: Final = "\0"
"""Stands between name and key in the texts that patterns are found by: no name contains NUL."""


@final
class GlobIndex:
    """The patterns of one kind of resource that one user or role has."""

    def __init__(self) -> None:
        self.entries: Final[list[RuleEntry]] = []
        self._exact: Final[dict[str, list[RuleEntry]]] = {}
        self._beginning: Final[dict[int, dict[str, list[RuleEntry]]]] = {}
        self._filled: FilledIndexes[GlobIndex] | None = None

    def add(self, entry: RuleEntry) -> None:
        self.entries.append(entry)
        if entry.pattern.has_variables():
            if self._filled is None:
                self._filled = FilledIndexes(GlobIndex)
            self._filled.add(entry)
            return
        begins, is_whole = _beginning_of(entry.pattern)
        place = self._exact if is_whole else self._beginning.setdefault(len(begins), {})
        place.setdefault(begins, []).append(entry)

    def for_values(self, user: str, client_id: str) -> list[GlobIndex]:
        """Return this index, and one of its patterns with variables filled by these values."""
        filled = None if self._filled is None else self._filled.of(user, client_id)
        return [self] if filled is None else [self, filled]

    def matching(self, name: str, key: str) -> Iterator[RuleEntry]:
        """Yield the entries without variables that match a resource."""
        text = f"{name}{BORDER}{key}"
        yield from self._exact.get(text, ())
        for length, places in self._beginning.items():
            for entry in places.get(text[:length], ()):
                if pattern_matches(entry.pattern, name, key):
                    yield entry


def _beginning_of(pattern: RulePattern) -> tuple[str, bool]:
    """Return the literal text before the first wildcard, and whether there is no wildcard."""
    found = ""
    for piece in (*pattern.name, BORDER, *(pattern.key or ())):
        if not isinstance(piece, str):
            return found, False
        found += piece
    return found, True


def pattern_matches(pattern: RulePattern, name: str, key: str) -> bool:
    """Return whether a glob without variables matches the name and key of a resource."""
    tokens = pattern.tokens(is_keyed=False)
    assert tokens is not None
    if pattern.key is None:
        return glob_matches(tokens, name)
    border = tokens.index(KEY)
    return glob_matches(tokens[:border], name) and glob_matches(tokens[border + 1 :], key)


def for_any_value(pattern: RulePattern) -> RulePattern:
    """Return a glob without key with a wildcard in place of each variable."""
    found: list[Piece] = []
    for piece in pattern.name:
        parts = piece.parts if isinstance(piece, Template) else (piece,)
        for part in parts:
            if part not in VARIABLES:
                found.append(part)
            elif found[-1:] != [MANY]:
                found.append(MANY)
    return RulePattern(pattern.text, kind=pattern.kind, name=tuple(found), key=None)
