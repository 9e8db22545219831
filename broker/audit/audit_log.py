"""The audit of a broker that is on: gathers records, and has them written beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from broker.audit.audit import Audit
from broker.audit.record import FAILED, AuditEvent, ChainLink, body_of, time_text
from broker.audit.repeats import WINDOW_S, Repeats
from broker.audit.writer import AuditWriter, PendingRecord

GATHER_S: Final = 0.2
"""Seconds for which records are gathered, which are then written and synchronized together."""

RETRY_S: Final = 5.0
"""Seconds after which records that could not be written are tried again."""

TOLD_AGAIN_MS: Final = 60_000
"""Minimum milliseconds between two lines of the log that say that records cannot be written."""

HOUSEKEEPING_S: Final = 3600.0
"""Seconds between two looks for files that are too old."""

CLOSE_S: Final = 2.0
"""Seconds that a stop waits for a disk that does not answer."""

WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
"""Maximum bytes of records that wait to be written; further ones are lost, and counted."""

RECORD_BYTES: Final = 128
"""Bytes of a waiting record besides its text."""

LOST: Final = "audit.lost"


class AuditLog(Audit):
    """Writes records to the files of `writer`. `tell` logs a line for the operator.

    Nothing that goes wrong with the files stops the broker: records wait in memory, up to
    WAITING_BYTES_MAX, then they are counted as lost, and the next record that can be written says
    how many were.
    """

    is_on = True

    def __init__(
        self, writer: AuditWriter, *, wall_ms: Callable[[], int], tell: Callable[[str], None]
    ) -> None:
        self.lost = 0
        self.failures = 0
        self._writer: Final = writer
        self._wall_ms: Final = wall_ms
        self._tell: Final = tell
        self._repeats: Final = Repeats()
        self._waiting: list[PendingRecord] = []
        self._bytes = 0
        self._lost_since_ms = 0
        self._lost_untold = 0
        self._told_ms = -TOLD_AGAIN_MS
        self._writing: asyncio.Future[None] | None = None
        self._timers: Final[dict[str, asyncio.TimerHandle]] = {}
        self._is_closed = False

    def folder(self) -> Path | None:
        return self._writer.folder

    # -- records

    def record(self, event: AuditEvent) -> None:
        if self._repeats.register(event):
            self._add(event)
        elif self._is_closed:
            return
        if event.repeat_key is not None:
            self._call_in(WINDOW_S, self._end_minute)

    def _add(self, event: AuditEvent) -> None:
        body = body_of(event)
        size = len(body) + RECORD_BYTES
        now_ms = self._wall_ms()
        if self._bytes + size > WAITING_BYTES_MAX or self._is_closed:
            self.lost += 1
            self._lost_untold += 1
            self._lost_since_ms = self._lost_since_ms or now_ms
            return
        self._bytes += size
        self._waiting.append(PendingRecord(now_ms, body))
        self._call_in(GATHER_S, self._write)

    def _end_minute(self) -> None:
        for event in self._repeats.collect():
            self._add(event)

    @property
    def waiting(self) -> int:
        """The number of records that are not written yet."""
        return len(self._waiting)

    def head(self) -> ChainLink | None:
        link = self._writer.link
        return link if link.seq > 0 else None

    @property
    def link(self) -> ChainLink:
        """The last record that was written."""
        return self._writer.link

    # -- timers

    def _call_in(self, seconds: float, call: Callable[[], None]) -> None:
        """Have `call` called, once, unless it already is to be called."""
        name = call.__name__
        if name in self._timers or self._is_closed:
            return

        def due() -> None:
            del self._timers[name]
            call()

        self._timers[name] = asyncio.get_running_loop().call_later(seconds, due)

    # -- the way to the disk

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, self._writer.open)
        except OSError as error:
            self._failed(error)
        self._pass_on()
        self._call_in(HOUSEKEEPING_S, self._keep_house)

    def _write(self) -> None:
        """Write in a thread what waits; afterwards what has been added meanwhile."""
        if self._writing is not None or not self._waiting:
            return
        batch = list(self._waiting)
        lost, since_ms = self._lost_untold, self._lost_since_ms
        if lost:
            batch.insert(0, PendingRecord(self._wall_ms(), _lost_body(lost, since_ms)))
        loop = asyncio.get_running_loop()
        writing = self._writing = loop.run_in_executor(None, self._writer.append, batch)
        taken = len(self._waiting)
        writing.add_done_callback(lambda done: self._written(done, taken=taken, lost=lost))

    def _written(self, done: asyncio.Future[None], *, taken: int, lost: int) -> None:
        self._writing = None
        self._pass_on()
        error = None if done.cancelled() else done.exception()
        if isinstance(error, OSError):
            self._failed(error)
            self._call_in(RETRY_S, self._write)
            return
        if error is not None:
            raise error
        for each in self._waiting[:taken]:
            self._bytes -= len(each.body) + RECORD_BYTES
        del self._waiting[:taken]
        self._lost_untold -= lost
        if not self._lost_untold:
            self._lost_since_ms = 0
        if self._waiting:
            self._call_in(GATHER_S, self._write)

    def _failed(self, error: OSError) -> None:
        """Count a failure, and log it if none was logged in the last minute."""
        self.failures += 1
        now_ms = self._wall_ms()
        if now_ms - self._told_ms >= TOLD_AGAIN_MS:
            self._told_ms = now_ms
            self._tell(
                f"audit records cannot be written: {error}; {self.waiting} wait, and {self.lost}"
                " are lost since the start"
            )

    def _pass_on(self) -> None:
        """Log what the writer has to tell."""
        told = list(self._writer.told)
        self._writer.told.clear()
        for line in told:
            self._tell(line)

    def _keep_house(self) -> None:
        self._call_in(HOUSEKEEPING_S, self._keep_house)
        if self._writing is None:
            loop = asyncio.get_running_loop()
            writing = self._writing = loop.run_in_executor(None, self._writer.keep_house)
            writing.add_done_callback(lambda done: self._written(done, taken=0, lost=0))

    # -- the end

    async def close(self) -> None:
        """Write what waits, in at most CLOSE_S seconds. Records that come later are lost."""
        self._end_minute()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._is_closed = True
        loop = asyncio.get_running_loop()
        ends = loop.time() + CLOSE_S
        for _ in range(2):  # what is being written, and what has been added since
            if self._writing is None:
                self._write()
            if self._writing is not None:
                await asyncio.wait([self._writing], timeout=max(0.0, ends - loop.time()))
        if self._waiting:
            self._tell(f"audit: {self.waiting} records were not written")
        if self._writing is None:
            self._writer.close()
            self._pass_on()


def _lost_body(lost: int, since_ms: int) -> str:
    after = {"count": lost, "since": time_text(since_ms)}
    return body_of(AuditEvent(action=LOST, result=FAILED, after=after))
