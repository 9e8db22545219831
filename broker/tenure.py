"""How long a broker may act as the leader of its group: until its proof of that is too old.

The store of a group fences what a former leader writes. What it tells its clients needs a fence of
its own: a message that was consumed before it was written needs no commit, and a stored one can be
delivered without one. So the leader looks at a clock before it does anything, and once more before
anything leaves it.
"""

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

NEVER: Final[i64] = -(2**62)


@final
class Tenure:
    """The time until which the broker may act; times are µs of the steady clock.

    `proved_us` returns the last moment of which it is proved that the broker leads. Another broker
    can lead `silence_us` after that. The broker stops after two thirds of it: the rest is for what
    is under way, and for clocks that do not run alike. It stops at once when the proof is void.
    """

    def __init__(
        self, proved_us: Callable[[], int], now_us: Callable[[], int], *, silence_us: int
    ) -> None:
        self._proved_us: Final = proved_us
        self._now_us: Final = now_us
        self._lasts_us: Final[i64] = silence_us * 2 // 3
        self._ends_us: i64 = NEVER

    def is_over(self) -> bool:
        """Return whether the broker must not act now. The proof is looked up only when needed."""
        now_us: i64 = self._now_us()
        if now_us < self._ends_us:
            return False
        self._ends_us = i64(self._proved_us()) + self._lasts_us
        return now_us >= self._ends_us

    def void(self) -> None:
        """Look the proof up anew: it counts no longer, and `proved_us` returns an earlier one."""
        self._ends_us = NEVER
