"""Decisions about names with wildcards: by overlap with deny rules, and cover by allow rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, final

from broker.security.coverage import FRESH, Automaton, Budget, Outcome, asked_names, cover
from broker.security.decision import COVER, DEFAULT, OVERLAP, UNDECIDED, Decision
from broker.security.patterns import (
    KEY,
    MANY,
    MANY_MAX,
    ONE,
    WORDS_MAX,
    Piece,
    Tokens,
    normal,
)
from broker.security.variables import RuleEntry
from broker.security.word_index import AskedName, WordIndex

UNION_MAX: Final = 16
"""Maximum patterns of allow rules that are compared together with a name with wildcards."""

REPEATED: Final = 3
"""Words for each `#` in the longer one of two examples of a pattern."""

Usable = Callable[[RuleEntry], bool]
"""A test whether an entry has the verb of the request, and its conditions hold."""

Judgement = tuple[Decision, Tokens]
"""A decision, and the name that shows why it is a refusal, if the comparison found one."""

REFUSED_AS_UNDECIDED: Final = Decision(allowed=False, rule="", because=UNDECIDED)
REFUSED_BY_DEFAULT: Final = Decision(allowed=False, rule="", because=DEFAULT)


def has_wildcard(words: list[str]) -> bool:
    """Return whether a word is a wildcard."""
    return "*" in words or "#" in words


def pattern_tokens(asked: AskedName) -> Tokens:
    """Return a name with wildcards, and its key, as tokens in normal form."""
    name = _wild(asked.words)
    if asked.key is None:
        return name
    return (*name, KEY, *((MANY,) if asked.is_any_key else _wild(asked.key)))


def _wild(words: list[str]) -> Tokens:
    pieces: list[Piece] = [{"*": ONE, "#": MANY}.get(word, word) for word in words]
    return tuple(piece for piece in normal(pieces) if isinstance(piece, str | int))


def is_within_limits(asked: AskedName) -> bool:
    """Return whether name and key have few enough words and `#` to be compared."""
    return all(
        len(words) <= WORDS_MAX and words.count("#") <= MANY_MAX
        for words in (asked.words, asked.key or [])
    )


@final
class WildcardRequest:
    """The comparison of one name with wildcards with the rules of one user."""

    def __init__(self, asked: AskedName, visits: Budget) -> None:
        self._asked: Final = asked
        self._visits: Final = visits
        self.sequences: Final = asked_names(pattern_tokens(asked))
        self._automaton: Final = Automaton(self.sequences)
        self._budget: Final = Budget()

    def judge(
        self, deny: tuple[list[WordIndex], Usable], allow: tuple[list[WordIndex], Usable]
    ) -> Judgement:
        """Return the decision. Each of `deny` and `allow` has indexes, and a test of entries."""
        for entry in self._overlapping(*deny):
            return Decision(allowed=False, rule=entry.rule.id, because=OVERLAP), ()
        if self._budget.is_spent:
            return REFUSED_AS_UNDECIDED, ()
        found: dict[Tokens, RuleEntry] | None = None
        for example in self._examples():
            matching = self._matching(example, *allow)
            if self._visits.is_spent:
                return REFUSED_AS_UNDECIDED, ()
            if not matching:
                # one name that no rule allows is enough, whatever the limits
                return REFUSED_BY_DEFAULT, example.tokens()
            found = {
                tokens: entry
                for tokens, entry in matching.items()
                if found is None or tokens in found
            }
        for tokens, entry in (found or {}).items():
            if not self._budget.take(len(tokens)):  # reading them takes long, too
                return REFUSED_AS_UNDECIDED, ()
            outcome, _ = cover(self.sequences, Automaton([tokens]), self._budget)
            if outcome is Outcome.COVERED:
                return Decision(allowed=True, rule=entry.rule.id, because=COVER), ()
        return self._judge_together(*allow)

    def _judge_together(self, indexes: list[WordIndex], usable: Usable) -> Judgement:
        union: dict[Tokens, RuleEntry] = {}
        are_all = True
        for entry in self._overlapping(indexes, usable):
            if len(union) == UNION_MAX:
                are_all = False
                break
            tokens = entry.pattern.tokens(is_keyed=self._asked.is_keyed)
            if tokens is not None:
                union.setdefault(tokens, entry)
        outcome, name = cover(self.sequences, Automaton(union), self._budget)
        if outcome is Outcome.COVERED:
            ids = sorted({entry.rule.id for entry in union.values()})
            return Decision(allowed=True, rule=", ".join(ids), because=COVER), ()
        if outcome is Outcome.UNDECIDED or not are_all or self._budget.is_spent:
            return REFUSED_AS_UNDECIDED, ()
        return REFUSED_BY_DEFAULT, name

    def _overlapping(self, indexes: list[WordIndex], usable: Usable) -> Iterator[RuleEntry]:
        for index in indexes:
            for entry in index.overlapping(self._automaton, self._budget):
                if usable(entry):
                    yield entry

    def _matching(
        self, example: AskedName, indexes: Iterable[WordIndex], usable: Usable
    ) -> dict[Tokens, RuleEntry]:
        found: dict[Tokens, RuleEntry] = {}
        for index in indexes:
            for entry in index.matching(example, self._visits):
                tokens = entry.pattern.tokens(is_keyed=example.is_keyed) if usable(entry) else None
                if tokens is not None:
                    found.setdefault(tokens, entry)
        return found

    def _examples(self) -> Iterator[AskedName]:
        """Yield names of the pattern: a rule that covers it alone matches each of them.

        Words that no rule knows stand for wildcards, since only wildcards match those.
        """
        for tokens in self.sequences:
            yield self._example(tokens, 0)
            if MANY in tokens:
                yield self._example(tokens, REPEATED)

    def _example(self, tokens: Tokens, repeated: int) -> AskedName:
        parts: list[list[str]] = [[]]
        for token in tokens:
            if token == KEY:
                parts.append([])
            elif isinstance(token, str):
                parts[-1].append(token)
            else:
                parts[-1].extend([FRESH] * (repeated if token == MANY else 1))
        asked = self._asked
        return AskedName(
            parts[0],
            parts[1] if asked.is_keyed else None,
            is_any_key=False,
        )
