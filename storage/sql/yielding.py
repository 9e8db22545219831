"""Gives the interpreter to other threads, above all to that of the broker's event loop.

Compiled code keeps the interpreter until it returns, whatever the switch interval is. So the thread
that writes calls this while it works on a large batch.
"""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Final, final

YIELD_EVERY: Final = 4096
"""Messages or numbers that are looked at between two calls: some 0.1 ms."""

KEPT_S: Final = 0.0005
"""Seconds for which the interpreter is kept: the thread that gets it works for about as long."""


@final
class Keeper:
    """Notes when the interpreter was given away. It may be used by several threads."""

    def __init__(self) -> None:
        self._since_s = 0.0

    def give_away(self) -> None:
        """Let another thread run that waits for the interpreter, unless that was just done."""
        if perf_counter() - self._since_s > KEPT_S:
            sleep(0)
            self._since_s = perf_counter()


_KEEPER: Final = Keeper()


def yield_interpreter() -> None:
    """Let another thread run that waits for the interpreter; no effect within KEPT_S of the last.

    Each time takes as long as the event loop has work: once for each segment of a commit, it would
    prolong the commit.
    """
    _KEEPER.give_away()
