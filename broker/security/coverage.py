"""Containment and overlap of patterns, exact and bounded.

A pattern is a sequence of tokens (`patterns.py`). `Automaton` reads several sequences at once; a
set of its states is the bits of an int. A client chooses the pattern that is compared with the
rules, so every comparison takes its steps from a `Budget`, and is undecided when that is spent.
Globs are compared in the same way, with their characters in place of words (`characters`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, final

from broker.security.patterns import KEY, MANY, ONE, PLAIN, Token, Tokens
from broker.security.resources import RESERVED

STATES_MAX: Final = 256
"""Maximum states of one comparison of a pattern with the union of others."""

STEPS_MAX: Final = 3000
"""Maximum steps of all comparisons for one decision: 4 to 5 ms."""

UNLIMITED: Final = 1 << 62
"""More steps than any comparison takes, for checks that an operator asks for."""

FRESH: Final = "\0"
"""A word that occurs in no pattern: it stands for all such words. No name contains NUL."""

FRESH_RESERVED: Final = f"{RESERVED}\0"
"""A word that occurs in no pattern and begins with `$`."""


class Outcome(Enum):
    """Result of a comparison."""

    COVERED = "every name of the pattern matches"
    NOT_COVERED = "some name of the pattern does not match"
    UNDECIDED = "a limit was exceeded"


@final
class Budget:
    """Steps that a decision may still take. `is_spent` is set if it needed more."""

    def __init__(self, steps: int = STEPS_MAX) -> None:
        self.left = steps
        self.is_spent = False

    def take(self, steps: int = 1) -> bool:
        """Take `steps`; return False if there are not so many left."""
        self.left -= steps
        if self.left < 0:
            self.is_spent = True
        return not self.is_spent


@final
class Automaton:
    """The union of sequences of tokens, as a nondeterministic automaton.

    Each token has a bit, and so has the end of each sequence. A set of bits says which tokens may
    be next. `start` is the set before the first word, `finals` are the ends, and `borders` the
    tokens KEY.
    """

    def __init__(self, sequences: Iterable[Sequence[Token]]) -> None:
        literals: dict[Token, int] = {}
        wild = {ONE: 0, MANY: 0, PLAIN: 0}
        segments: list[int] = []
        start, finals, bit = 0, 0, 1
        for tokens in sequences:
            start |= bit
            first = bit
            for token in tokens:
                if isinstance(token, int) and token in wild:
                    wild[token] |= bit
                else:
                    literals[token] = literals.get(token, 0) | bit
                if token == KEY:
                    segments.append((bit << 1) - first)
                    first = bit << 1
                bit <<= 1
            finals |= bit
            segments.append((bit << 1) - first)
            bit <<= 1
        self._one: Final = wild[ONE]
        self._many: Final = wild[MANY]
        self._plain: Final = wild[PLAIN]
        self._segments: Final = segments
        self.borders: Final = literals.get(KEY, 0)
        self.finals: Final = finals
        self.literals: Final = literals
        words = [(word, bits) for word, bits in literals.items() if isinstance(word, str)]
        both = self._one | self._plain
        self._words: Final = both | _union(bits for _, bits in words)
        self._plain_words: Final = both | _union(
            bits for word, bits in words if not word.startswith(RESERVED)
        )
        self.wild: Final = both | self._many
        self.start: Final = self._closed(start)

    def _closed(self, states: int) -> int:
        # patterns are in normal form, so what follows a `#` is no `#`, and one step is enough
        return states | (states & self._many) << 1

    def step(self, states: int, word: Token) -> int:
        """Return the states after one word, or after KEY."""
        moved = states & self.literals.get(word, 0)
        if word == KEY:
            return self._closed(moved << 1)
        moved |= states & self._one
        if isinstance(word, str) and not word.startswith(RESERVED):
            moved |= states & self._plain
        return self._closed(moved << 1 | states & self._many)

    def step_one(self, states: int) -> int:
        """Return all states that some word leads to."""
        return self._closed((states & self._words) << 1 | states & self._many)

    def step_plain(self, states: int) -> int:
        """Return all states that some word without a first `$` leads to."""
        return self._closed((states & self._plain_words) << 1 | states & self._many)

    def step_many(self, states: int) -> int:
        """Return all states that any number of words leads to, with `states` themselves."""
        found = 0
        for segment in self._segments:
            here = states & segment
            if here:
                # each state of a segment is reached from those before it
                found |= segment & ~((here & -here) - 1)
        return found

    def step_token(self, states: int, token: Token) -> int:
        """Return all states that some name of the single token leads to."""
        if token == MANY:
            return self.step_many(states)
        if token == ONE:
            return self.step_one(states)
        return self.step_plain(states) if token == PLAIN else self.step(states, token)

    def overlaps(self, tokens: Sequence[Token]) -> bool:
        """Return whether some name matches this automaton and also `tokens`."""
        states = self.start
        for token in tokens:
            states = self.step_token(states, token)
            if not states:
                return False
        return bool(states & self.finals)

    def words_at(self, states: int) -> list[str]:
        """Return the literal words that `states` can read."""
        return [
            word for word, bits in self.literals.items() if bits & states and isinstance(word, str)
        ]

    def tells_reserved(self, states: int) -> bool:
        """Return whether `states` tell words that begin with `$` apart from all others."""
        return bool(states & self._plain)


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


@final
class _Search:
    """The search for a name of `asked` that does not match `rules`, the shortest first.

    Each place is a position in `asked`, the states of `rules` there, the place before it, and the
    word between the two (None if there is none).
    """

    def __init__(self, asked: Sequence[Token], rules: Automaton, budget: Budget) -> None:
        self._asked: Final = asked
        self._rules: Final = rules
        self._budget: Final = budget
        self._places: Final[list[tuple[int, int, int, Token | None]]] = []
        self._seen: Final[list[list[int]]] = [[] for _ in range(len(asked) + 1)]

    def run(self, states_max: int) -> tuple[Outcome, Tokens]:
        self._add(0, self._rules.start, before=-1)
        at = 0
        while at < len(self._places):
            position, states, _, _ = self._places[at]
            if not states or (position == len(self._asked) and not states & self._rules.finals):
                return Outcome.NOT_COVERED, (*self._path(at), *_shortest(self._asked[position:]))
            if position < len(self._asked):
                self._follow(at, position, states)
            if len(self._places) > states_max or self._budget.is_spent:
                return Outcome.UNDECIDED, ()
            at += 1
        return Outcome.COVERED, ()

    def _follow(self, at: int, position: int, states: int) -> None:
        token = self._asked[position]
        following = position + 1
        if token == MANY:
            self._add(following, states, before=at)
            following = position
        for word in self._words(token, states):
            if not self._budget.take():
                return
            self._add(following, self._rules.step(states, word), before=at, word=word)

    def _words(self, token: Token, states: int) -> list[Token]:
        """Return one word for each way in which the rules can read `token`."""
        if token == KEY or isinstance(token, str):
            return [token]
        # Only wildcards of the rules match a word that no rule has, and they match all others, too:
        # no other word needs to be tried, even if a rule names it.
        if token != PLAIN and self._rules.tells_reserved(states):
            return [FRESH, FRESH_RESERVED]
        return [FRESH]

    def _add(self, position: int, states: int, *, before: int, word: Token | None = None) -> None:
        # a place with more states matches whatever the known one matches
        for known in self._seen[position]:
            if known & states == known:
                return
        self._seen[position].append(states)
        self._places.append((position, states, before, word))

    def _path(self, at: int) -> list[Token]:
        found: list[Token] = []
        while at >= 0:
            _, _, before, word = self._places[at]
            if word is not None:
                found.append(word)
            at = before
        return found[::-1]


def _shortest(tokens: Sequence[Token]) -> Tokens:
    """Return the shortest name that matches `tokens`."""
    return tuple(FRESH if token in (ONE, PLAIN) else token for token in tokens if token != MANY)


def cover(
    asked: Sequence[Sequence[Token]],
    rules: Automaton,
    budget: Budget,
    *,
    states_max: int = STATES_MAX,
) -> tuple[Outcome, Tokens]:
    """Return whether `rules` match every name that one of `asked` matches.

    The second value is a name that they do not match, if there is one.
    """
    for tokens in asked:
        outcome, name = _Search(tokens, rules, budget).run(states_max)
        if outcome is not Outcome.COVERED:
            return outcome, name
    return Outcome.COVERED, ()


def common(first: Sequence[Token], second: Sequence[Token]) -> Tokens | None:
    """Return a name that matches both sequences, None if there is none.

    The steps are at most the product of the lengths.
    """
    origin: dict[tuple[int, int], tuple[tuple[int, int], Token | None]] = {}
    todo = [(0, 0)]
    seen = {(0, 0)}
    for here in todo:
        one, other = here
        if one == len(first) and other == len(second):
            return _traced(origin, here)
        for there, word in _moves(first, second, here):
            if there not in seen:
                seen.add(there)
                origin[there] = here, word
                todo.append(there)
    return None


def _moves(
    first: Sequence[Token], second: Sequence[Token], here: tuple[int, int]
) -> Iterable[tuple[tuple[int, int], Token | None]]:
    one, other = here
    token = first[one] if one < len(first) else None
    against = second[other] if other < len(second) else None
    if token == MANY:
        yield (one + 1, other), None
    if against == MANY:
        yield (one, other + 1), None
    if token is None or against is None:
        return
    word = _meeting(token, against)
    if word is not None:
        yield (one + (token != MANY), other + (against != MANY)), word


def _meeting(token: Token, against: Token) -> Token | None:
    """Return a word that both tokens match, None if there is none."""
    if token == KEY or against == KEY:
        return KEY if token == against else None
    if isinstance(token, str) and isinstance(against, str):
        return token if token == against else None
    word = next((each for each in (token, against) if isinstance(each, str)), FRESH)
    if PLAIN in (token, against) and word.startswith(RESERVED):
        return None
    return word


def _traced(
    origin: dict[tuple[int, int], tuple[tuple[int, int], Token | None]], end: tuple[int, int]
) -> Tokens:
    found: list[Token] = []
    here = end
    while here in origin:
        here, word = origin[here]
        if word is not None:
            found.append(word)
    return tuple(found[::-1])


def asked_names(tokens: Sequence[Token]) -> list[Tokens]:
    """Return the sequences that a client's pattern stands for.

    A wildcard that begins it stands for no word with a first `$`: clients create no such names.
    """
    if not tokens or tokens[0] not in (ONE, MANY):
        return [tuple(tokens)]
    first, *rest = tokens
    if first == ONE:
        return [(PLAIN, *rest)]
    longer = (PLAIN, MANY, *rest)
    # a name has a word, so the `#` alone stands for one at least
    return [longer] if not rest or rest[0] == KEY else [tuple(rest), longer]


def characters(tokens: Sequence[Token]) -> Tokens:
    """Return a glob with a token for each of its characters."""
    found: list[Token] = []
    for token in tokens:
        found.extend(token if isinstance(token, str) else [token])
    return tuple(found)


def shown(tokens: Sequence[Token], *, is_glob: bool = False) -> str:
    """Return a name from a comparison as text; words that stand for any other are `x`."""
    used = {token for token in tokens if isinstance(token, str)}
    word = "x"
    while word in used or f"{RESERVED}{word}" in used:
        word += "x"
    parts: list[list[str]] = [[]]
    for token in tokens:
        if isinstance(token, str):
            parts[-1].append(token.replace("\0", word))
        else:
            assert token == KEY
            parts.append([])
    if not parts[-1]:
        parts.pop()  # messages without a key
    return "/".join(("" if is_glob else ".").join(part) for part in parts)
