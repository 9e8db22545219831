"""A store whose commits are asynchronous and take as long as a test wants."""

import asyncio
from contextlib import suppress
from typing import Final

from storage.api import ContentError, Store, StoreError
from storage.batch import Batch
from storage.events import EventColumns, EventPage, EventQuery
from storage.leases import StoredLeases
from storage.memory import MemoryStore
from storage.records import StoredId, StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.stages import StoredSink, StoredStage
from storage.users import StoredToken, StoredUsers


class GatedStore(Store):
    """A store in memory whose commits complete only when they are `let_through`.

    `commits` holds the batches whose commit has begun. A commit that is let through with `failing`
    raises StoreError and keeps nothing, unless the batch is `applied` nevertheless. The store can
    then be given to another broker, like a disk.
    """

    def __init__(self, *, keeps_contents: bool = False) -> None:
        self.damaged: Final[set[tuple[int, int]]] = set()
        self._keeps_contents: Final = keeps_contents
        self.commits: Final[list[Batch]] = []
        self.is_unreadable = False
        self._memory: Final = MemoryStore()
        self._gates: Final[list[asyncio.Future[None]]] = []
        self._first_number = 1

    @property
    def name(self) -> str:
        return "gated"

    @property
    def commits_at_once(self) -> bool:
        return False

    @property
    def first_number(self) -> int:
        return self._first_number

    @property
    def keeps_contents(self) -> bool:
        return self._keeps_contents

    @property
    def keeps_users(self) -> bool:
        return True

    @property
    def first_content(self) -> int:
        return 1

    async def open(self) -> None:
        """Do nothing."""

    def commit_now(self, batch: Batch) -> None:  # noqa: ARG002 - never called
        raise AssertionError("commits are awaited here")

    async def commit(self, batch: Batch) -> None:
        gate = asyncio.get_running_loop().create_future()
        self.commits.append(batch)
        for message in batch.appended:
            if message is not None:
                self._first_number = max(self._first_number, int(message.number) + 1)
        self._gates.append(gate)
        await gate
        self._memory.commit_now(batch)

    def let_through(self, *, failing: bool = False, applied: Batch | None = None) -> None:
        """Complete the oldest commit; an `applied` batch is kept even if the commit fails."""
        gate = self._gates.pop(0)
        if applied is not None:
            self._memory.commit_now(applied)
        if failing:
            gate.set_exception(StoreError("the disk is full"))
        else:
            gate.set_result(None)

    def let_all_through(self) -> None:
        """Complete all commits that have begun."""
        while self._gates:
            self.let_through()

    async def chunks(self) -> int:
        """Return the number of stored chunks of large bodies."""
        count = 0
        for batch in self.commits:
            if batch.contents is not None:
                for content, index, _ in batch.contents.chunks:
                    with suppress(ContentError):
                        await self._memory.read_chunk(content, index)
                        count += 1
        return count

    async def nodes(self) -> list[StoredNode]:
        return await self._memory.nodes()

    async def subscriptions(self) -> list[StoredSubscription]:
        return await self._memory.subscriptions()

    async def delivered(self) -> dict[str, int]:
        return await self._memory.delivered()

    async def messages(self, behind: int) -> list[StoredMessage]:
        return await self._memory.messages(behind)

    async def places(self, behind: int) -> StoredPlaces:
        return await self._memory.places(behind)

    def keep(self, message: StoredMessage) -> None:
        """Store a message before the broker starts."""
        batch = Batch()
        batch.append(message)
        self._memory.commit_now(batch)

    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        if self.is_unreadable:
            raise StoreError("the disk is gone")
        return await self._memory.load(numbers)

    def load_now(self, numbers: list[int]) -> list[StoredMessage]:  # noqa: ARG002 - never called
        raise AssertionError("loads are awaited here")

    async def ids(self, behind: int) -> list[StoredId]:
        return await self._memory.ids(behind)

    async def stages(self) -> list[StoredStage]:
        return await self._memory.stages()

    async def sinks(self) -> list[StoredSink]:
        return await self._memory.sinks()

    async def leases(self) -> StoredLeases:
        return await self._memory.leases()

    async def users(self) -> StoredUsers:
        return await self._memory.users()

    async def tokens(self) -> list[StoredToken]:
        return await self._memory.tokens()

    async def read_chunk(self, content: int, index: int) -> bytes:
        if (content, index) in self.damaged:
            raise ContentError(f"chunk {index} of content {content} is damaged")
        return await self._memory.read_chunk(content, index)

    async def sweep(self) -> bool:
        return await self._memory.sweep()

    @property
    def first_event(self) -> int:
        return self._memory.first_event

    async def events(self, query: EventQuery) -> EventPage:
        return await self._memory.events(query)

    async def event_columns(self, query: EventQuery) -> EventColumns:
        return await self._memory.event_columns(query)

    async def event_bounds(self) -> tuple[int, int]:
        return await self._memory.event_bounds()

    async def close(self) -> None:
        assert not self._gates, "a commit is under way"
