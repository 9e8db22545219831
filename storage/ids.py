"""Changes to the remembered message ids, by which duplicates are detected."""

from typing import Final, final

from mypy_extensions import i64

from storage.records import StoredId, StoredNode


@final
class IdChanges:
    """Id changes of one `Batch`. An id that is added and removed within it leaves no trace.

    The caller that removes a node must remove its ids, too: `node_removed` takes back only those
    that were added in this batch.
    """

    def __init__(self) -> None:
        self.remembered: Final[list[StoredId | None]] = []
        self.forgotten: Final[list[int]] = []
        self._first: i64 = 0

    def remember(self, stored: StoredId) -> None:
        """Add an id. Numbers ascend by one within a batch, else ValueError is raised."""
        if not self.remembered:
            self._first = stored.number
        elif stored.number != self._first + len(self.remembered):
            raise ValueError(f"id {stored.number} is not the next one of its batch")
        self.remembered.append(stored)

    def forget(self, number: i64) -> None:
        """Remove an id. No effect if it is gone already."""
        index = number - self._first
        if self.remembered and 0 <= index < i64(len(self.remembered)):
            self.remembered[index] = None
        else:
            self.forgotten.append(int(number))

    def node_removed(self, node: StoredNode) -> None:
        """Take back the ids that were added for `node` in this batch."""
        for index, stored in enumerate(self.remembered):
            if stored is not None and stored.kind == node.kind and stored.address == node.address:
                self.remembered[index] = None
