"""Where an embedded broker runs: the loop of its caller, or one in a thread of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Final, TypeVar, final

T = TypeVar("T")


@final
class LoopThread:
    """A running event loop whose thread does not keep the process alive."""

    def __init__(self) -> None:
        self.loop: Final = asyncio.new_event_loop()
        self._thread: Final = Thread(target=self.loop.run_forever, name="jms-broker", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[None, None, T]) -> T:
        """What `work` returns, once it has."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        """Stop the loop and wait for its thread. Nothing it has begun is left open."""
        self.run(_end_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> T:
    """What `function` returns, called in the thread of `loop`, from whichever thread."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop:
        return function()
    return asyncio.run_coroutine_threadsafe(_called(function), loop).result()


async def _end_tasks() -> None:
    """Cancel what runs beside this, such as a connection just being accepted, and see it end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # a transport that was closed takes another turn


async def _called(function: Callable[[], T]) -> T:
    return function()
