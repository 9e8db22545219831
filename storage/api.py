"""The contract between the broker and whatever keeps its messages.

Changes gather in a `Batch`; `Store.commit` makes a batch durable as a whole
or not at all. A queue is named by its address, a message in a queue by its number,
which the broker gives: ascending, each once, over restarts too. The body of a large
message is a content, which is written in chunks before the message, and has a number too.
"""

from abc import abstractmethod
from collections.abc import Callable

from mypy_extensions import mypyc_attr

from storage.batch import Batch
from storage.events import EventColumns, EventPage, EventQuery
from storage.facts import QuarantinedMessage, StoreFacts
from storage.leases import StoredLeases
from storage.records import StoredId, StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.stages import StoredSink, StoredStage


class StoreError(Exception):
    """The store could not do as asked. Nothing of the batch concerned is certain."""


class ContentError(StoreError):
    """A chunk is not as it was written, or not there. All else can be relied on as before."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Store:
    """Keeps nodes, subscriptions, messages. `tests/contract` holds all fillings to one meaning."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The word for this store in the ready line, such as `memory`."""

    @property
    @abstractmethod
    def commits_at_once(self) -> bool:
        """Whether `commit_now` may be called: the store has no I/O to wait for."""

    @property
    @abstractmethod
    def first_number(self) -> int:
        """The lowest number that no message has ever had, once the store is open."""

    @property
    @abstractmethod
    def keeps_contents(self) -> bool:
        """Whether large messages are to be kept in chunks here, rather than in the broker's memory.

        The verbs do what they say in any case.
        """

    @property
    @abstractmethod
    def first_content(self) -> int:
        """The lowest number that no content has now, once the store is open."""

    @property
    def quarantined(self) -> int:
        """How many messages are quarantined, because they were found damaged."""
        return 0

    @property
    def notices(self) -> list[str]:
        """Sentences for the log about what `open` has found or changed."""
        return []

    def when_failed(self, tell: Callable[[StoreError], None]) -> None:
        """Call `tell` once where the store is lost while nobody waits for it."""

    def is_away(self) -> bool:
        """Whether commits wait for what keeps them to come back: producers had better wait, too."""
        return False

    def is_full(self) -> bool:
        """Whether the disk has run full: there is room for the commits of consumers at most."""
        return False

    def free_bytes(self) -> int:
        """How much more can be written, -1 where nobody knows. Costs a system call."""
        return -1

    async def facts(self) -> StoreFacts:
        """Sizes and counts. Costs no commit any time."""
        return StoreFacts()

    async def quarantined_messages(self, behind: int, at_most: int) -> list[QuarantinedMessage]:  # noqa: ARG002
        """Damaged messages with numbers above `behind`, ascending."""
        return []

    async def back_up(self, target: str, told: Callable[[int, int], None]) -> None:  # noqa: ARG002
        """Copy everything into a new file; `told`, in another thread, how many bytes of how many.

        Whatever was committed before is in it. StoreError where that cannot be done; the
        store goes on.
        """
        raise StoreError(f"the store {self.name} cannot be backed up by the broker")

    @abstractmethod
    async def open(self) -> None:
        """Make or open what keeps everything. Called once, before anything else is asked."""

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
    async def subscriptions(self) -> list[StoredSubscription]:
        """Every subscription, in the order in which they were added."""

    @abstractmethod
    async def delivered(self) -> dict[str, int]:
        """The position in each queue up to which messages may have been delivered before.

        There is none where the last broker closed this: it counted what it had delivered.
        """

    @abstractmethod
    async def messages(self, behind: int) -> list[StoredMessage]:
        """Some of the messages with numbers above `behind`, ascending; none where none is left."""

    @abstractmethod
    async def places(self, behind: int) -> StoredPlaces:
        """As `messages`, without their contents: what is damaged may be among them."""

    @abstractmethod
    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        """The messages of those numbers, which ascend; without those that are gone or damaged."""

    @abstractmethod
    def load_now(self, numbers: list[int]) -> list[StoredMessage]:
        """As `load`, without waiting. Only where `commits_at_once`."""

    @abstractmethod
    async def ids(self, behind: int) -> list[StoredId]:
        """Some of the remembered ids with numbers above `behind`, ascending; none at the end."""

    @abstractmethod
    async def stages(self) -> list[StoredStage]:
        """Every stage, by ascending number."""

    @abstractmethod
    async def sinks(self) -> list[StoredSink]:
        """Every query of which a batch has been committed, by name."""

    @abstractmethod
    async def leases(self) -> StoredLeases:
        """Every lease with its batches, in the order of their names."""

    @property
    @abstractmethod
    def first_event(self) -> int:
        """The lowest id that no row of the event log has had, once the store is open."""

    @abstractmethod
    async def events(self, query: EventQuery) -> EventPage:
        """Rows of the event log. One call looks at a bounded part of it."""

    @abstractmethod
    async def event_columns(self, query: EventQuery) -> EventColumns:
        """The same in columns, several times as fast."""

    @abstractmethod
    async def event_bounds(self) -> tuple[int, int]:
        """The ids of the oldest and the newest row that is there; 0 and 0 where none is."""

    @abstractmethod
    async def read_chunk(self, content: int, index: int) -> bytes:
        """A chunk of a content, as it was written; ContentError where it is not there so."""

    @abstractmethod
    async def sweep(self) -> bool:
        """Delete some chunks of contents that nobody uses; whether there is more to be done.

        A start finds what nobody uses: half a message, or one that was held and is in no queue.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give up what is open. Committed batches stay durable."""
