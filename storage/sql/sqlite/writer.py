"""The one thread that uses a store's connection: it does all work in the order of the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final, Generic, TypeVar, final

T = TypeVar("T")


@final
class Job(Generic[T]):
    """Work for the thread, and the future of the task that waits for its result."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Final = work
        self._loop: Final = asyncio.get_running_loop()
        self.done: Final[asyncio.Future[T]] = self._loop.create_future()

    def run(self) -> None:
        """Do the work in this thread, and pass the result or error to the event loop."""
        try:
            result = self._work()
        except Exception as error:  # noqa: BLE001 - the waiting task gets it
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
    """Work for the thread for which no task waits."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.run: Final = work


@final
class Writer:
    """A thread for work, reached by one switch to it and one back (`docs/design/data-path.md` 3.6).

    It needs no executor, no lock and no task.
    """

    def __init__(self, name: str) -> None:
        self._jobs: Final[SimpleQueue[Job[object] | Errand | None]] = SimpleQueue()
        self._thread: Final = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self.is_closed = False

    async def do(self, work: Callable[[], T]) -> T:
        """Do `work` in the thread; return its result or raise its error. Not after `close`."""
        assert not self.is_closed, "there is no thread any more"
        job = Job(work)
        self._jobs.put(job)  # type: ignore[arg-type] # a queue of jobs, whatever they return
        return await job.done

    def post(self, work: Callable[[], None]) -> None:
        """Queue `work`, which must raise nothing, without waiting. Not done after `close`."""
        self._jobs.put(Errand(work))

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()

    async def close(self) -> None:
        """End the thread when all queued work is done. Idempotent."""
        if not self.is_closed:
            await self.do(lambda: None)
            self.is_closed = True
            self._jobs.put(None)
            self._thread.join()
