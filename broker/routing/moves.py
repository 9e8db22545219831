"""Moves to dead-letter and expiry nodes (RCV-02), and the discarding of messages without one.

A move never fails because of the limits of its target node. If that node is missing and cannot be
created (the broker has its NODES_MAX nodes, or the address can name no queue), or the disk is
short of `disk_free_min`, the message stays in its queue, held back from delivery, and the move is
tried again every RETRY_EVERY_MS, also after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.log_events import DISCARDED, HELD_BACK, HELD_MOVED, OVER_LIMIT
from broker.message import NEVER
from broker.routing.context import RoutingContext
from broker.routing.entries.dead_letter import (
    EXPIRED,
    REJECTED_UNSAID,
    Cause,
    cause_marked,
    departed,
    marked_as_held,
    returned,
)
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.expiry import has_expired
from broker.routing.entries.record_mapping import HELD_PLACES, stored_position
from broker.routing.entries.reports import Reports
from broker.routing.errors import LimitReached, RoutingError
from broker.routing.queues import queue_limits
from broker.routing.queues.held_entries import HeldEntries
from broker.routing.queues.message_events import DEAD_LETTERED, PURGED, depart, moved_to, shown
from broker.routing.queues.message_events import EXPIRED as EXPIRED_KIND
from broker.routing.queues.node import QUEUE
from broker.routing.queues.node_context import Mover
from broker.routing.queues.queue import Queue
from broker.routing.timer_queue import TimerCallback
from storage.batch import DISCHARGE, Batch
from storage.records import StoredMessage

if TYPE_CHECKING:
    from broker.routing.router import Router

RETRY_EVERY_MS: Final[i64] = 1000
"""Interval, in ms, at which the moves of held-back messages are tried again."""

RETRIED_AT_MOST: Final[i64] = 2000
"""Maximum messages that one retry moves; sockets have their turn before the next retry."""


@final
class Moves(TimerCallback, Mover):
    """Takes messages out of their queues at the end of their delivery or of their life.

    `is_due`: it is time to try the moves of held-back messages again.
    """

    def __init__(self, router: Router, context: RoutingContext) -> None:
        self.is_due = False
        self._router: Final = router
        self._context: Final = context
        self._reports: Final = Reports(context)
        # the queues that hold back at least one message
        self._holding: Final[dict[Queue, None]] = {}

    def move(self, entry: QueueEntry, cause: Cause, batch: Batch) -> None:
        """Move `entry`, which is neither waiting nor acquired any more, because of `cause`.

        Discard it if RCV-02 says so, and hold it back in its queue if it cannot be moved.
        """
        try:
            target = self._target(entry.queue, cause, batch)
        except RoutingError as refusal:
            self._hold(entry, cause, refusal, batch=batch)
            return
        self._leave(entry, cause, target, batch=batch)

    def _target(self, queue: Queue, cause: Cause, batch: Batch) -> Queue | None:
        """Return the node for messages of `queue`, created if missing; None to discard them.

        Raise RoutingError if messages cannot be moved there now. The node is always a queue, even
        if a topic has its address.
        """
        router = self._router
        named = address_for(queue, cause)
        if not named or queue.is_temporary:
            return None
        address = router.parse(named, QUEUE)
        found = router.queues.get(address.text)
        if found is queue:
            return None
        disk_guard = router.credit_policy.disk_guard
        if disk_guard is not None and disk_guard.is_short:
            raise LimitReached("the store has no room for it (disk_free_min), or is away")
        if found is not None:
            return found
        made = router.create(address, batch)
        assert isinstance(made, Queue)
        return made

    def _leave(
        self, entry: QueueEntry, cause: Cause, target: Queue | None, *, batch: Batch
    ) -> None:
        """Take `entry` out of its queue and put it into `target`; discard it if that is None."""
        stats = self._context.stats
        entry.queue.forget(entry, batch)
        if cause is EXPIRED:
            stats.expired += 1
            depart(entry, EXPIRED_KIND, batch, reason=moved_to(target))
        else:
            depart(entry, DEAD_LETTERED, batch, reason=moved_to(target, cause.reason))
        if target is None:
            self._discard(entry, cause, batch)
            return
        self._put(entry, cause, target, batch=batch)
        if cause is not EXPIRED:
            stats.dead_lettered += 1
            stats.by.dead_lettered.add(cause.reason)

    def _put(self, entry: QueueEntry, cause: Cause, target: Queue, *, batch: Batch) -> None:
        """Put the message of `entry` into `target`, even beyond the limits of `target`."""
        message = departed(entry, cause, self._context.clock.wall_ms())
        if queue_limits.is_over(target, message):
            self._context.stats.moved_over_limit += 1
            self._reports.tell(
                OVER_LIMIT,
                f"{target.address} is beyond its max_messages or max_bytes, and takes messages"
                " that are moved there all the same: consume what it has, or raise the limit",
            )
        # a moved message is not delivered before it is durable (`queue_persistence.py`)
        scope, batch.scope = batch.scope, DISCHARGE
        target.add(message, batch)
        batch.scope = scope

    def _discard(self, entry: QueueEntry, cause: Cause, batch: Batch) -> None:
        """Count and report a message that is discarded because it has no target node.

        An expired message without a configured expiry node is not reported: it ends as its sender
        wished.
        """
        queue = entry.queue
        address = address_for(queue, cause)
        if cause is not EXPIRED:
            self._context.stats.dropped += 1
            self._context.stats.by.dropped.add(cause.reason)
            depart(entry, PURGED, batch, reason="no dead-letter node takes it")
        elif not address:
            return
        if queue.is_temporary:
            why = "messages of temporary nodes are not moved"
        elif address:
            why = "its messages are moved to itself"
        else:
            why = "dead_letter is not set for it"
        self._reports.tell(
            DISCARDED, f"a message of {name_of(queue)} was discarded ({cause.reason}): {why}"
        )

    # -- held back

    def _hold(
        self, entry: QueueEntry, cause: Cause, refusal: RoutingError, *, batch: Batch
    ) -> None:
        """Keep `entry` in its queue, where no consumer gets it. Its group continues without it."""
        queue = entry.queue
        if entry.stored_number != NOT_STORED:
            self._store_cause(entry, cause, batch)
        held = queue.hold_back(entry, cause)
        self._await(queue)
        name = name_of(queue)
        self._reports.tell(
            HELD_BACK,
            f"a message of {name} could not be moved to {address_for(queue, cause)}"
            f" ({cause.reason}): {refusal}; it stays, held back from delivery, until it can be:"
            " `jms-broker message list --held` shows such messages",
        )
        if held.is_full():
            self._reports.tell(
                HELD_BACK,
                f"{name} holds back as many messages as a queue may that cannot be moved: it"
                " delivers nothing more until they can be, or are deleted",
            )

    def _await(self, queue: Queue) -> None:
        """Retry to move the entries that `queue` holds back, of which there is one more now."""
        self._context.stats.held_back += 1
        if not self._holding:
            self._context.call_after(RETRY_EVERY_MS, self)
        self._holding[queue] = None

    def _store_cause(self, entry: QueueEntry, cause: Cause, batch: Batch) -> None:
        """Record in the store that `entry` is held back and why, for the next start.

        An expired message needs no recorded cause: its expiry says why.
        """
        batch.fall_due(entry.stored_number, HELD_PLACES + stored_position(entry))
        if cause is not EXPIRED:
            marked = marked_as_held(entry, cause, self._context.clock.wall_ms())
            if marked is not None:
                batch.rewrite(entry.stored_number, marked)

    def bring_back(self, queue: Queue, stored: StoredMessage) -> None:
        """Hold back a message that was held back before the start; its move is soon tried again."""
        entry = queue.entry_of(stored, (stored.position - HELD_PLACES) // 10)
        cause = cause_marked(entry.message)
        if cause is not None:
            entry.message = returned(entry.message)
        else:
            cause = self._cause_unmarked(entry)
        queue.bring_back_held(entry, cause)
        self._await(queue)
        self._reports.tell(
            HELD_BACK,
            f"{name_of(queue)} still holds back messages that could not be moved before the start",
        )

    def _cause_unmarked(self, entry: QueueEntry) -> Cause:
        """Return why `entry` was held back before the start, if its annotations do not say so.

        Without an expiry node, only a message that has expired by the clock counts as expired,
        and so is discarded.
        """
        expires_at_ms = entry.message.expires_at_ms
        if expires_at_ms != NEVER and entry.queue.policy.expiry:
            return EXPIRED
        return (
            EXPIRED
            if has_expired(expires_at_ms, self._context.clock.wall_ms())
            else REJECTED_UNSAID
        )

    def due(self, now_ms: i64) -> None:  # noqa: ARG002
        self.is_due = True

    def retry(self, batch: Batch) -> None:
        """Move held-back messages as far as possible by now, at most RETRIED_AT_MOST."""
        self.is_due = False
        left = RETRIED_AT_MOST
        for queue in list(self._holding):
            schedule = queue.state.schedule
            if schedule is not None:
                left -= self._retry(queue, schedule.held, left, batch=batch)
            if schedule is None or schedule.held.size() == 0:
                del self._holding[queue]
            if left <= 0:
                break
        if self._holding:
            self._context.call_after(0 if left <= 0 else RETRY_EVERY_MS, self)

    def _retry(self, queue: Queue, held: HeldEntries, at_most: i64, *, batch: Batch) -> i64:
        """Move up to `at_most` of the `held` messages of `queue`; return the number moved."""
        moved: i64 = 0
        # expired entries have one target, those of all other causes another
        for example in (REJECTED_UNSAID, EXPIRED):
            entries = held.some(at_most - moved, expired=example is EXPIRED)
            if not entries:
                continue
            try:
                target = self._target(queue, example, batch)
            except RoutingError:
                continue
            for entry, cause in entries:
                queue.let_go(entry)
                self._leave(entry, cause, target, batch=batch)
            moved += i64(len(entries))
            if target is not None:
                self._reports.tell(
                    HELD_MOVED,
                    f"messages that {name_of(queue)} held back are moved to {target.address}",
                )
        return moved


def address_for(queue: Queue, cause: Cause) -> str:
    """Return the address that messages of `queue` are moved to; empty if none is configured."""
    return queue.policy.expiry if cause is EXPIRED else queue.policy.dead_letter


def name_of(queue: Queue) -> str:
    """Return the name of `queue` in log lines: its address, or the subscription that it is."""
    subscription = shown(queue.subscription)
    return f"subscription {subscription} to {queue.address}" if subscription else queue.address
