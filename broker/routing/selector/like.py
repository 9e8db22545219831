"""Matches LIKE patterns: `%` stands for any characters, `_` for one, an escaped one for itself.

Each run of characters between two `%` is searched for once, leftmost, from the end of the run
before it; nothing is tried twice. A run without `_` is found by the interpreter's own search. Of
one with `_` the pieces between them are found in the same way, each moving the place forward until
all agree; where that gets on slowly, a set of possible matches is shifted along (Shift-And). So the
cost is that of reading the text once, whatever the pattern (`docs/design/hostile-input.md` S1).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.selector.facts import Facts

BITS_PER_STEP: Final[i64] = 256
"""Characters of a run with `_` that cost one more step at each character of the text."""

COMPARED_PER_STEP: Final[i64] = 64
"""Comparisons of characters by the interpreter's own search that are one step."""

COMPARED_MAX: Final[i64] = 8
"""Comparisons that this search makes for each character of a long text, at most.

In a text of medium length it may compare all of up to 99 characters at each place, in a short one
all of any number. So `"a" * 49 + "b" + "a" * 49` takes ten times as long as a word.
"""

SHORT_TEXT: Final[i64] = 64
"""Characters of a text in which any search takes a few steps at most: it costs one."""

SHIFTED_TEXT: Final[i64] = 16
"""Characters in which shifting is as fast as searching."""

MEDIUM_TEXT: Final[i64] = 2_500
LONG_TEXT: Final[i64] = 30_000
LONG_WORD: Final[i64] = 100

FREE_LEAPS: Final[i64] = 64
"""Searches for pieces of a run that may move the place by little."""

LEAP_MIN: Final[i64] = 4
"""Characters by which further ones have to move it, on average: less, and shifting is cheaper."""


