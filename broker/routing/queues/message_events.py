"""The event log: what has happened to each message, one row for each event.

The queues of addresses with `event_log = true` have this observer. A row is noted in the batch of
the change that it records, so the store has both or neither; no client waits for a row. The rows
of a message that was added and removed in one batch are kept, though the message is not written.
(`broker/journal.py` is the group commit, not an event log.)
"""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.context import RoutingContext
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import NOBODY, QueueObserver
from broker.routing.entries.record_mapping import stored_position
from broker.routing.entries.redelivery import Disposal
from broker.routing.selector.facts import Facts
from broker.routing.timer_queue import TimerCallback
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
"""In place of DELIVERED if a lease acquires the message."""
SETTLED: Final = "settled"
"""In place of ACCEPTED if a lease had the message."""

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
"""Kind and reason of the event for each disposal that ends a delivery."""

LEASE_ENDS: Final[dict[Disposal, tuple[str, str]]] = {
    Disposal.REMOVE: (SETTLED, ""),
    Disposal.COUNT: (MODIFIED, "the lease ran out"),
}
"""Kind and reason that replace those of SETTLEMENTS if a lease had the message."""

SOURCE: Final = "queue"
NAMELESS_SOURCE: Final = "subscriber"
"""First word of the `session` of an ENQUEUED or SCHEDULED row, which no consumer has yet.

`queue/7` is the queue that numbered the message, which has no second in its broker process; it may
be that of a subscription. `subscriber/7` is one of a topic's subscribers without a name, which all
have the same address and the same empty `subscription`. Audits need to tell them apart.
"""

UNSTORED: Final = "not stored"
"""Reason in the first row of a message that is in memory alone.

It may be gone without another row, if its broker has ended.
"""

HURRIED: Final = "made ready by an operator"
"""Reason of ENQUEUED, behind UNSTORED if that applies, too, before the delivery time."""

TEXT_MAX: Final = 255
"""Maximum characters of each text in a row: names, ids and reasons come from peers."""

TRIM_EVERY: Final[i64] = 1000
TRIM_STEP: Final[i64] = 4000
"""With every TRIM_EVERY new rows, up to TRIM_STEP rows beyond the limits are removed."""

TRIM_PERIOD_MS: Final[i64] = 10_000
"""Interval in ms at which rows are trimmed even if none are added."""


@final
class EventLogLimits:
    """Limits of the event log: rows kept, and their age in ms; 0 is no limit."""

    def __init__(self, *, max_events: i64 = 0, max_age_ms: i64 = 0) -> None:
        self.max_events: Final[i64] = max_events
        self.max_age_ms: Final[i64] = max_age_ms


