"""The pause of a busy queue.

A queue that has delivered DELIVERED_AT_ONCE messages, or has judged as many as it may, pauses, so
that the event loop can do its other work.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.participants import Wakeable
from broker.routing.timer_queue import TimerCallback

DELIVERED_AT_ONCE: Final[i64] = 4096
"""Maximum messages a queue delivers before the event loop serves sockets: some milliseconds."""


@final
class DispatchPause(TimerCallback):
    """Timer that ends the pause of `queue` in the next turn of the event loop, and wakes it."""

    def __init__(self, queue: Wakeable) -> None:
        self.is_over = False
        self._queue: Final = queue

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - at once, whatever the time
        self.is_over = True
        self._queue.wake()