def search(value: str, wanted: str, at: i64, *, facts: Facts) -> i64:
    """Return the first place of `wanted` in `value` from `at` on, or -1. Spends steps of `facts`.

    The text is searched as far as there are steps for the worst case; then `facts` give up.
    """
    size, length = i64(len(wanted)), i64(len(value)) - at
    compared = size
    if size > COMPARED_MAX and (
        length >= LONG_TEXT or (size >= LONG_WORD and length >= MEDIUM_TEXT)
    ):
        compared = COMPARED_MAX
    affordable = facts.left() * COMPARED_PER_STEP
    if length * compared <= affordable:
        found = i64(value.find(wanted, int(at)))
    else:
        # a part of the text may be so short that it takes more for each character
        compared = size
        length = min(length, affordable // size + size)
        found = i64(value.find(wanted, int(at), int(at + length)))
        if found < 0:
            facts.give_up()
            return -1
    searched = found - at + size if found >= 0 else length
    facts.spend(1 + searched * compared // COMPARED_PER_STEP)
    return found


@final
class Run:
    """The part of a pattern between two `%`: `text`, in which `_` is at the positions `ones`."""

    def __init__(self, text: str, ones: list[int]) -> None:
        self.text: Final = text
        self.size: Final[i64] = i64(len(text))
        self._pieces: Final[list[tuple[int, str]]] = _pieces(text, ones)
        self._is_plain: Final = not ones
        self._anywhere: int = 0
        self._places: Final[dict[str, int]] = {}
        for at in ones:
            self._anywhere |= 1 << at
        for at, piece in self._pieces:
            for offset, character in enumerate(piece):
                bit = 1 << (at + offset)
                self._places[character] = self._places.get(character, self._anywhere) | bit

    def is_at(self, value: str, at: i64) -> bool:
        """Return whether the run matches `value` from `at` on; it must fit into the rest."""
        return all(value.startswith(piece, int(at) + offset) for offset, piece in self._pieces)

    def find(self, value: str, at: i64, facts: Facts) -> i64:
        """Return the end of the run's first match from `at` on, or -1. Spends steps of `facts`."""
        length = i64(len(value))
        if self._is_plain:
            if length <= SHORT_TEXT:
                found = i64(value.find(self.text, int(at)))
                facts.spend(1)
                return found + self.size if found >= 0 else i64(-1)
            found = search(value, self.text, at, facts=facts)
            return found + self.size if found >= 0 else i64(-1)
        if length - at <= SHIFTED_TEXT:
            return self._shift_along(value, at, facts)
        return self._find_with_ones(value, at, facts)

    def _find_with_ones(self, value: str, at: i64, facts: Facts) -> i64:
        """Let the pieces move the place in turn, until none of them moves it any more."""
        count = i64(len(self._pieces))
        end = i64(len(value)) - self.size
        place, agreed, leaps = at, i64(0), i64(0)
        while agreed < count and place <= end:
            if leaps > FREE_LEAPS and (place - at) < (leaps - FREE_LEAPS) * LEAP_MIN:
                return self._shift_along(value, place, facts)
            offset, piece = self._pieces[leaps % count]
            leaps += 1
            start = place + offset
            found = search(value, piece, start, facts=facts)
            if found < 0 or not facts.spend(1):
                return -1
            agreed = agreed + 1 if found == start else i64(1)
            place = found - offset
        return place + self.size if place <= end else i64(-1)

    def _shift_along(self, value: str, at: i64, facts: Facts) -> i64:
        full = 1 << int(self.size - 1)
        price = 1 + self.size // BITS_PER_STEP
        matched = 0
        end = i64(len(value))
        while at < end:
            if not facts.spend(price):
                return -1
            matched = ((matched << 1) | 1) & self._places.get(value[int(at)], self._anywhere)
            at += 1
            if matched & full:
                return at
        return -1


def _pieces(text: str, ones: list[int]) -> list[tuple[int, str]]:
    """Return the parts of `text` between the positions `ones`, each with its own position."""
    pieces: list[tuple[int, str]] = []
    start = 0
    for one in [*ones, len(text)]:
        if one > start:
            pieces.append((start, text[start:one]))
        start = one + 1
    return pieces


@final
class Pattern:
    """The runs of a pattern; `%` is between each two of them, and perhaps around them.

    The pattern is invalid if it `ends_escaped`: nothing follows its last escape character.
    """

    def __init__(self, pattern: str, escape: str) -> None:
        self.ends_escaped = False
        self._runs: Final[list[Run]] = []
        self._starts_anywhere = False
        self._ends_anywhere = False
        self._is_fixed = True
        self._read(pattern, escape)

    def _read(self, pattern: str, escape: str) -> None:
        text: list[str] = []
        ones: list[int] = []
        escaped = False
        for character in pattern:
            if escaped:
                text.append(character)
                escaped = False
            elif character == escape:
                escaped = True
            elif character == "%":
                self._percent("".join(text), ones)
                text = []
                ones = []
            else:
                if character == "_":
                    ones.append(len(text))
                text.append(character)
        self.ends_escaped = escaped
        self._ends_anywhere = not self._is_fixed and not text
        if text:
            self._runs.append(Run("".join(text), ones))

    def _percent(self, text: str, ones: list[int]) -> None:
        if self._is_fixed:
            self._is_fixed = False
            self._starts_anywhere = not text
        if text:
            self._runs.append(Run(text, ones))

    def matches(self, value: str, facts: Facts) -> bool:
        """Return whether the pattern matches all of `value`. Spends steps of `facts`."""
        runs = self._runs
        first: i64 = 0
        last = i64(len(runs))
        at: i64 = 0
        end = i64(len(value))
        if facts.is_overspent():
            return False
        if self._is_fixed:
            if last == 0:
                return end == 0
            return runs[0].size == end and self._is_at(runs[0], value, 0, facts=facts)
        if not self._starts_anywhere:
            if runs[0].size > end or not self._is_at(runs[0], value, 0, facts=facts):
                return False
            at = runs[0].size
            first = 1
        if not self._ends_anywhere and last > first:
            last -= 1
            end -= runs[last].size
            if end < at or not self._is_at(runs[last], value, end, facts=facts):
                return False
        while first < last:
            at = runs[first].find(value, at, facts)
            if at < 0 or at > end:
                return False
            first += 1
        return True

    def _is_at(self, run: Run, value: str, at: i64, *, facts: Facts) -> bool:
        facts.spend(run.size)
        return run.is_at(value, at)
