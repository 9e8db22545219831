"""A store that forgets everything with its process: the reference meaning of `storage.api`."""

from typing import Final, final

from mypy_extensions import i64

from storage.api import Batch, Store, StoreError
from storage.records import StoredMessage, StoredNode


@final
class MemoryBatch(Batch):
    """Changes by their kind. Removing a node also takes back what was noted for it before."""

    def __init__(self) -> None:
        self.appended: Final[list[tuple[str, StoredMessage]]] = []
        self.removed: Final[list[tuple[str, int]]] = []
        self.fallen_due: Final[list[tuple[str, int, int]]] = []
        self.counted: Final[list[tuple[str, int, int]]] = []
        self.rewritten: Final[list[tuple[str, int, bytes]]] = []
        self.nodes_added: Final[list[StoredNode]] = []
        self.nodes_removed: Final[list[StoredNode]] = []

    def append(self, queue: str, message: StoredMessage) -> None:
        self.appended.append((queue, message))

    def remove(self, queue: str, position: i64) -> None:
        self.removed.append((queue, int(position)))

    def fall_due(self, queue: str, position: i64, new_position: i64) -> None:
        self.fallen_due.append((queue, int(position), int(new_position)))

    def count(self, queue: str, position: i64, delivery_count: i64) -> None:
        self.counted.append((queue, int(position), int(delivery_count)))

    def rewrite(self, queue: str, position: i64, encoded: bytes) -> None:
        self.rewritten.append((queue, int(position), encoded))

    def add_node(self, node: StoredNode) -> None:
        self.nodes_added.append(node)

    def remove_node(self, node: StoredNode) -> None:
        self.nodes_removed.append(node)
        self.nodes_added[:] = [added for added in self.nodes_added if not _are_same(added, node)]
        if node.kind == "queue":
            queue = node.address
            self.appended[:] = [change for change in self.appended if change[0] != queue]
            self.fallen_due[:] = [change for change in self.fallen_due if change[0] != queue]
            self.counted[:] = [change for change in self.counted if change[0] != queue]
            self.rewritten[:] = [change for change in self.rewritten if change[0] != queue]
            self.removed[:] = [change for change in self.removed if change[0] != queue]

    def is_empty(self) -> bool:
        return not (
            self.appended
            or self.removed
            or self.fallen_due
            or self.counted
            or self.rewritten
            or self.nodes_added
            or self.nodes_removed
        )


@final
class MemoryStore(Store):
    """Dictionaries in place of a disk: what it keeps is lost with the process."""

    def __init__(self) -> None:
        self._nodes: Final[dict[tuple[str, str], StoredNode]] = {}
        self._messages: Final[dict[str, dict[int, StoredMessage]]] = {}

    @property
    def name(self) -> str:
        return "memory"

    @property
    def commits_at_once(self) -> bool:
        return True

    def batch(self) -> Batch:
        return MemoryBatch()

    def commit_now(self, batch: Batch) -> None:
        if not isinstance(batch, MemoryBatch):
            raise StoreError("a batch is committed by the store that made it")
        for node in batch.nodes_removed:
            self._nodes.pop((node.kind, node.address), None)
            if node.kind == "queue":
                self._messages.pop(node.address, None)
        for node in batch.nodes_added:
            self._nodes.setdefault((node.kind, node.address), node)
        for queue, message in batch.appended:
            self._messages.setdefault(queue, {})[int(message.position)] = message
        for queue, position, new_position in batch.fallen_due:
            old = self._messages.get(queue, {}).pop(position, None)
            if old is not None:
                self._messages[queue][new_position] = old.fallen_due(new_position)
        for queue, position, delivery_count in batch.counted:
            old = self._message(queue, position)
            if old is not None:
                self._messages[queue][position] = old.with_count(delivery_count)
        for queue, position, encoded in batch.rewritten:
            old = self._message(queue, position)
            if old is not None:
                self._messages[queue][position] = old.with_bytes(encoded)
        for queue, position in batch.removed:
            self._messages.get(queue, {}).pop(position, None)

    def _message(self, queue: str, position: int) -> StoredMessage | None:
        return self._messages.get(queue, {}).get(position)

    async def commit(self, batch: Batch) -> None:
        self.commit_now(batch)

    async def nodes(self) -> list[StoredNode]:
        return list(self._nodes.values())

    async def messages(self, queue: str) -> list[StoredMessage]:
        return sorted(self._messages.get(queue, {}).values(), key=_position)

    async def close(self) -> None:
        """Nothing is open."""


def _are_same(one: StoredNode, other: StoredNode) -> bool:
    return one.kind == other.kind and one.address == other.address


def _position(message: StoredMessage) -> int:
    return int(message.position)
