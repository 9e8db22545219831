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
        self.removed: Final[list[int]] = []
        self.fallen_due: Final[list[tuple[int, int]]] = []
        self.counted: Final[list[tuple[int, int]]] = []
        self.rewritten: Final[list[tuple[int, bytes]]] = []
        self.nodes_added: Final[list[StoredNode]] = []
        self.nodes_removed: Final[list[StoredNode]] = []

    def append(self, queue: str, message: StoredMessage) -> None:
        self.appended.append((queue, message))

    def remove(self, number: i64) -> None:
        self.removed.append(int(number))

    def fall_due(self, number: i64, position: i64) -> None:
        self.fallen_due.append((int(number), int(position)))

    def count(self, number: i64, delivery_count: i64) -> None:
        self.counted.append((int(number), int(delivery_count)))

    def rewrite(self, number: i64, encoded: bytes) -> None:
        self.rewritten.append((int(number), encoded))

    def add_node(self, node: StoredNode) -> None:
        self.nodes_added.append(node)

    def remove_node(self, node: StoredNode) -> None:
        self.nodes_removed.append(node)
        self.nodes_added[:] = [added for added in self.nodes_added if not _are_same(added, node)]
        if node.kind == "queue":
            queue = node.address
            self.appended[:] = [change for change in self.appended if change[0] != queue]

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
        self._queues: Final[dict[str, dict[int, StoredMessage]]] = {}
        self._queue_of: Final[dict[int, str]] = {}

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
                self._empty(node.address)
        for node in batch.nodes_added:
            self._nodes.setdefault((node.kind, node.address), node)
        for queue, message in batch.appended:
            self._queues.setdefault(queue, {})[int(message.number)] = message
            self._queue_of[int(message.number)] = queue
        for number, position in batch.fallen_due:
            old = self._message(number)
            if old is not None:
                self._replace(old.fallen_due(position))
        for number, delivery_count in batch.counted:
            old = self._message(number)
            if old is not None:
                self._replace(old.with_count(delivery_count))
        for number, encoded in batch.rewritten:
            old = self._message(number)
            if old is not None:
                self._replace(old.with_bytes(encoded))
        for number in batch.removed:
            queue_of = self._queue_of.pop(number, None)
            if queue_of is not None:
                del self._queues[queue_of][number]

    def _empty(self, queue: str) -> None:
        for number in self._queues.pop(queue, {}):
            del self._queue_of[number]

    def _message(self, number: int) -> StoredMessage | None:
        queue = self._queue_of.get(number)
        return None if queue is None else self._queues[queue][number]

    def _replace(self, message: StoredMessage) -> None:
        self._queues[self._queue_of[int(message.number)]][int(message.number)] = message

    async def commit(self, batch: Batch) -> None:
        self.commit_now(batch)

    async def nodes(self) -> list[StoredNode]:
        return list(self._nodes.values())

    async def messages(self, queue: str) -> list[StoredMessage]:
        return sorted(self._queues.get(queue, {}).values(), key=_position)

    async def close(self) -> None:
        """Nothing is open."""


def _are_same(one: StoredNode, other: StoredNode) -> bool:
    return one.kind == other.kind and one.address == other.address


def _position(message: StoredMessage) -> int:
    return int(message.position)
