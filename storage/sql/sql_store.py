"""Common base of the SQL stores: the index of the stored rows, and the methods that read them.

Each store opens, commits and fails in its own way; everything else uses its connection through
`SqlStore._run`. Most of that reads; few statements write.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from storage.api import Store, StoreError
from storage.batch import Batch
from storage.leases import StoredLeases
from storage.records import StoredId, StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.sql import (
    chunks,
    contents,
    delivered,
    events,
    ids,
    leases,
    reading,
    stages,
    unsettled,
    users,
)
from storage.sql.contents import IN_USE
from storage.sql.index import Index
from storage.sql.quarantine import count, quarantine
from storage.sql.segments.segment import Damage, Segment
from storage.sql.statements import Texts
from storage.stages import StoredSink, StoredStage
from storage.unsettled import StoredOutcome
from storage.users import StoredToken, StoredUsers

T = TypeVar("T")

Found = tuple[T, list[Damage]]
"""Sound messages or their places, and the damaged messages that were found among them."""


class SqlStore(Store):
    """A store whose commits must be awaited. After a failure nothing more is committed (P8)."""

    def __init__(self) -> None:
        self._failure: StoreError | None = None
        self._index = Index()
        self._first_number = 1
        self._first_event = 1
        self._quarantined = 0

    @property
    def commits_at_once(self) -> bool:
        return False

    @property
    def first_number(self) -> int:
        return self._first_number

    @property
    def first_event(self) -> int:
        return self._first_event

    @property
    def keeps_contents(self) -> bool:
        return True

    @property
    def keeps_users(self) -> bool:
        return True

    @property
    def first_content(self) -> int:
        return self._index.chunks.first

    @property
    def quarantined(self) -> int:
        return self._quarantined

    @abstractmethod
    def _texts(self) -> Texts:
        """Return the statement texts for the open connection. Raise StoreError if there is none."""

    @abstractmethod
    async def _run(self, work: Callable[[Connection], T]) -> T:
        """Call `work` with the connection, after all earlier work, and return its result.

        Each of its statements is a transaction: no other process writes meanwhile. `work` may be
        called twice. Raise StoreError if it cannot be done.
        """

    @abstractmethod
    def _at_once(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        """Do `work`, a part of work for `_run` that writes, in one transaction."""

    def _take_up(self, connection: Connection) -> None:
        """Load the index of the stored rows, and mark the store as in use."""
        self._index = contents.load(connection, self._texts())
        self._quarantined = count(connection)
        self._first_number = self._index.numbers_up_to + 1
        self._first_event = events.first_free(connection)
        contents.set_mark(connection, IN_USE, 1)

    # -- commits

    def commit_now(self, batch: Batch) -> None:  # noqa: ARG002 - as the contract has it
        raise StoreError(f"{self.name} has to be waited for")

    def _committed(self, batch: Batch) -> None:
        """Count messages quarantined by `batch`, and free its chunks: the batch outlives this."""
        if batch.contents is not None:
            self._index.left_out.update(number for number, _ in batch.contents.quarantined)
            self._quarantined += len(batch.contents.quarantined)
            batch.contents.chunks.clear()

    # -- reading

    async def nodes(self) -> list[StoredNode]:
        return await self._run(contents.nodes)

    async def subscriptions(self) -> list[StoredSubscription]:
        return await self._run(contents.subscriptions)

    async def delivered(self) -> dict[str, int]:
        return await self._run(delivered.positions)

    async def messages(self, behind: int) -> list[StoredMessage]:
        find = partial(contents.messages, texts=self._texts(), index=self._index, behind=behind)
        return await self._run(partial(self._sound, find))

    async def places(self, behind: int) -> StoredPlaces:
        following = self._following
        find = partial(contents.places, following=following, index=self._index, behind=behind)
        return await self._run(partial(self._sound, find))

    def _following(self, connection: Connection, behind: int) -> list[Segment]:
        return reading.following(connection, self._texts(), behind)

    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        find = partial(contents.window, texts=self._texts(), index=self._index, numbers=numbers)
        return await self._run(partial(self._sound, find))

    def load_now(self, numbers: list[int]) -> list[StoredMessage]:  # noqa: ARG002 - as the contract
        raise StoreError(f"{self.name} has to be waited for")

    def _sound(self, find: Callable[[Connection], Found[T]], connection: Connection) -> T:
        """Return the sound part of what `find` found, and quarantine the damaged messages."""
        sound, damaged = find(connection)
        if damaged:
            self._at_once(connection, partial(quarantine, damaged=damaged))
            self._index.left_out.update(number for number, _ in damaged)
            self._quarantined += len(damaged)
        return sound

    async def ids(self, behind: int) -> list[StoredId]:
        return await self._run(partial(ids.load, behind=behind))

    async def stages(self) -> list[StoredStage]:
        return await self._run(stages.stages)

    async def sinks(self) -> list[StoredSink]:
        return await self._run(stages.sinks)

    async def leases(self) -> StoredLeases:
        return await self._run(leases.load)

    async def unsettled(self) -> list[StoredOutcome]:
        return await self._run(unsettled.load)

    async def users(self) -> StoredUsers:
        return await self._run(users.load)

    async def tokens(self) -> list[StoredToken]:
        return await self._run(users.load_tokens)

    # -- contents

    async def read_chunk(self, content: int, index: int) -> bytes:
        return await self._run(partial(chunks.read, content=content, index=index))

    async def sweep(self) -> bool:
        return await self._run(self._sweep)

    def _sweep(self, connection: Connection) -> bool:
        """Delete some chunks of the first unused content. Return whether there are more."""
        garbage = self._index.chunks.uses.garbage
        if garbage:
            is_swept = self._at_once(connection, partial(chunks.sweep, content=garbage[0]))
            if is_swept:
                del garbage[0]
        return bool(garbage)
