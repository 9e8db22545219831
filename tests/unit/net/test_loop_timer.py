"""The event loop's one timer follows the earliest deadline of the timer queue."""

import asyncio

from broker.app import App
from broker.net.loop_timer import LoopTimer
from broker.routing.timer_queue import TimerCallback


class Bell(TimerCallback):
    """A timer callback that puts its name into a queue when it is called."""

    def __init__(self, rung: "asyncio.Queue[str]", name: str) -> None:
        self.rung = rung
        self.name = name

    def due(self, now_ms: int) -> None:  # noqa: ARG002 - the timer queue passes it
        self.rung.put_nowait(self.name)


async def test_an_earlier_deadline_overtakes_a_later_one(app: App) -> None:
    timer = LoopTimer(app.container, asyncio.get_running_loop())
    rung: asyncio.Queue[str] = asyncio.Queue()
    timer_queue, now_ms = app.container.router.timer_queue, app.container.clock.now_ms()
    timer_queue.at(now_ms + 60_000, Bell(rung, "never"))
    timer_queue.at(now_ms + 20, Bell(rung, "second"))
    timer_queue.at(now_ms + 5, Bell(rung, "first"))
    assert [await asyncio.wait_for(rung.get(), 5) for _ in range(2)] == ["first", "second"]
    timer.close()


async def test_a_closed_timer_rings_no_more(app: App) -> None:
    timer = LoopTimer(app.container, asyncio.get_running_loop())
    rung: asyncio.Queue[str] = asyncio.Queue()
    app.container.router.timer_queue.at(app.container.clock.now_ms() + 60_000, Bell(rung, "never"))
    timer.close()
    timer.close()
    assert rung.empty()
