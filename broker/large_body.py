"""A message body that is not in memory: a content in the store, kept while references to it live.

Not compiled: few messages have one, and the end of the last reference (`__del__`) frees it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from storage.records import StoredContent


class LargeBodyReferences:
    """The references to contents, which keep them in the store."""

    @abstractmethod
    def hold(self, content: int) -> LargeBodyRef:
        """Keep `content` in the store for as long as the returned reference lives."""

    @abstractmethod
    def let_go(self, content: int) -> None:
        """Note the end of a reference to `content`."""


class LargeBodyRef:
    """A reference that keeps a content from being deleted, even if no stored message has it."""

    def __init__(self, content: int, references: LargeBodyReferences) -> None:
        self.content: Final = content
        self._references: Final = references

    def __del__(self) -> None:
        self._references.let_go(self.content)


class LargeBody:
    """The body of a large message, which copies of the message share.

    It can be read once it `is_saved`: its last chunk has been committed.
    """

    def __init__(self, stored: StoredContent, hold: LargeBodyRef, *, is_saved: bool) -> None:
        self.stored: Final = stored
        self.size: Final = int(stored.size)
        self.is_saved = is_saved
        self._hold: Final = hold
        self._waiting: list[Callable[[], None]] = []

    def call_when_saved(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the body is saved; now if it already is."""
        if self.is_saved:
            callback()
        else:
            self._waiting.append(callback)

    def saved(self) -> None:
        """Note that the last chunk has been committed, and call the callbacks."""
        self.is_saved = True
        waiting = self._waiting
        self._waiting = []
        for callback in waiting:
            callback()
