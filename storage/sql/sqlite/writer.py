"""The one thread that uses a store's connection: what it is given, it does in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final, Generic, TypeVar, final

T = TypeVar("T")


@final
class Job(Generic[T]):
    """Something to be done in the thread, and the future of whoever waits for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Final = work
        self._loop: Final = asyncio.get_running_loop()
        self.done: Final[asyncio.Future[T]] = self._loop.create_future()

    def run(self) -> None:
        """Do it, here and now, and tell the loop."""
        try:
            result = self._work()
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            self._loop.call_soon_threadsafe(self._fail, error)
        else:
            self._loop.call_soon_threadsafe(self._finish, result)

    def _finish(self, result: T) -> None:
        if not self.done.done():
            self.done.set_result(result)

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


@final
class Errand:
    """Something to be done in the thread, for which nobody waits."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.run: Final = work


@final
class Writer:
    """A thread with one hop in and one out (`storage.md` 3.6): no executor, no lock, no task."""

    def __init__(self, name: str) -> None:
        self._jobs: Final[SimpleQueue[Job[object] | Errand | None]] = SimpleQueue()
        self._thread: Final = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self.is_closed = False

    async def do(self, work: Callable[[], T]) -> T:
        """What `work` returned in the thread, or its error. Not once this is closed."""
        assert not self.is_closed, "there is no thread any more"
        job = Job(work)
        self._jobs.put(job)  # type: ignore[arg-type] # a queue of jobs, whatever they return
        return await job.done

    def post(self, work: Callable[[], None]) -> None:
        """Let `work`, which raises nothing, be done some time."""
        self._jobs.put(Errand(work))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()

    async def close(self) -> None:
        """End the thread when everything has been done; once is enough."""
        if not self.is_closed:
            await self.do(lambda: None)
            self.is_closed = True
            self._jobs.put(None)
            self._thread.join()
