"""A message whose body is in the store, on its way to the other broker, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.bridge.client_links import SendingLink
from broker.bridge.moving_batch import LargeMessage
from broker.large_body import LargeBody
from broker.large_body_store import LargeBodyStore
from storage.contents import CHUNK_SIZE

AHEAD: Final = 2
"""Chunks that are read and not sent yet."""


class LargeSending:
    """Sends the body of `large` on `link`; the rest of the message has been sent.

    `damage` says what is wrong with the body, if a chunk cannot be read.
    """

    def __init__(
        self,
        large: LargeMessage,
        body: LargeBody,
        link: SendingLink,
        *,
        contents: LargeBodyStore,
        changed: Callable[[], None],
    ) -> None:
        self.place: Final = large.place
        self.damage = ""
        self._link: Final = link
        self._contents: Final = contents
        self._changed: Final = changed
        self._content: Final = int(body.stored.number)
        self._count: Final = (int(body.size) + CHUNK_SIZE - 1) // CHUNK_SIZE
        self._asked = 0
        self._sent = 0
        self._ready: Final[list[bytes]] = []
        body.call_when_saved(self._read)

    def _read(self) -> None:
        if self._asked < self._count and self._asked - self._sent < AHEAD:
            index = self._asked
            self._asked += 1
            self._contents.read(self._content, index, arrived=self._arrived, damaged=self._damaged)

    def _arrived(self, chunk: bytes) -> None:
        self._ready.append(chunk)
        self._changed()

    def _damaged(self, reason: str) -> None:
        self.damage = reason
        self._changed()

    def step(self) -> bool:
        """Send what is ready, as far as there is room; return whether any was."""
        link = self._link
        has_written = link.go_on()
        while self._ready and link.is_between_parts():
            chunk = self._ready.pop(0)
            self._sent += 1
            link.add(chunk, last=self._sent == self._count)
            has_written = True
            self._read()
        return has_written

    def is_done(self) -> bool:
        """Return whether the message is written to its end."""
        return self._sent == self._count and self._link.is_whole()
