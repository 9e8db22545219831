"""One timer of the event loop for every deadline of the broker."""

import asyncio

from broker.links.container import Container
from broker.routing.agenda import NOTHING


class Timer:
    """Calls `Container.tick` when the earliest entry of the agenda is due."""

    def __init__(self, container: Container, loop: asyncio.AbstractEventLoop) -> None:
        self._container = container
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None
        self._due_ms = NOTHING

    def arm(self) -> None:
        """Take the agenda's earliest deadline into account; cheap where it has not changed."""
        due_ms = self._container.router.agenda.next_deadline_ms()
        if due_ms == self._due_ms:
            return
        if self._handle is not None:
            if due_ms != NOTHING and self._due_ms <= due_ms:
                return  # fires early, and arms itself again
            self._handle.cancel()
            self._handle = None
        self._due_ms = due_ms
        if due_ms != NOTHING:
            wait_ms = due_ms - self._container.clock.now_ms()
            self._handle = self._loop.call_later(max(0, wait_ms) / 1000, self._fire)

    def _fire(self) -> None:
        self._handle = None
        self._due_ms = NOTHING
        self._container.tick()
        self.arm()

    def close(self) -> None:
        """Fire no more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
