"""A simulated broker on a real store, whose clients read once its commits have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from broker.restore import restore
from storage.api import Store
from tests.support.broker import Broker, Client
from tests.support.memory import Quiet
from tests.support.stored import stored_messages

T = TypeVar("T")


class StoredBroker(Broker):
    """A broker that has restored what is in the store of `new_store`, and commits to it.

    Each call of `new_store` returns a store of the same content, not open.
    """

    def __init__(self, new_store: Callable[[], Store]) -> None:
        self._new_store: Final = new_store
        self._loop: Final = asyncio.new_event_loop()
        store = new_store()
        self.run(store.open())
        super().__init__(store=store, watcher=Quiet())
        self.run(restore(store, self.router, self.journal.batch))
        committing = self.journal.run(self.container.run_round)
        self._committing: Final = self._loop.create_task(committing)
        self.container.run_round()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, such as a request to the store."""
        return self._loop.run_until_complete(work)

    def dial(self) -> Client:
        return PatientClient(self)

    def catch_up(self) -> None:
        """Let all commits end. Raise StoreError if one has failed."""
        self.run(self._rest(lambda: self.journal.is_idle()))

    async def _rest(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            if self._committing.done():
                self._committing.result()
            await asyncio.sleep(0)

    def bodies_in(self, queue: str) -> list[bytes]:
        """Return the stored messages of `queue`, as they were sent."""
        return [each.encoded for each in self.run(stored_messages(self.store, queue))]

    def restarted(self) -> StoredBroker:
        """Return another broker on the store of this one, which is killed between two commits."""
        self.close()
        return StoredBroker(self._new_store)

    def close(self) -> None:
        """End without a commit more than the one under way."""
        self.run(self._rest(lambda: not self.journal.is_committing))
        self._committing.cancel()
        with suppress(asyncio.CancelledError):
            self.run(self._ended())
        self.run(self.store.close())
        self._loop.close()

    async def _ended(self) -> None:
        await self._committing


class PatientClient(Client):
    """A client that reads only what the broker writes once its commits have ended."""

    def _look(self) -> None:
        assert isinstance(self.broker, StoredBroker)
        self.broker.catch_up()
        super()._look()
