"""The event log: what has happened to each message, a row an event.

Addresses that ask for it have this witness in their queues. A row is noted in the batch of the
change that it tells of, so the store has both or neither; nobody waits for rows. Those of
messages that came and went in one batch stay. (`broker/event log.py` is the group commit.)
"""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.routing.addresses.identity import identity_of
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import NOBODY, QueueObserver
from broker.routing.entries.record_mapping import stored_position
from broker.routing.entries.redelivery import Disposal
from broker.routing.selector.facts import Facts
from broker.routing.timer_queue import TimerCallback, TimerQueue
from storage.batch import Batch
from storage.events import EventRow, Trim

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue

ENQUEUED: Final = "enqueued"
SCHEDULED: Final = "scheduled"
DELIVERED: Final = "delivered"
ACCEPTED: Final = "accepted"
RELEASED: Final = "released"
MODIFIED: Final = "modified"
REJECTED: Final = "rejected"
EXPIRED: Final = "expired"
DEAD_LETTERED: Final = "deadlettered"
MOVED: Final = "moved"
PURGED: Final = "purged"
LEASED: Final = "leased"
"""In place of delivered, where a lease takes a message."""
SETTLED: Final = "settled"
"""In place of accepted, where it was one that had it."""

KINDS: Final = (
    *(ENQUEUED, SCHEDULED, DELIVERED, ACCEPTED, RELEASED, MODIFIED, REJECTED),
    *(EXPIRED, DEAD_LETTERED, MOVED, PURGED, LEASED, SETTLED),
)

SETTLEMENTS: Final[dict[Disposal, tuple[str, str]]] = {
    Disposal.REMOVE: (ACCEPTED, ""),
    Disposal.RELEASE: (RELEASED, ""),
    Disposal.COUNT: (MODIFIED, "the delivery was lost"),
    Disposal.FAIL: (MODIFIED, "delivery-failed"),
    Disposal.ELSEWHERE: (MODIFIED, "undeliverable-here"),
    Disposal.FAIL_ELSEWHERE: (MODIFIED, "delivery-failed, undeliverable-here"),
    Disposal.DEAD_LETTER: (REJECTED, ""),
}
"""How a delivery that ends as routing says is told, and why."""

LEASE_ENDS: Final[dict[Disposal, tuple[str, str]]] = {
    Disposal.REMOVE: (SETTLED, ""),
    Disposal.COUNT: (MODIFIED, "the lease ran out"),
}
"""The same, where a lease had the message."""

UNSTORED: Final = "not stored"
"""Why a message that was enqueued may be gone without another row: its broker ended."""

TEXT_MAX: Final = 255
"""Characters of each text in a row: names, ids and reasons come from peers."""

TRIM_EVERY: Final[i64] = 1000
TRIM_STEP: Final[i64] = 4000
"""With every so many rows that come, so many at most go that are too old or too many."""

TRIM_PERIOD_MS: Final[i64] = 10_000
"""How often old rows are looked for while none come."""


@final
class EventLogLimits:
    """Limits of the event log: rows kept, and their age in ms; 0 is no limit."""

    def __init__(self, *, max_events: i64 = 0, max_age_ms: i64 = 0) -> None:
        self.max_events: Final[i64] = max_events
        self.max_age_ms: Final[i64] = max_age_ms


