"""A body that is not in memory: a content in the store, for as long as anybody here refers to it.

Not compiled: few messages have one, and the end of the last reference is what frees it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from storage.records import StoredContent


class LargeBodyKeeper:
    """Whoever knows of every content that is in use."""

    @abstractmethod
    def hold(self, content: int) -> LargeBodyRef:
        """Keep `content` for as long as that lasts."""

    @abstractmethod
    def let_go(self, content: int) -> None:
        """A hold on `content` is over."""


class LargeBodyRef:
    """Keeps a content from being deleted, whether a message in the store has it or not."""

    def __init__(self, content: int, keeper: LargeBodyKeeper) -> None:
        self.content: Final = content
        self._keeper: Final = keeper

    def __del__(self) -> None:
        self._keeper.let_go(self.content)


class LargeBody:
    """The body of a large message; messages that are copies of one share it.

    It can be read once it `is_saved`: a commit has had the last of it.
    """

    def __init__(self, stored: StoredContent, hold: LargeBodyRef, *, is_saved: bool) -> None:
        self.stored: Final = stored
        self.size: Final = int(stored.size)
        self.is_saved = is_saved
        self._hold: Final = hold
        self._waiting: list[Callable[[], None]] = []

    def call_when_saved(self, callback: Callable[[], None]) -> None:
        """Call back once it is saved; now where it is."""
        if self.is_saved:
            callback()
        else:
            self._waiting.append(callback)

    def saved(self) -> None:
        """The last of it has been committed."""
        self.is_saved = True
        waiting = self._waiting
        self._waiting = []
        for callback in waiting:
            callback()
