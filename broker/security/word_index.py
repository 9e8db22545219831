"""Index of the patterns of queues or topics, in trees of their words.

A name meets only the patterns that begin as it does. For a name with wildcards, the walk goes
through the trees with the set of states of its automaton, and leaves out each branch with which
it has no name in common.

Patterns with several `#` let even a literal name reach very many nodes, and a client chooses the
name. So each walk takes its nodes from a `Budget`, and is incomplete once that is spent: the
decision is then a refusal, whatever was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from broker.security.coverage import FRESH, FRESH_RESERVED, Automaton, Budget
from broker.security.patterns import KEY, MANY, ONE, PLAIN, Piece, Token, Tokens
from broker.security.resources import RESERVED
from broker.security.variables import FilledIndexes, RuleEntry

VISITS_MAX: Final = 8000
"""Maximum nodes that literal names reach for one decision: about 2 ms."""

ENTRY_VISITS: Final = 2
"""Nodes that an entry counts for: its verbs and conditions are looked at, too."""


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
        self.is_general = False
        """Whether a wildcard or a key follows."""

    def grown(self, token: Token) -> WordNode:
        """Return the node behind `token`, created if it is missing."""
        if isinstance(token, str):
            return self.words.setdefault(token, WordNode())
        self.is_general = True
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
            node.is_general = True
            node.keys = node.keys or WordNode()
            node = node.keys
            for token in _literal(pattern.key):
                node = node.grown(token)
        node.ends.append(entry)

    def for_values(self, user: str, client_id: str) -> list[WordIndex]:
        """Return this index, and one of its patterns with variables filled by these values."""
        filled = None if self._filled is None else self._filled.of(user, client_id)
        return [self] if filled is None else [self, filled]

    def matching(self, asked: AskedName, visits: Budget) -> Iterator[RuleEntry]:
        """Yield the entries without variables that match a literal name, and each key it means."""
        nodes = reached([self._root], asked.words, visits)
        yield from _ends(nodes, visits)
        if asked.key is not None and not asked.is_any_key:
            keys = [node.keys for node in nodes if node.keys is not None]
            if keys:
                yield from _ends(reached(keys, asked.key, visits), visits)

    def touching(self, asked: AskedName, visits: Budget) -> Iterator[RuleEntry]:
        """Yield the entries without variables that match a literal name, and a key it means."""
        if not asked.is_any_key:
            yield from self.matching(asked, visits)
            return
        nodes = reached([self._root], asked.words, visits)
        yield from _ends(nodes, visits)
        for node in nodes:
            if node.keys is not None:
                yield from _all_ends(node.keys, visits)

    def has_keys(self, asked: AskedName, visits: Budget) -> bool:
        """Return whether entries without variables match the literal name with some keys only."""
        nodes = reached([self._root], asked.words, visits)
        return any(node.keys is not None for node in nodes)

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
                _branch(node, states, automaton, todo=todo, most=budget.left + 1)
            if node.is_general:
                _spread(node, states, automaton, todo=todo)


def _branch(
    node: WordNode,
    states: int,
    automaton: Automaton,
    *,
    todo: list[tuple[WordNode, int]],
    most: int,
) -> None:
    """Add the nodes behind literal words of `node` that `states` can follow to `todo`.

    Leave out those for which no steps would be left if it had more than `most` nodes.
    """
    if not states & automaton.wild:
        for word in automaton.words_at(states):
            known = node.words.get(word)
            if known is not None:
                todo.append((known, automaton.step(states, word)))
        return
    steps: dict[str, int] = {}
    for word, following in node.words.items():
        alike = word  # all words that `automaton` does not know lead to the same states
        if word not in automaton.literals:
            alike = FRESH_RESERVED if word.startswith(RESERVED) else FRESH
        after = steps.get(alike, -1)
        if after < 0:
            after = steps[alike] = automaton.step(states, alike)
        if after:
            todo.append((following, after))
            if len(todo) > most:
                return


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


def reached(roots: list[WordNode], words: list[str], visits: Budget) -> list[WordNode]:
    """Return the nodes at which patterns that match `words` end; some have no entry.

    There are none if `visits` is spent.
    """
    here: dict[WordNode, None] = {}
    for root in roots:
        _enter(root, here)
    for word in words:
        if not visits.take(len(here)):
            return []
        is_plain = not word.startswith(RESERVED)
        there: dict[WordNode, None] = {}
        for node in here:
            if node.repeats:
                there[node] = None
            following = node.words.get(word)
            if following is not None:
                _enter(following, there)
            if node.one is not None:
                _enter(node.one, there)
            if is_plain and node.plain is not None:
                _enter(node.plain, there)
        here = there
    return list(here) if visits.take(len(here)) else []


def _enter(node: WordNode, nodes: dict[WordNode, None]) -> None:
    """Add `node`, and the `#` behind it, which may stand for no word."""
    nodes[node] = None
    if node.many is not None:
        nodes[node.many] = None


def _ends(nodes: list[WordNode], visits: Budget) -> Iterator[RuleEntry]:
    """Yield the entries that end at `nodes`."""
    for node in nodes:
        for entry in node.ends:
            if not visits.take(ENTRY_VISITS):
                return
            yield entry


def _all_ends(node: WordNode, visits: Budget) -> Iterator[RuleEntry]:
    """Yield the entries that end at `node` and behind it."""
    todo = [node]
    while todo:
        here = todo.pop()
        if not visits.take():
            return
        yield from _ends([here], visits)
        todo.extend(each for each in (here.many, here.plain, here.one) if each is not None)
        todo.extend(here.words.values())


def _literal(pieces: tuple[Piece, ...]) -> Iterator[Token]:
    for piece in pieces:
        assert isinstance(piece, str | int)
        yield piece
