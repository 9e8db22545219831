"""Delivery of a queue's waiting entries to its consumers: which one gets what, and when.

In the usual case the first entry goes to the next consumer with room. Filters, message groups, and
entries that a consumer has refused make it search further; a browser gets copies.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.message import NEVER
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.groups import Group, Groups
from broker.routing.entries.participants import Consumer, Wakeable
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.dispatch import DELIVERED_AT_ONCE, DispatchPause
from broker.routing.queues.queue_consumers import QueueConsumers
from broker.routing.queues.queue_persistence import QueuePersistence
from broker.routing.queues.queue_state import QueueState
from broker.routing.queues.scan_positions import ScanPositions
from broker.routing.queues.selection import Selection
from storage.batch import Batch


@final
class QueueDelivery:
    """The delivery of one queue. Groups, filters and scan positions are made when first needed."""

    def __init__(
        self,
        queue: Wakeable,
        state: QueueState,
        *,
        consumers: QueueConsumers,
        persistence: QueuePersistence,
    ) -> None:
        self._queue: Wakeable | None = queue
        self._state: Final = state
        self._backlogs: Final = state.backlogs
        self._consumers: Final = consumers
        self._persistence: Final = persistence
        self._groups: Groups | None = None
        self._scan_positions: ScanPositions | None = None
        self._selection: Selection | None = None
        self._pause: DispatchPause | None = None
        self._judging_pause: DispatchPause | None = None
        self._left: i64 = 0
        # the last dispatch met entries that have to be loaded
        self._awaits_load = False

    # -- consumers

    def attach(self, consumer: Consumer) -> None:
        """Attach `consumer`, which begins at the start of the queue."""
        self._consumers.attach(consumer)
        self.start_over(consumer)
        if self._consumers.exclusivity is not None:
            self.choose()

    def start_over(self, consumer: Consumer) -> None:
        """Let `consumer`, perhaps with another filter, begin at the start of the queue."""
        consumer.passed = None
        consumer.rescan = None
        if consumer.filter is not None:
            self._judging().join(consumer)
            self._positions().any = True

    def attach_browser(self, consumer: Consumer) -> None:
        """Attach `consumer` to get copies of waiting entries and acquire none."""
        if consumer.filter is not None:
            self._judging()
        self._consumers.attach_browser(consumer)

    def detach(self, consumer: Consumer) -> None:
        """Detach `consumer`; others get its groups once it holds none of their messages."""
        if self._consumers.detach(consumer):
            self.free_groups(consumer)
            if self._consumers.exclusivity is not None:
                self.choose()

    def choose(self) -> None:
        """Choose the consumer that is served alone; the others stand by until it detaches."""
        state = self._state
        if self._consumers.choose(state.acquired) and self._queue is not None:
            self._queue.wake()
        state.attends = state.attends or self._consumers.is_successor_awaited()

    def _judging(self) -> Selection:
        if self._selection is None:
            self._selection = Selection(self._state.context.judging)
        return self._selection

    def _positions(self) -> ScanPositions:
        if self._scan_positions is None:
            self._scan_positions = ScanPositions(self._consumers.attached)
        return self._scan_positions

    # -- entries

    def join_group(self, entry: QueueEntry) -> None:
        """Add `entry`, which waits from now on, to the group that its message names."""
        groups = self._groups
        if groups is None:
            assert self._queue is not None
            groups = self._groups = Groups(self._queue, self._positions())
        groups.join(entry, entry.message.group)

    def free_groups(self, consumer: Consumer) -> None:
        """Let others have the groups of `consumer`, once it holds none of their messages."""
        if self._groups is not None:
            self._groups.left(consumer.number)

    def drop_from_groups(self, page_groups: list[Group]) -> None:
        """Note that messages of these groups that were not in memory have left the queue."""
        if self._groups is not None:
            for group in page_groups:
                self._groups.dropped(group)

    def acquire(self, entry: QueueEntry, consumer: Consumer) -> None:
        """Let `consumer` hold `entry`."""
        if entry.group is not None and self._groups is not None:
            self._groups.taken(entry, entry.group, consumer.number)
        self._state.acquires(entry, consumer)

    def hand_over(self, entry: QueueEntry, consumer: Consumer) -> None:
        """Let `consumer` hold the acquired `entry`, in place of a consumer that has left."""
        entry.consumer = consumer
        if entry.group is not None and self._groups is not None:
            self._groups.adopted(entry.group, consumer.number)

    def returned(self, entry: QueueEntry, *, refused: bool) -> None:
        """Note that `entry` is no longer acquired and waits again, perhaps after a pause.

        `refused`: the consumer that had it will not get it again.
        """
        if entry.group is not None and self._groups is not None:
            self._groups.back(entry, entry.group, refused=refused)
        entry.consumer = None
        entry.sent_to = None

    def look_again(self, entry: QueueEntry) -> None:
        """Let consumers look at `entry`, which is back at its place, even if they passed it."""
        if entry.group is not None:
            entry.group.pass_over(entry)
        if self._scan_positions is not None and self._scan_positions.any:
            self._scan_positions.look_again(entry, self._state.context.clock.now_ms())

    def look_at_paused(self) -> None:
        """Let consumers look again at entries that they might not have for some time."""
        if self._scan_positions is not None and self._scan_positions.any:
            self._scan_positions.start_anew()

    def leave_group(self, entry: QueueEntry) -> None:
        """Note that `entry` has left for good, or is held back so that no consumer gets it."""
        if entry.group is not None and self._groups is not None:
            self._groups.gone(entry, entry.group)

    # -- delivery

    def deliver(self, now_ms: i64, batch: Batch) -> None:
        """Deliver waiting entries to consumers with room; then serve browsers, and end drains."""
        state, consumers = self._state, self._consumers
        self._awaits_load = False
        if (selection := self._selection) is not None:
            paused = self._judging_pause
            selection.begin(consumers.round.size(), rests=paused is not None and not paused.is_over)
        passed_over: list[Consumer] | None = None
        holds = state.holds_deliveries()
        rests = holds or self._rests()
        self._left = i64(0) if rests else DELIVERED_AT_ONCE
        first_of: i64 = 0
        while state.backlogs.waiting > 0 and self._left > 0 and not state.holds_too_much():
            consumer = consumers.round.next()
            if consumer is None:
                break
            if self._awaits_load and consumer.priority < first_of:
                break  # what has to be loaded shows what one of higher priority gets
            if not self._serve(consumer, now_ms, batch):
                first_of = consumer.priority
                consumers.round.leave(consumer)
                if passed_over is None:
                    passed_over = []
                passed_over.append(consumer)
        if passed_over is not None:
            if selection is not None:
                passed_over = selection.in_turn(passed_over)
            for consumer in passed_over:
                consumers.round.join(consumer)
        if self._left == 0 and state.backlogs.waiting > 0 and not rests:
            self._pause = self._begin_pause(now_ms)
        browsers = consumers.browsers
        if browsers is not None and browsers.any_ready and not holds:
            browsers.show(state.backlogs, state.context.clock.wall_ms(), selection)
        if consumers.any_drains():
            self._end_drains()
        if selection is not None:
            self._end_judging(selection, now_ms)

    def _end_judging(self, selection: Selection, now_ms: i64) -> None:
        """End the evaluations of a dispatch; judge on in the next turn if it was cut.

        A queue that was put off is woken before those that were not: so all have their turns.
        """
        selection.end()
        paused = self._judging_pause
        if selection.is_cut and (paused is None or paused.is_over):
            at_ms = now_ms - 1 if selection.is_put_off else now_ms
            self._judging_pause = self._begin_pause(at_ms)

    def _rests(self) -> bool:
        """Return whether DELIVERED_AT_ONCE was reached in this turn of the event loop."""
        return self._pause is not None and not self._pause.is_over

    def _begin_pause(self, now_ms: i64) -> DispatchPause | None:
        """Have the queue dispatched again in the next turn of the event loop."""
        if self._queue is None:
            return None
        pause = DispatchPause(self._queue)
        self._state.context.timer_queue.at(now_ms, pause)
        return pause

    def _serve(self, consumer: Consumer, now_ms: i64, batch: Batch) -> bool:
        """Deliver one entry, or as many as there is room for if no other consumer has any.

        False if `consumer` may take no waiting entry now.
        """
        alone = self._consumers.round.size() == 1
        while True:
            entry = self._take(consumer, now_ms, batch)
            if entry is None:
                return False
            self.acquire(entry, consumer)
            if self._state.observer is not None:
                self._state.observer.delivered(entry, batch)
            consumer.deliver(entry)
            self._left -= 1
            if not alone or self._backlogs.waiting == 0 or self._left == 0:
                return True
            if not consumer.has_room():
                return True

    def _take(self, consumer: Consumer, now_ms: i64, batch: Batch) -> QueueEntry | None:
        """Take the first waiting entry that may go to `consumer`; move or discard expired ones."""
        priority = self._backlogs.top
        while priority >= 0:
            backlog = self._backlogs.by_priority[priority]
            if backlog is None or backlog.waiting == 0:
                if priority == self._backlogs.top and priority > 0:
                    self._backlogs.top -= 1
                priority -= 1
                continue
            entry = backlog.first()
            is_first = True
            if (
                entry is None
                or consumer.filter is not None
                or (entry.history is not None and not entry.may_go_to(consumer.number, now_ms))
                or entry.group is not None
            ):
                entry = self._first_for(consumer, backlog, priority, now_ms=now_ms)
                is_first = False
                if entry is None and self._has_to_wait(consumer, backlog):
                    return None
                if entry is None:
                    priority -= 1
                    continue
            if entry.stored_number != NOT_STORED and not self._persistence.admit(
                entry, batch, is_leased=consumer.leases
            ):
                return None
            if entry.message.expires_at_ms != NEVER and self._state.expire(entry, backlog, batch):
                if self._state.holds_too_much():
                    return None
                continue
            if is_first:
                self._backlogs.remove_first(backlog)
            else:
                self._backlogs.remove(entry, backlog)
            return entry
        return None

    def _first_for(
        self, consumer: Consumer, backlog: Backlog, priority: i64, *, now_ms: i64
    ) -> QueueEntry | None:
        """Return the first entry that `consumer` may take, which need not be the first of all.

        None if there is none, or none that is known yet.
        """
        selection = self._selection
        if consumer.filter is not None and selection is not None:
            return selection.first_for(consumer, backlog, priority, now_ms=now_ms)
        return self._positions().first_for(consumer, backlog, priority, now_ms=now_ms)

    def _has_to_wait(self, consumer: Consumer, backlog: Backlog) -> bool:
        """Return whether entries have to be loaded or judged before `consumer` gets one."""
        if backlog.is_blocked:
            self._awaits_load = True
            return True
        selection = self._selection
        return consumer.filter is not None and selection is not None and selection.stopped

    # -- drains

    def _end_drains(self) -> None:
        """Tell the consumers that drain the queue if it has nothing left for them (core 2.6.7)."""
        consumers = self._consumers
        for consumer in consumers.take_draining():
            if self._has_served(consumer):
                consumer.nothing_waits()
            else:
                consumers.go_on_draining(consumer)

    def _has_served(self, consumer: Consumer) -> bool:
        """Return whether `consumer` has got every message that is there for it.

        A consumer with room left has, unless its filter has not been evaluated on all entries.
        Entries that have to be loaded, or that wait only for a commit or for the next turn of the
        event loop, may be for it.
        """
        state, consumers, selection = self._state, self._consumers, self._selection
        waiting = state.backlogs.waiting
        if state.holds_deliveries():
            return True
        if waiting > 0 and (self._persistence.is_closed() or self._rests()):
            return False
        browsers = consumers.browsers
        if browsers is not None and browsers.has(consumer):
            wanted = None if consumer.filter is None else selection
            return not browsers.find_more(consumer, state.backlogs, wanted)
        if state.holds_too_much():
            return True
        if consumer.filter is None or selection is None:
            return not self._awaits_load and (consumer.has_room() or waiting == 0)
        if consumers.shuts_out(consumer):
            return True
        return not selection.has_any(consumer, state.backlogs, state.context.clock.now_ms())

    def close(self) -> None:
        """Forget the queue, which was deleted, and notify its consumers."""
        self._queue = None
        self._consumers.node_deleted()
        if self._groups is not None:
            self._groups.clear()
