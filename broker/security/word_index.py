"""Index of the patterns of queues or topics, in trees of their words.

A name meets only the patterns that begin as it does. For a name with wildcards, the walk goes
through the trees with the set of states of its automaton, and leaves out each branch with which
it has no name in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from broker.security.coverage import Automaton, Budget
from broker.security.patterns import KEY, MANY, ONE, PLAIN, Piece, Token, Tokens
from broker.security.resources import RESERVED
from broker.security.variables import FilledIndexes, RuleEntry


@final
class AskedName:
    """The name of a queue or topic in words, and its key.

    `key` is None if keys do not matter. `is_any_key`: the name means messages of any key, and `key`
    is not used.
    """

    def __init__(self, words: list[str], key: list[str] | None, *, is_any_key: bool) -> None:
        self.words: Final = words
        self.key: Final = key
        self.is_any_key: Final = is_any_key
        self.is_keyed: Final = key is not None

    def tokens(self) -> Tokens:
        """Return the name as tokens, literally."""
        if self.key is None:
            return tuple(self.words)
        return (*self.words, KEY, *([MANY] if self.is_any_key else self.key))


@final
class WordNode:
    """The patterns that begin with the words that lead here.

    `ends` are those that end here, whatever the key; `keys` has those that go on with a key.
    """

    def __init__(self, *, repeats: bool = False) -> None:
        self.words: Final[dict[str, WordNode]] = {}
        self.one: WordNode | None = None
        self.plain: WordNode | None = None
        self.many: WordNode | None = None
        self.keys: WordNode | None = None
        self.ends: Final[list[RuleEntry]] = []
        self.repeats: Final = repeats

    def grown(self, token: Token) -> WordNode:
        """Return the node behind `token`, created if it is missing."""
        if isinstance(token, str):
            return self.words.setdefault(token, WordNode())
        if token == ONE:
            self.one = self.one or WordNode()
            return self.one
        if token == PLAIN:
            self.plain = self.plain or WordNode()
            return self.plain
        self.many = self.many or WordNode(repeats=True)
        return self.many


@final
class WordIndex:
    """The patterns of one kind of node that one user or role has."""

    def __init__(self) -> None:
        self.entries: Final[list[RuleEntry]] = []
        self._root: Final = WordNode()
        self._filled: FilledIndexes[WordIndex] | None = None

    def add(self, entry: RuleEntry) -> None:
        self.entries.append(entry)
        pattern = entry.pattern
        if pattern.has_variables():
            if self._filled is None:
                self._filled = FilledIndexes(WordIndex)
            self._filled.add(entry)
            return
        node = self._root
        for token in _literal(pattern.name):
            node = node.grown(token)
        if pattern.key is not None:
            node.keys = node.keys or WordNode()
            node = node.keys
            for token in _literal(pattern.key):
                node = node.grown(token)
        node.ends.append(entry)

    def for_values(self, user: str, client_id: str) -> list[WordIndex]:
        """Return this index, and one of its patterns with variables filled by these values."""
        filled = None if self._filled is None else self._filled.of(user, client_id)
        return [self] if filled is None else [self, filled]

    def matching(self, asked: AskedName) -> Iterator[RuleEntry]:
        """Yield the entries without variables that match a literal name, and each key it means."""
        nodes = reached([self._root], asked.words)
        for node in nodes:
            yield from node.ends
        if asked.key is not None and not asked.is_any_key:
            keys = [node.keys for node in nodes if node.keys is not None]
            if keys:
                for node in reached(keys, asked.key):
                    yield from node.ends

    def touching(self, asked: AskedName) -> Iterator[RuleEntry]:
        """Yield the entries without variables that match a literal name, and a key it means."""
        if not asked.is_any_key:
            yield from self.matching(asked)
            return
        for node in reached([self._root], asked.words):
            yield from node.ends
            if node.keys is not None:
                yield from _all_ends(node.keys)

    def has_keys(self, asked: AskedName) -> bool:
        """Return whether entries without variables match the literal name with some keys only."""
        return any(node.keys is not None for node in reached([self._root], asked.words))

    def overlapping(self, automaton: Automaton, budget: Budget) -> Iterator[RuleEntry]:
        """Yield the entries without variables that have a name in common with `automaton`.

        General ones come first. End early if `budget` is spent.
        """
        ends = automaton.borders | automaton.finals
        todo = [(self._root, automaton.start)]
        while todo:
            node, states = todo.pop()
            if not budget.take():
                return
            if states & ends:
                yield from node.ends
            if node.words:
                _branch(node, states, automaton, todo=todo)
            _spread(node, states, automaton, todo=todo)


def _branch(
    node: WordNode, states: int, automaton: Automaton, *, todo: list[tuple[WordNode, int]]
) -> None:
    """Add the nodes behind literal words of `node` that `states` can follow to `todo`."""
    if states & automaton.wild:
        for word, following in node.words.items():
            after = automaton.step(states, word)
            if after:
                todo.append((following, after))
        return
    for word in automaton.words_at(states):
        known = node.words.get(word)
        if known is not None:
            todo.append((known, automaton.step(states, word)))


def _spread(
    node: WordNode, states: int, automaton: Automaton, *, todo: list[tuple[WordNode, int]]
) -> None:
    """Add the nodes behind KEY and wildcards to `todo`, the most general one last."""
    if node.keys is not None:
        after = automaton.step(states, KEY)
        if after:
            todo.append((node.keys, after))
    if node.one is not None:
        after = automaton.step_one(states)
        if after:
            todo.append((node.one, after))
    if node.plain is not None:
        after = automaton.step_plain(states)
        if after:
            todo.append((node.plain, after))
    if node.many is not None:
        todo.append((node.many, automaton.step_many(states)))


def reached(roots: list[WordNode], words: list[str]) -> list[WordNode]:
    """Return the nodes at which patterns that match `words` end; some have no entry."""
    here: list[WordNode] = []
    for root in roots:
        _enter(root, here)
    for word in words:
        there: list[WordNode] = []
        for node in here:
            if node.repeats and node not in there:
                there.append(node)
            following = node.words.get(word)
            if following is not None:
                _enter(following, there)
            if node.one is not None:
                _enter(node.one, there)
            if node.plain is not None and not word.startswith(RESERVED):
                _enter(node.plain, there)
        here = there
    return here


def _enter(node: WordNode, nodes: list[WordNode]) -> None:
    """Add `node`, and the `#` behind it, which may stand for no word."""
    nodes.append(node)
    many = node.many
    if many is not None and many not in nodes:
        nodes.append(many)


def _all_ends(node: WordNode) -> Iterator[RuleEntry]:
    yield from node.ends
    for following in (*node.words.values(), node.one, node.many):
        if following is not None:
            yield from _all_ends(following)


def _literal(pieces: tuple[Piece, ...]) -> Iterator[Token]:
    for piece in pieces:
        assert isinstance(piece, str | int)
        yield piece
