"""The contract between the broker and the store that keeps its messages.

Changes are collected in a `Batch`; `Store.commit` makes a batch durable as a whole
or not at all. A queue is named by its address, a message in a queue by its number,
which the broker assigns: ascending, each once, over restarts too. The body of a large
message is a content, which is written in chunks before the message, and has a number too.
"""

from abc import abstractmethod
from collections.abc import Callable

from mypy_extensions import mypyc_attr

from storage.batch import Batch
from storage.events import EventColumns, EventPage, EventQuery
from storage.facts import DiskSpace, QuarantinedMessage, StoreFacts
from storage.leases import StoredLeases
from storage.members import StoredMember
from storage.records import StoredId, StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.stages import StoredSink, StoredStage
from storage.unsettled import StoredOutcome
from storage.users import StoredToken, StoredUsers


class StoreError(Exception):
    """The store could not do as asked. Whether a batch was committed is not known."""


class LeadershipError(StoreError):
    """Another broker has the store, or may have it: this one must answer nothing any more."""


class ContentError(StoreError):
    """A chunk is damaged or missing. The rest of the store can be relied on as before."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Store:
    """A store of nodes, subscriptions, messages. `tests/contract` tests every implementation."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name of this store in the ready line of the log, such as `memory`."""

    @property
    @abstractmethod
    def commits_at_once(self) -> bool:
        """Return whether `commit_now` and `load_now` may be called: the store does no I/O."""

    @property
    @abstractmethod
    def first_number(self) -> int:
        """Return the lowest number that no message has ever had, once the store is open."""

    @property
    @abstractmethod
    def keeps_contents(self) -> bool:
        """Return whether the broker should keep large messages in chunks here, not in its memory.

        The methods for contents work in either case.
        """

    @property
    @abstractmethod
    def keeps_users(self) -> bool:
        """Return whether users are still there after a restart, so that the broker may add some.

        The methods for users work in either case.
        """

    @property
    @abstractmethod
    def first_content(self) -> int:
        """Return the lowest number above those of all present contents, once the store is open."""

    @property
    def quarantined(self) -> int:
        """Return the number of messages that are quarantined because they were found damaged."""
        return 0

    def when_noticed(self, tell: Callable[[str], None]) -> None:
        """Register `tell`, which is called with sentences for the log about what the store finds.

        Without it, they are lost.
        """

    def when_failed(self, tell: Callable[[StoreError], None]) -> None:
        """Register `tell`, which is called once if the store is lost while no call awaits it."""

    def is_away(self) -> bool:
        """Return whether commits wait for a lost database: producers should wait, too."""
        return False

    def waits_for_standby(self) -> bool:
        """Return whether commits wait for a standby server of the database."""
        return False

    def is_full(self) -> bool:
        """Return whether the disk is full: there is room for the commits of consumers at most."""
        return False

    def free_bytes(self) -> int:
        """Return how many more bytes can be written, -1 if unknown. Costs a system call."""
        return -1

    def disk_space(self) -> DiskSpace | None:
        """Return the sizes of files and disk, None if unknown. Costs a few system calls."""
        return None

    async def facts(self) -> StoreFacts:
        """Return sizes and counts. Delays no commit."""
        return StoreFacts()

    async def quarantined_messages(self, behind: int, at_most: int) -> list[QuarantinedMessage]:  # noqa: ARG002
        """Return the first `at_most` damaged messages with numbers above `behind`, ascending."""
        return []

    async def back_up(self, target: str, told: Callable[[int, int], None]) -> None:  # noqa: ARG002
        """Copy everything that was committed before into the new file `target`.

        `told` is called in another thread with the bytes copied so far and all bytes. Raise
        StoreError if the copy cannot be made; the store continues to work.
        """
        raise StoreError(f"the store {self.name} cannot be backed up by the broker")

    async def lead(self, told: Callable[[str, str], None]) -> None:
        """Wait until no other broker of the group has the store, and take it.

        `told` is called with the name of each broker that has it, and with what is wrong; one of
        both may be empty. Stores without groups are taken by `open`.
        """

    def hand_over_to(self, member: str) -> None:
        """Have the other members of the group wait for `member` to take the store after `close`."""
        raise StoreError(f"the store {self.name} cannot be handed over to {member}")

    async def members(self) -> list[StoredMember]:
        """Return the brokers of the group by their names, this one among them; [] without a group.

        Also of a store that another broker of the group has.
        """
        return []

    async def forget_member(self, name: str) -> None:
        """Delete what is known of a broker that is no more a member of the group."""

    def proof_us(self) -> int:
        """Return the last moment, in µs of the steady clock, of which it is proved that it leads.

        That is: no other broker can have the store within the group's `silence_ms` from then on,
        unless the connection with the store ends before: then the proof is void.
        """
        return -1

    def when_unproved(self, tell: Callable[[], None]) -> None:
        """Call `tell` whenever what `proof_us` has returned is void."""

    @abstractmethod
    async def open(self) -> None:
        """Create or open the store. Called once, before it reads or commits anything."""

    @abstractmethod
    def commit_now(self, batch: Batch) -> None:
        """Make `batch` durable without waiting. Only if `commits_at_once`."""

    @abstractmethod
    async def commit(self, batch: Batch) -> None:
        """Make `batch` durable: it survives a crash once this returns. Raise StoreError if not."""

    @abstractmethod
    async def nodes(self) -> list[StoredNode]:
        """Return every node, in the order in which they were added."""

    @abstractmethod
    async def subscriptions(self) -> list[StoredSubscription]:
        """Return every subscription, in the order in which they were added."""

    @abstractmethod
    async def delivered(self) -> dict[str, int]:
        """Return by queue the position up to which messages may have been delivered before.

        A broker that closes the store has counted what it has delivered: then the positions are
        those that it found itself.
        """

    @abstractmethod
    async def messages(self, behind: int) -> list[StoredMessage]:
        """Return some messages with numbers above `behind`, ascending; [] if none is left."""

    @abstractmethod
    async def places(self, behind: int) -> StoredPlaces:
        """Return places like `messages`, without the bytes: damaged messages may be among them."""

    @abstractmethod
    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        """Return the messages of these ascending numbers, except those gone or damaged."""

    @abstractmethod
    def load_now(self, numbers: list[int]) -> list[StoredMessage]:
        """Return the same as `load`, without waiting. Only if `commits_at_once`."""

    @abstractmethod
    async def ids(self, behind: int) -> list[StoredId]:
        """Return some remembered ids with numbers above `behind`, ascending; [] if none is left."""

    @abstractmethod
    async def stages(self) -> list[StoredStage]:
        """Return every stage, by ascending number."""

    @abstractmethod
    async def sinks(self) -> list[StoredSink]:
        """Return every query of which a batch has been committed, ordered by name."""

    @abstractmethod
    async def leases(self) -> StoredLeases:
        """Return every lease with its unsettled batches, ordered by name."""

    async def unsettled(self) -> list[StoredOutcome]:
        """Return every outcome that its sender has not settled; those of one target together."""
        return []

    @abstractmethod
    async def users(self) -> StoredUsers:
        """Return every user, ordered by name, and the key of salts for unknown users."""

    @abstractmethod
    async def tokens(self) -> list[StoredToken]:
        """Return every API token, ordered by id."""

    @property
    @abstractmethod
    def first_event(self) -> int:
        """Return the lowest id that no row of the event log has had, once the store is open."""

    @abstractmethod
    async def events(self, query: EventQuery) -> EventPage:
        """Return rows of the event log. One call examines a bounded part of it."""

    @abstractmethod
    async def event_columns(self, query: EventQuery) -> EventColumns:
        """Return rows of the event log in columns, several times as fast as `events`."""

    @abstractmethod
    async def event_bounds(self) -> tuple[int, int]:
        """Return the ids of the oldest and the newest row of the event log; 0 and 0 if empty."""

    @abstractmethod
    async def read_chunk(self, content: int, index: int) -> bytes:
        """Return a chunk of a content. Raise ContentError if it is damaged or missing."""

    @abstractmethod
    async def sweep(self) -> bool:
        """Delete some chunks of unused contents. Return whether there are more to delete.

        A start finds unused contents: those of messages that were received in part only, and those
        that were held and belong to no message in a queue.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the store. Committed batches stay durable."""
