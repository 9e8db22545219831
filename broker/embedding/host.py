"""The event loop of an embedded broker: its caller's, or one in a thread of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Final, TypeVar, final

T = TypeVar("T")


@final
class LoopThread:
    """A running event loop in a daemon thread, which does not keep the process alive."""

    def __init__(self) -> None:
        self.loop: Final = asyncio.new_event_loop()
        self._thread: Final = Thread(target=self.loop.run_forever, name="jms-broker", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Run `work` on the event loop, wait for it, and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        """Cancel all tasks, stop the event loop, wait for its thread, and close the loop."""
        self.run(_end_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> T:
    """Call `function` in the thread of `loop` and return its result; callable from any thread."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop:
        return function()
    return asyncio.run_coroutine_threadsafe(_called(function), loop).result()


async def _end_tasks() -> None:
    """Cancel all other tasks, such as one accepting a connection, and wait until they end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # a closed transport needs one more turn of the event loop


async def _called(function: Callable[[], T]) -> T:
    return function()
