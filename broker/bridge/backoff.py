"""The pauses between two attempts of a bridge."""

from __future__ import annotations

from collections.abc import Callable
from random import random
from typing import Final

PAUSE_MIN_S: Final = 0.2
PAUSE_MAX_S: Final = 30.0


class Backoff:
    """Each pause is up to twice as long as the last one; half of it is left to chance.

    So bridges that lost one broker at the same moment do not all come back at the same moment.
    """

    def __init__(self, chance: Callable[[], float] = random) -> None:
        """`chance` returns a number from 0 up to 1, which it does not reach."""
        self._chance: Final = chance
        self._next_s = PAUSE_MIN_S

    def pause_s(self) -> float:
        """Return the seconds until the next attempt."""
        longest, self._next_s = self._next_s, min(PAUSE_MAX_S, self._next_s * 2)
        return longest * (0.5 + self._chance() / 2)

    def succeeded(self) -> None:
        """Begin with the shortest pause again: an attempt has moved messages."""
        self._next_s = PAUSE_MIN_S
