"""Patterns in a trie of their words, so that a key meets only those that begin as it does.

A match walks the words of the key once. At each word it has the set of trie nodes that
patterns may have reached by then: the work grows with the patterns that still match, not
with those that have stopped matching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.addresses.pattern import MANY, ONE

if TYPE_CHECKING:
    from broker.routing.topics.binding import Binding


@final
class TrieNode:
    """The patterns that begin with the words leading here; `bindings` are those that end here."""

    def __init__(self, *, repeats: bool) -> None:
        self.words: Final[dict[str, TrieNode]] = {}
        self.one: TrieNode | None = None
        self.many: TrieNode | None = None
        self.bindings: Final[list[Binding]] = []
        self.repeats: Final = repeats
        self.step: i64 = 0

    def next(self, word: str) -> TrieNode | None:
        if word == ONE:
            return self.one
        if word == MANY:
            return self.many
        return self.words.get(word)

    def grow(self, word: str) -> TrieNode:
        """Return the node after `word`, created if missing."""
        found = self.next(word)
        if found is None:
            found = TrieNode(repeats=word == MANY)
            if word == ONE:
                self.one = found
            elif word == MANY:
                self.many = found
            else:
                self.words[word] = found
        return found

    def prune(self, word: str) -> None:
        """Remove the node after `word`."""
        if word == ONE:
            self.one = None
        elif word == MANY:
            self.many = None
        else:
            self.words.pop(word, None)

    def is_bare(self) -> bool:
        """Return whether no pattern needs this node."""
        return not (self.bindings or self.words or self.one is not None or self.many is not None)


@final
class Trie:
    """Bindings by pattern, in normal form. `visited` counts the nodes that the last match met."""

    def __init__(self) -> None:
        self.visited: i64 = 0
        self._root: Final = TrieNode(repeats=False)
        self._step: i64 = 0

    def is_empty(self) -> bool:
        return self._root.is_bare()

    def add(self, pattern: list[str], binding: Binding) -> None:
        node = self._root
        for word in pattern:
            node = node.grow(word)
        node.bindings.append(binding)

    def remove(self, pattern: list[str], binding: Binding) -> None:
        """Remove the binding added under that pattern, and the nodes that only it needed."""
        node = self._root
        way = [node]
        for word in pattern:
            following = node.next(word)
            if following is None:
                return
            node = following
            way.append(node)
        if binding in node.bindings:
            node.bindings.remove(binding)
        at = len(pattern) - 1
        while at >= 0 and way[at + 1].is_bare():
            way[at].prune(pattern[at])
            at -= 1

    def match(self, words: list[str]) -> list[TrieNode]:
        """Return the end nodes of all patterns that match `words`; some have no bindings."""
        here: list[TrieNode] = []
        self._step += 1
        self._reach(self._root, here)
        visited = i64(len(here))
        for word in words:
            there: list[TrieNode] = []
            self._step += 1
            for node in here:
                if node.repeats:
                    self._reach(node, there)
                following = node.words.get(word)
                if following is not None:
                    self._reach(following, there)
                if node.one is not None:
                    self._reach(node.one, there)
            here = there
            visited += i64(len(here))
        self.visited = visited
        return here

    def _reach(self, node: TrieNode, reached: list[TrieNode]) -> None:
        """Reach `node`, and the `#` after it, which may stand for no word; each only once."""
        if node.step == self._step:
            return
        node.step = self._step
        reached.append(node)
        # in the normal form no `#` follows a `#`, so one level is enough
        many = node.many
        if many is not None and many.step != self._step:
            many.step = self._step
            reached.append(many)