@final
class MessageEventLog(QueueObserver):
    """The observer that writes the rows of one broker, and passes each event on to `others`.

    `others` is the observer that the queues would have without this one. `txn` is the id of the
    transaction that is being committed or rolled back right now, empty if none is; while
    `is_hurried`, messages are enqueued before their time. `boot` names this process, whose clock
    gives all times in its rows. `is_due`: it is time to `trim`.
    """

    def __init__(
        self,
        context: RoutingContext,
        others: QueueObserver | None,
        *,
        limits: EventLogLimits,
    ) -> None:
        self.txn = b""
        self.boot: Final = token_hex(8)
        self.is_due = False
        self.is_hurried = False
        self._clock: Final = context.clock
        self._others: Final = others
        self._reminder: Final = Reminder(self, context)
        self._max_events: Final[i64] = limits.max_events
        self._max_age_ms: Final[i64] = limits.max_age_ms
        self._last_id: i64 = 0
        self._sources: i64 = 0

    def number_from(self, first: i64) -> None:
        """Give no id below `first`: the store has used those."""
        self._last_id = first - 1
        if first > 1:
            self._reminder.arm()  # there may be rows, which grow old

    # -- what happens

    def admitted(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        reason = UNSTORED if entry.stored_number == NOT_STORED else ""
        if self.is_hurried:
            reason = f"{reason}, {HURRIED}" if reason else HURRIED
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
        kind, reason = settlement_of(entry, disposal, cause)
        self._note(entry, kind, batch, reason=reason)
        if self._others is not None:
            self._others.settled(entry, disposal, batch, cause=cause)

    def departed(self, entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
        self._note(entry, kind, batch, reason=reason)
        if self._others is not None:
            self._others.departed(entry, kind, batch, reason=reason)

    def dropped(self, queue: Queue, messages: i64, batch: Batch, *, why: str) -> None:
        """Note one row for all `messages`: a queue may hold more than a commit should have rows."""
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

    def _source_of(self, queue: Queue) -> str:
        """Return the name of `queue` in its ENQUEUED and SCHEDULED rows."""
        state = queue.state
        if not state.event_source:
            self._sources += 1
            is_nameless = queue.is_subscription and not queue.subscription
            word = NAMELESS_SOURCE if is_nameless else SOURCE
            state.event_source = f"{word}/{self._sources}"
        return state.event_source

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
        session = ""
        message_id = ""
        position: i64 = -1
        count: i64 = 0
        if entry is not None:
            consumer = entry.consumer
            if consumer is not None:
                label = consumer.label()
                session = label.session
            elif kind is ENQUEUED or kind is SCHEDULED:
                session = self._source_of(queue)
            message_id = message_id_of(entry)
            position = stored_position(entry)
            count = entry.delivery_count
        return (
            int(self._last_id),
            int(self._clock.wall_us()),
            kind,
            "",
            queue.address,
            shown(queue.subscription),
            message_id,
            int(position),
            shown(label.container_id),
            shown(label.link),
            session,
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
        """Have up to TRIM_STEP rows removed that exceed the limits, the oldest first."""
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
    """Timer that makes the event log due every TRIM_PERIOD_MS, from the first row on."""

    def __init__(self, event_log: MessageEventLog, context: RoutingContext) -> None:
        self._event_log: Final = event_log
        self._context: Final = context
        self._is_armed = False

    def arm(self) -> None:
        """Start the timer, unless it runs already."""
        if not self._is_armed:
            self._is_armed = True
            self._context.call_after(TRIM_PERIOD_MS, self)

    def due(self, now_ms: i64) -> None:
        self._event_log.is_due = True
        self._context.timer_queue.at(now_ms + TRIM_PERIOD_MS, self)


def is_leased(entry: QueueEntry) -> bool:
    """Return whether a lease has acquired `entry`."""
    consumer = entry.consumer
    return consumer is not None and consumer.leases


def settlement_of(entry: QueueEntry, disposal: Disposal, cause: Cause | None) -> tuple[str, str]:
    """Return kind and reason of the event with which a delivery of `entry` ends."""
    kind, reason = SETTLEMENTS[disposal]
    if cause is not None and kind == REJECTED:
        return kind, reason_of(cause)
    if is_leased(entry):
        return LEASE_ENDS.get(disposal, (kind, reason))
    return kind, reason


def moved_to(target: Queue | None, cause: str = "") -> str:
    """Return the reason of a row about a message that leaves for `target`, None for no queue.

    It begins with `cause`. A queue with an event log has the next row, about the same message.
    """
    if target is None:
        return cause
    place = f"to queue {target.address}"
    if not target.policy.event_log:
        place += ", which has no event log"
    return f"{cause}, {place}" if cause else place


def depart(entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
    """Report to its queue's observer, if any, that `entry` leaves the queue by event `kind`."""
    observer = entry.queue.state.observer
    if observer is not None:
        observer.departed(entry, kind, batch, reason=reason)


def message_id_of(entry: QueueEntry) -> str:
    """Return the message-id as JMS clients see it; empty if there is none."""
    found = Facts(entry.message).message_id()
    return shown(found) if isinstance(found, str) else ""


def reason_of(cause: Cause) -> str:
    """Return what the consumer said when it rejected the message; empty if it said nothing."""
    if cause.condition and cause.description:
        return f"{cause.condition}: {cause.description}"
    return cause.condition or cause.description


def shown(text: str) -> str:
    """Return `text` as a row may have it: up to TEXT_MAX characters, without NUL.

    Not all stores accept NUL; it is replaced by U+FFFD.
    """
    if len(text) > TEXT_MAX:
        text = text[:TEXT_MAX]
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text
