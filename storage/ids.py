"""Ids of messages that are remembered, and forgotten again, on their way to a store."""

from typing import Final, final

from mypy_extensions import i64

from storage.records import StoredId, StoredNode


@final
class IdChanges:
    """What one batch does to the ids that are remembered. One that comes and goes leaves no trace.

    Ids of a node that is removed are forgotten by whoever removes it: only those of this
    batch are taken back here.
    """

    def __init__(self) -> None:
        self.remembered: Final[list[StoredId | None]] = []
        self.forgotten: Final[list[int]] = []
        self._first: i64 = 0

    def remember(self, stored: StoredId) -> None:
        """Add an id. Numbers ascend by one within a batch."""
        if not self.remembered:
            self._first = stored.number
        elif stored.number != self._first + len(self.remembered):
            raise ValueError(f"id {stored.number} is not the next one of its batch")
        self.remembered.append(stored)

    def forget(self, number: i64) -> None:
        """Take an id out. One that is gone already stays gone."""
        index = number - self._first
        if self.remembered and 0 <= index < i64(len(self.remembered)):
            self.remembered[index] = None
        else:
            self.forgotten.append(int(number))

    def node_removed(self, node: StoredNode) -> None:
        """What was noted for `node` before its removal is taken back."""
        for index, stored in enumerate(self.remembered):
            if stored is not None and stored.kind == node.kind and stored.address == node.address:
                self.remembered[index] = None
