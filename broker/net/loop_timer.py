"""Serves all deadlines of the broker with one timer of the event loop."""

import asyncio

from broker.links.container import Container
from broker.routing.timer_queue import NOTHING, TimerDriver


class LoopTimer(TimerDriver):
    """Calls `Container.tick` when the earliest entry of the timer queue is due."""

    def __init__(self, container: Container, loop: asyncio.AbstractEventLoop) -> None:
        self._container = container
        self._timer_queue = container.router.timer_queue
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self._timer_queue.driver = self
        self._arm()

    def wake_at(self, deadline_ms: int) -> None:
        self._cancel()
        wait_ms = deadline_ms - self._container.clock.now_ms()
        self._handle = self._loop.call_later(max(0, wait_ms) / 1000, self._fire)

    def _fire(self) -> None:
        self._container.tick()
        self._arm()

    def _arm(self) -> None:
        deadline_ms = self._timer_queue.next_deadline_ms()
        if deadline_ms != NOTHING:
            self.wake_at(deadline_ms)

    def close(self) -> None:
        """Cancel the timer, and do not set it again."""
        self._timer_queue.driver = None
        self._cancel()

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
