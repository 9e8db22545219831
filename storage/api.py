"""The contract between the broker and whatever keeps its messages.

Changes gather in a `Batch`; `Store.commit` makes a batch durable as a whole
or not at all. A queue is named by its address, a message in a queue by its number,
which the broker gives: ascending, each once.
"""

from abc import abstractmethod

from mypy_extensions import i64, mypyc_attr

from storage.records import StoredMessage, StoredNode


class StoreError(Exception):
    """The store could not do as asked. Nothing of the batch concerned is certain."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Batch:
    """Changes that become durable together, or not at all. Noting one costs no I/O.

    They take effect in the order in which they were noted: a queue that is
    removed and added anew in one batch keeps what was appended after that.
    """

    @abstractmethod
    def append(self, queue: str, message: StoredMessage) -> None:
        """Add `message` to `queue` at its position."""

    @abstractmethod
    def remove(self, number: i64) -> None:
        """Forget a message. One that is gone already stays gone."""

    @abstractmethod
    def fall_due(self, number: i64, position: i64) -> None:
        """Give a message that had a delivery time its place; it has none any more.

        One that is gone stays gone.
        """

    @abstractmethod
    def count(self, number: i64, delivery_count: i64) -> None:
        """Remember how many deliveries of a message have failed."""

    @abstractmethod
    def rewrite(self, number: i64, encoded: bytes) -> None:
        """Remember a message's bytes anew. One that is gone stays gone."""

    @abstractmethod
    def add_node(self, node: StoredNode) -> None:
        """Remember a queue or topic. Adding it again changes nothing."""

    @abstractmethod
    def remove_node(self, node: StoredNode) -> None:
        """Forget a queue or topic with all of its messages."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether nothing has been noted, so that a commit could be spared."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Store:
    """Keeps nodes and messages. `tests/contract` holds every filling to one meaning."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The word for this store in the ready line, such as `memory`."""

    @property
    @abstractmethod
    def commits_at_once(self) -> bool:
        """Whether `commit_now` may be called: the store has no I/O to wait for."""

    @abstractmethod
    def batch(self) -> Batch:
        """A new empty batch, to be committed here and nowhere else."""

    @abstractmethod
    def commit_now(self, batch: Batch) -> None:
        """Make `batch` durable without waiting. Only where `commits_at_once`."""

    @abstractmethod
    async def commit(self, batch: Batch) -> None:
        """Make `batch` durable. It has survived a crash once this returns; raises StoreError."""

    @abstractmethod
    async def nodes(self) -> list[StoredNode]:
        """Every node, in the order in which they were added."""

    @abstractmethod
    async def messages(self, queue: str) -> list[StoredMessage]:
        """The messages of `queue` by ascending position."""

    @abstractmethod
    async def close(self) -> None:
        """Give up what is open. Committed batches stay durable."""
