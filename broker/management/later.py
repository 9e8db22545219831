"""Responses that are sent later, such as those that need an answer of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from broker.management.response import Response

LATER_MAX: Final = 64
"""Maximum requests that wait for the store at a time; one connection to it serves them all."""

Spawn = Callable[[Coroutine[None, None, None]], None]
"""Runs a coroutine as a task of its own. A stopping broker waits for the task to end."""


@dataclass(frozen=True)
class Later:
    """A response to be awaited. `answer` starts the work; StoreError becomes status 500."""

    answer: Callable[[], Awaitable[Response]]


class Told:
    """Result of an operation that sends its response itself, through `Caller.tell`."""


class SpawnedTasks:
    """Tasks beside all other work, which answer requests."""

    def __init__(self) -> None:
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` as a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self, *, cancel: bool) -> None:
        """Await all tasks; `cancel` them before, if what they wait for will never happen.

        Each has made its first step by then: a task that is cancelled before it never runs, and
        so does not undo what was done for it, such as a hold of the journal.
        """
        answering = list(self._tasks)
        if cancel:
            await asyncio.sleep(0)
            for task in answering:
                task.cancel()
        for task in answering:
            with suppress(asyncio.CancelledError):
                await task