@final
class MessageEventLog(QueueObserver):
    """Writes the rows of one broker. `others` hears what it would without this one.

    `txn` is the transaction at whose end things are done right now. `boot` names this process,
    on whose clock all times of its rows are.
    """

    def __init__(
        self,
        clock: Clock,
        timer_queue: TimerQueue,
        others: QueueObserver | None,
        *,
        limits: EventLogLimits,
    ) -> None:
        self.txn = b""
        self.boot: Final = token_hex(8)
        self.is_due = False
        self._clock: Final = clock
        self._others: Final = others
        self._reminder: Final = Reminder(self, clock, timer_queue)
        self._max_events: Final[i64] = limits.max_events
        self._max_age_ms: Final[i64] = limits.max_age_ms
        self._last_id: i64 = 0

    def number_from(self, first: i64) -> None:
        """Give no id below `first`: the store has had those."""
        self._last_id = first - 1
        if first > 1:
            self._reminder.arm()

    # -- what happens

    def admitted(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        reason = UNSTORED if entry.stored_number == NOT_STORED else ""
        if deliver_at_ms > 0:
            self._note(entry, SCHEDULED, batch, reason=reason, deliver_at_ms=deliver_at_ms)
        else:
            self._note(entry, ENQUEUED, batch, reason=reason)
        if self._others is not None:
            self._others.admitted(entry, deliver_at_ms, batch)

    def delivered(self, entry: QueueEntry, batch: Batch) -> None:
        self._note(entry, LEASED if is_leased(entry) else DELIVERED, batch)
        if self._others is not None:
            self._others.delivered(entry, batch)

    def settled(
        self, entry: QueueEntry, disposal: Disposal, batch: Batch, *, cause: Cause | None = None
    ) -> None:
        kind, reason = SETTLEMENTS[disposal]
        if cause is not None and kind == REJECTED:
            reason = reason_of(cause)
        elif is_leased(entry):
            kind, reason = LEASE_ENDS.get(disposal, (kind, reason))
        self._note(entry, kind, batch, reason=reason)
        if self._others is not None:
            self._others.settled(entry, disposal, batch, cause=cause)

    def departed(self, entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
        self._note(entry, kind, batch, reason=reason)
        if self._others is not None:
            self._others.departed(entry, kind, batch, reason=reason)

    def dropped(self, queue: Queue, messages: i64, batch: Batch, *, why: str) -> None:
        """One row for all of them: a queue may hold more than a commit should."""
        if messages > 0:
            row = self._row(queue, PURGED, reason=f"{messages} messages, {why}")
            self._add(row, batch)
        if self._others is not None:
            self._others.dropped(queue, messages, batch, why=why)

    # -- rows

    def _note(
        self,
        entry: QueueEntry,
        kind: str,
        batch: Batch,
        *,
        reason: str = "",
        deliver_at_ms: i64 = 0,
    ) -> None:
        row = self._row(entry.queue, kind, entry=entry, reason=reason, deliver_at_ms=deliver_at_ms)
        self._add(row, batch)

    def _row(
        self,
        queue: Queue,
        kind: str,
        *,
        entry: QueueEntry | None = None,
        reason: str = "",
        deliver_at_ms: i64 = 0,
    ) -> EventRow:
        self._last_id += 1
        label = NOBODY
        message_id = ""
        position: i64 = -1
        count: i64 = 0
        if entry is not None:
            consumer = entry.consumer
            if consumer is not None:
                label = consumer.label()
            message_id = message_id_of(entry)
            position = stored_position(entry)
            count = entry.delivery_count
        return (
            int(self._last_id),
            int(self._clock.wall_us()),
            kind,
            "",
            queue.address,
            subscription_of(queue),
            message_id,
            int(position),
            shown(label.container_id),
            shown(label.link),
            label.session,
            int(count),
            int(deliver_at_ms) * 1000,
            self.txn.hex(),
            shown(reason),
            self.boot,
        )

    def _add(self, row: EventRow, batch: Batch) -> None:
        batch.note_event(row)
        self._reminder.arm()
        if self._last_id % TRIM_EVERY == 0:
            self.trim(batch)

    # -- what is kept

    def trim(self, batch: Batch) -> None:
        """Have some of the rows removed that are too old, or too many."""
        self.is_due = False
        if self._max_events == 0 and self._max_age_ms == 0:
            return
        before_us: i64 = 0
        floor: i64 = 0
        if self._max_age_ms > 0:
            before_us = self._clock.wall_us() - self._max_age_ms * 1000
        if self._max_events > 0:
            floor = max(0, self._last_id - self._max_events + 1)
        batch.trim_events(Trim(before_us=before_us, floor=floor, step=TRIM_STEP))


@final
class Reminder(TimerCallback):
    """Makes a ledger due every TRIM_PERIOD_MS, from the first row on."""

    def __init__(self, event_log: MessageEventLog, clock: Clock, timer_queue: TimerQueue) -> None:
        self._event_log: Final = event_log
        self._clock: Final = clock
        self._timer_queue: Final = timer_queue
        self._is_armed = False

    def arm(self) -> None:
        """See to it that it comes."""
        if not self._is_armed:
            self._is_armed = True
            self._timer_queue.at(self._clock.now_ms() + TRIM_PERIOD_MS, self)

    def due(self, now_ms: i64) -> None:
        self._event_log.is_due = True
        self._timer_queue.at(now_ms + TRIM_PERIOD_MS, self)


def is_leased(entry: QueueEntry) -> bool:
    """Whether it is a lease that has `entry`."""
    consumer = entry.consumer
    return consumer is not None and consumer.leases


def depart(entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
    """Let whoever witnesses the queue of `entry` know how it goes."""
    observer = entry.queue.observer
    if observer is not None:
        observer.departed(entry, kind, batch, reason=reason)


def subscription_of(queue: Queue) -> str:
    """By what name an operator knows the subscription that `queue` is; empty where it has none."""
    if not queue.is_subscription:
        return ""
    subscription = queue.router.subscriptions.of.get(queue)
    if subscription is None or subscription.identity is None:
        return ""
    return shown(identity_of(subscription.identity))


def message_id_of(entry: QueueEntry) -> str:
    """The message-id as JMS clients see it; empty where there is none."""
    found = Facts(entry.message).message_id()
    return shown(found) if isinstance(found, str) else ""


def reason_of(cause: Cause) -> str:
    """What the consumer said when it rejected a message."""
    if cause.condition and cause.description:
        return f"{cause.condition}: {cause.description}"
    return cause.condition or cause.description


def shown(text: str) -> str:
    """`text` as a row may hold it: not too long, and without NUL, which not all stores take."""
    if len(text) > TEXT_MAX:
        text = text[:TEXT_MAX]
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text
