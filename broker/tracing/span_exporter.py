"""The thread that sends spans to a collector, so that the broker's loop never waits for it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.stats import SpanTotals
    from broker.tracing.spans import Span

WAITING_MAX: Final = 2048
"""Maximum spans that wait for the thread; more are dropped, and counted."""

SENT_AT_ONCE: Final = 512
PERIOD_S: Final = 1.0
"""Seconds after which spans are sent even if they are few."""

STOP_S: Final = 3.0
"""Maximum seconds that the broker's stop waits for the last spans."""

TOLD_EVERY_S: Final = 60.0
"""Seconds between two lines of the log about spans that are lost."""


class SpanSink(Protocol):
    """The way to a collector."""

    def send(self, spans: Sequence[Span]) -> str:
        """Send spans; return why they are lost, empty if the collector has them."""

    def close(self) -> None:
        """Give up a `send` that is under way, soon."""


@final
class SpanExporter:
    """Sends spans from a thread; those that it cannot send are lost and counted."""

    def __init__(self, sink: SpanSink, totals: SpanTotals, tell: Callable[[str], None]) -> None:
        """Take what to call, in the broker's loop, with a text for the log."""
        self._sink: Final = sink
        self._totals: Final = totals
        self._tell: Final = tell
        self._waiting: Final[deque[Span]] = deque()
        self._wake: Final = threading.Event()
        self._is_stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told_at_s = -TOLD_EVERY_S
        self._thread: Final = threading.Thread(target=self._run, name="spans", daemon=True)

    def start(self) -> None:
        """Start the thread. Call it in the broker's loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def put(self, span: Span) -> None:
        """Have the thread send a span, or drop it if too many wait."""
        if len(self._waiting) >= WAITING_MAX:
            self.drop(1)
            return
        self._waiting.append(span)
        if len(self._waiting) == SENT_AT_ONCE:
            self._wake.set()

    def drop(self, count: int) -> None:
        """Count spans that the collector will not get. Call it from the broker's loop."""
        self._totals.dropped += count

    def stop(self) -> None:
        """Send what waits, and end the thread; take STOP_S at most."""
        self._is_stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
        self._sink.close()

    def _run(self) -> None:
        while not self._is_stopping or self._waiting:
            self._wake.wait(PERIOD_S)
            self._wake.clear()
            while self._waiting:
                self._send([self._waiting.popleft() for _ in range(self._count())])

    def _count(self) -> int:
        return min(SENT_AT_ONCE, len(self._waiting))

    def _send(self, spans: Sequence[Span]) -> None:
        reason = self._sink.send(spans)
        if not reason:
            self._totals.exported += len(spans)
            return
        self._totals.failed += len(spans)
        now_s = time.monotonic()
        loop = self._loop
        if loop is not None and not self._is_stopping and now_s - self._told_at_s >= TOLD_EVERY_S:
            self._told_at_s = now_s
            loop.call_soon_threadsafe(self._tell, f"{len(spans)} spans are lost: {reason}")
