"""One bridge: attempts, each with a connection, and the pauses between them.

Nothing is lost or there twice, because each step can be repeated: a batch of the lease has the same
messages until it is settled; the other broker stages them unseen, and commits each batch number
once; a repeated COMMIT has no effect, and the bridge settles after it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from broker.bridge.backoff import Backoff
from broker.bridge.connection import BridgeConnection, connected
from broker.bridge.failure import BridgeError, PausedError, TargetFullError, TooLargeError
from broker.bridge.leased_source import LeasedSource
from broker.bridge.moving import Moving
from broker.bridge.moving_batch import BatchTerms, MovingBatch
from broker.bridge.remote_sink import RemoteSink, is_of_this_kind
from broker.bridge_settings import BridgeSettings
from broker.links.bridge_status import (
    AT_LEAST_ONCE,
    BLOCKED,
    CONNECTING,
    EXACTLY_ONCE,
    PAUSED,
    RUNNING,
    WAITING,
    BridgeControl,
    BridgeStatus,
)
from broker.links.container import Container
from broker.log_events import (
    BRIDGE_CONNECTED,
    BRIDGE_LEFT_OUT,
    BRIDGE_PAUSED,
    BRIDGE_RENEWED,
    BRIDGE_WAITS,
    LogEvent,
)
from broker.routing.batches.lease import BatchLease
from broker.routing.entries.bridge_marks import BridgeMark
from broker.routing.entries.entry import QueueEntry

PRODUCT: Final = "product"

LOOK_S: Final = 1.0
"""Seconds between two looks at a bridge that waits for the other broker, or for messages."""

LEFT_OUT_S: Final = 10.0
"""Minimum seconds between two lines of the log about messages that a bridge did not pass on."""


class Bridge(BridgeControl):
    """A bridge of `settings`; `run` moves messages until it is cancelled.

    `unsendable` has leased messages that cannot be sent, with the reason; `wake` has the bridge
    look what there is to do.
    """

    def __init__(self, settings: BridgeSettings, container: Container) -> None:
        self.settings: Final = settings
        self.status: Final = BridgeStatus(
            name=settings.name,
            source=settings.source,
            target=settings.to,
            url=settings.url,
            keep=settings.keep,
            control=self,
        )
        self.container: Final = container
        self.unsendable: Final[dict[QueueEntry, str]] = {}
        self._wake: Final = asyncio.Event()
        self.wake: Final = self._wake.set
        self._controlled: Final = asyncio.Event()
        self._beginning: BridgeConnection | None = None
        self.source: Final = LeasedSource(settings, container, self._wake.set)
        self._backoff: Final = Backoff()
        self._is_paused = False
        self._told = ""
        self._begins_anew = False
        self._left_out = 0
        self._left_out_why = ""
        self._left_out_at_ms = 0

    # -- control

    def pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._notice(BRIDGE_PAUSED, "is paused, until `jms-broker bridge resume`")
            if self._beginning is not None:
                self._beginning.stop_waiting()
        self._controlled.set()
        self._wake.set()

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._notice(BRIDGE_PAUSED, "goes on")
        self._backoff.succeeded()
        self._controlled.set()
        self._wake.set()

    # -- attempts

    async def run(self) -> None:
        """Move messages; try again after each failure."""
        while True:
            if self._is_paused:
                self.source.free_groups()
                self._enter(PAUSED)
                await self._woken(None)
                continue
            try:
                await self._attempt()
            except PausedError:
                continue
            except BridgeError as error:
                if isinstance(error, TargetFullError) and self.source.take_less():
                    self._begins_anew = True
                if isinstance(error, TooLargeError) and not error.is_known:
                    self.source.take_one()
                    self._begins_anew = self.status.delivery == EXACTLY_ONCE
                self._failed(str(error))
                await self._rest()
            except Exception as error:  # noqa: BLE001 - a bug may end an attempt, not the bridge
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"bridge {self.status.name}", "exception": error}
                )
                self._failed(f"an internal error: {error!r}"[:500])
                await self._rest()

    async def _rest(self) -> None:
        """Wait for the next attempt; only `resume` and `pause` end the wait.

        Not `_wake`: the end of the last connection is reported during the wait.
        """
        self._controlled.clear()
        if self._is_paused:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._backoff.pause_s()):
                await self._controlled.wait()

    async def _woken(self, timeout_s: float | None) -> bool:
        """Wait until there is something to do; return False if that takes too long."""
        is_woken = False
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
                is_woken = True
        self._wake.clear()
        return is_woken

    def _failed(self, reason: str) -> None:
        self.status.failures += 1
        self.status.held = self.source.held()
        self._enter(WAITING, error=reason)
        if reason != self._told:  # the same reason each time is one line
            self._told = reason
            self._notice(BRIDGE_WAITS, f"waits, and tries again: {reason}")

    async def _attempt(self) -> None:
        """Connect, and move messages until the bridge is paused; BridgeError if that fails."""
        self._enter(CONNECTING)
        await self.source.open()
        self.status.lease = self.source.name
        connection = await connected(
            self.settings, f"jms-broker-{self.source.name}", self._wake.set
        )
        try:
            await self._move_over(connection)
        finally:
            self.source.stop_asking()
            await connection.close()

    async def _move_over(self, connection: BridgeConnection) -> None:
        product = str(self.container.product[PRODUCT])
        sink: RemoteSink | None = None
        if is_of_this_kind(connection.engine, product):
            self._beginning = connection
            try:
                sink = await self._resumed(connection)
            finally:
                self._beginning = None
        else:
            self.source.release_others()
            self.source.take_known()
        self.status.delivery = AT_LEAST_ONCE if sink is None else EXACTLY_ONCE
        self.status.connects += 1
        self._told = ""
        self._notice(BRIDGE_CONNECTED, f"moves messages to {self.settings.url}")
        self._enter(RUNNING)
        moving = Moving(self, connection, sink)
        while not (self._is_paused and moving.is_idle()):
            self._wake.clear()
            if self.takes_no_more():
                self.source.stop_asking()
            is_busy = moving.step()
            connection.flush()
            moving.check_end()
            self.status.held = self.source.held()
            if is_busy:
                await asyncio.sleep(0)
            elif not await self._woken(LOOK_S):
                if self._is_paused:
                    return  # the rest stays leased: the other broker does not take it now
                self._enter(BLOCKED if moving.is_blocked() else RUNNING)

    async def _resumed(self, connection: BridgeConnection) -> RemoteSink:
        """Settle what the other broker has committed, and have it drop what is left of attempts."""
        source = self.source
        sink = RemoteSink(connection, source.name)
        await sink.attached()
        for lease in source.others():
            await self._end_lease(sink, lease)
        sink.query = source.name
        committed = await sink.last_committed(source.known())
        self._settle_committed(committed)
        if committed > source.last_number():
            # this broker's store is older than what it has sent: new batches would have numbers
            # that the other broker has committed, and it would drop their messages
            self._notice(
                BRIDGE_RENEWED,
                f"begins a new sequence: the other broker has batch {committed}, and this one is at"
                f" {source.last_number()}",
            )
            await self._begin_anew(sink)
        elif self._begins_anew:
            # the leased batches never fit into the target, and none of them is there
            await source.saved()
            await sink.forget()
            await self._begin_anew(sink)
        return sink

    async def _begin_anew(self, sink: RemoteSink) -> None:
        """Return what is leased, and begin another lease, with a sink of its own."""
        self._begins_anew = False
        self.unsendable.clear()  # they return to the queue with the others, and are found again
        self.source.give_up()
        await self.source.open()
        self.status.lease = sink.query = self.source.name

    def _settle_committed(self, committed: int) -> None:
        """Settle the batches that the other broker had committed when the last attempt ended.

        The others are sent again.
        """
        source = self.source
        source.take_known()
        terms = self.terms(is_sink=True)
        for batch in [each for each in source.batches if each.number <= committed]:
            batch.count_committed(terms)
            source.settle(batch)
            self.has_moved(batch)

    def terms(self, *, is_sink: bool) -> BatchTerms:
        """Return the terms of sending, for a sink or for a broker of another kind."""
        return BatchTerms(
            name=self.settings.name,
            clock=self.container.clock,
            mark=BridgeMark(self.settings.name, tells_id=not is_sink),
            id_prefix=f"{self.source.name}/",
            drops_looped=self.source.is_own,
            unsendable=self.unsendable,
        )

    async def _end_lease(self, sink: RemoteSink, lease: BatchLease) -> None:
        """End a lease of the bridge on another queue: the settings named that one before.

        What the other broker has of its messages is settled; the others return to that queue.
        """
        sink.query = lease.name
        committed = await sink.last_committed(sorted(lease.batches))
        self.source.end(lease, committed)
        await self.source.saved()  # with the sink forgotten, these batches would be sent again
        await sink.forget()

    # -- reports

    def takes_no_more(self) -> bool:
        """Return whether no further messages are to be leased."""
        return self._is_paused or self.container.drain.keeps_clients_out()

    def has_moved(self, batch: MovingBatch) -> None:
        """Count `batch`, which is at the other broker and settled here."""
        status = self.status
        status.moved += batch.sent - batch.not_taken
        status.moved_bytes += batch.sent_bytes
        status.batches += 1
        status.looped += int(batch.looped)
        self._count_left_out(int(batch.looped), "they had passed it before")
        self._backoff.succeeded()
        self._enter(RUNNING)

    def _enter(self, state: str, *, error: str = "") -> None:
        self.status.enter(state, int(self.container.clock.wall_ms()), error=error)

    def _notice(self, event: LogEvent, text: str) -> None:
        self.container.watcher.noticed(event.notice(f"bridge {self.status.name} {text}"))

    def leave_out(self, batch: MovingBatch) -> None:
        """Make dead letters of what the other broker refuses, before the rest is committed.

        So the lease has no message of a committed batch that the other broker does not have.
        """
        refused = self.source.leave_out(batch)
        for entry, _ in refused:
            self.unsendable.pop(entry, None)
        self.status.refused += len(refused)
        self._count_left_out(len(refused), refused[0][1])

    def _count_left_out(self, count: int, why: str) -> None:
        """Report, now and then, how many messages were not passed on."""
        self._left_out += count
        if count > 0:
            self._left_out_why = why
        now_ms = int(self.container.clock.now_ms())
        if self._left_out and now_ms - self._left_out_at_ms >= LEFT_OUT_S * 1000:
            self._left_out_at_ms = now_ms
            self._notice(
                BRIDGE_LEFT_OUT, f"did not pass on {self._left_out} messages: {self._left_out_why}"
            )
            self._left_out = 0
