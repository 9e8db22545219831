"""A set of ids in which the next id is found at once, however few and scattered the ids are."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

LEVELS: Final[i64] = 4

LAST: Final[i64] = 0xFFFF_FFFF


@final
class IdSet:
    """A set of ids of 32 bits, from which ranges are removed.

    A range costs time for the ids that it removes, neither for the others nor for what it names.
    `_words` has a word of 256 bits for each 256 ids, and a word of the next of LEVELS levels for
    each 256 words. A word that would be 0 is absent.
    """

    def __init__(self) -> None:
        self._words: Final[dict[int, int]] = {}

    def add(self, number: i64) -> None:
        """Add an id. Idempotent."""
        words = self._words
        at = number
        level: i64 = 0
        while level < LEVELS:
            key = _key(level, at >> 8)
            word = words.get(key, 0)
            words[key] = word | 1 << int(at & 255)
            if word:
                return
            at >>= 8
            level += 1

    def discard(self, number: i64) -> None:
        """Remove an id. Idempotent."""
        self._remove(number, 1 << int(number & 255))

    def take_range(self, first: i64, last: i64) -> list[int]:
        """Remove and return the ids from `first` to `last`, in this order; they may wrap."""
        taken: list[int] = []
        if first <= last:
            self._take(first, last, taken)
        else:
            self._take(first, LAST, taken)
            self._take(0, last, taken)
        return taken

    def clear(self) -> None:
        """Remove all ids."""
        self._words.clear()

    def _take(self, first: i64, last: i64, taken: list[int]) -> None:
        at = self._next(first)
        while 0 <= at <= last:
            base = at - (at & 255)
            low = int(at & 255)
            size = int(min(last - base, i64(255))) - low + 1
            found = self._words[_key(0, at >> 8)] >> low & (1 << size) - 1
            self._remove(at, found << low)
            while found:
                lowest = found & -found
                taken.append(int(at) + lowest.bit_length() - 1)
                found ^= lowest
            at = self._next(base + 256)

    def _remove(self, number: i64, bits: int) -> None:
        """Remove `bits` from the word of an id, and the word if nothing of it is left."""
        words = self._words
        at = number >> 8
        level: i64 = 0
        while level < LEVELS:
            key = _key(level, at)
            word = words.get(key, 0) & ~bits
            if word:
                words[key] = word
                return
            words.pop(key, None)
            bits = 1 << int(at & 255)
            at >>= 8
            level += 1

    def _next(self, start: i64) -> i64:
        """Return the first id from `start` on, -1 if there is none."""
        words = self._words
        at = start
        level: i64 = 0
        word = words.get(_key(0, at >> 8), 0) >> int(at & 255)
        while not word:
            level += 1
            if level == LEVELS:
                return -1
            at = (at >> 8) + 1
            word = words.get(_key(level, at >> 8), 0) >> int(at & 255)
        at += _lowest(word)
        while level > 0:
            level -= 1
            at = (at << 8) + _lowest(words[_key(level, at)])
        return at


def _key(level: i64, number: i64) -> int:
    return int(level << 32 | number)


def _lowest(word: int) -> i64:
    """Return the number of the lowest bit that is set."""
    return i64((word & -word).bit_length() - 1)
