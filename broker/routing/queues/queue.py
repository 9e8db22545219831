"""A queue: the order, acquisition, return and settlement of its entries.

An entry is *waiting* (in a `Backlog`), *acquired* (by one consumer), *held back* (`schedule.py`)
or gone. Nothing here awaits; changes that must be durable are noted in the batch of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import AT_ONCE, NEVER, Message
from broker.routing.addresses.policy import BLOCK, DROP_OLDEST, AddressPolicy
from broker.routing.credit.ack_latency import AckLatency
from broker.routing.credit.credit_pool import UNLIMITED, CreditPool
from broker.routing.entries import delivery_attempt, expiry, redelivery
from broker.routing.entries.dead_letter import DELIVERY_LIMIT, EXPIRED, REJECTED_UNSAID, Cause
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.groups import Groups, join_group
from broker.routing.entries.participants import Consumer
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues import durable_publish, queue_limits
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.browser import Browsers
from broker.routing.queues.commit_gate import CommitGate
from broker.routing.queues.dispatch import DELIVERED_AT_ONCE, DispatchPause, RoundRobin
from broker.routing.queues.drain import Drains
from broker.routing.queues.exclusive import Exclusivity
from broker.routing.queues.held_entries import let_go
from broker.routing.queues.node import QUEUE, Consumable
from broker.routing.queues.paging import Paged
from broker.routing.queues.scan_positions import ScanPositions
from broker.routing.queues.schedule import Schedule, held_back
from broker.routing.queues.selection import Selection, begin_selection, first_for, selection_of
from broker.routing.queues.spilling import forget_all
from broker.routing.queues.sweep import Sweep
from broker.routing.queues.waiters import attend, choose
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.router import Router
    from broker.routing.topics.topic import Topic


@final
class Queue(Consumable):
    """Messages in order of priority and arrival, each for one consumer (RCV-03).

    Clients cannot address the queue of a subscription; `topics` put messages into it.
    `stored_as` is the queue's name in the store, empty for that of a volatile subscription.
    """

    def __init__(
        self,
        *,
        address: str,
        policy: AddressPolicy,
        router: Router,
        owner: i64 = -1,
        is_subscription: bool = False,
        stored_as: str = "",
    ) -> None:
        super().__init__(
            address=address, kind=QUEUE, policy=policy, pacing_mark=router.pacing_mark, owner=owner
        )
        self.router: Final = router
        self.memory: Final = router.memory
        self.is_subscription: Final = is_subscription
        self.topics: Final[dict[Topic, None]] = {}
        self.consumers: Final[list[Consumer]] = []
        self.browsers: Final = Browsers()
        self.waiting: i64 = 0
        self.acquired: i64 = 0
        self.bytes: i64 = 0
        self.is_pending = False
        self.is_deleted = False
        self.stored_as = stored_as if is_subscription else address
        self.is_stored: Final = self.may_store and self.stored_as != ""
        self.observer: Final = router.witness_of(policy)
        self.ack_latency: Final = AckLatency(router.hold)
        self.gate: Final = CommitGate(self)
        self.backlogs: Final[list[Backlog | None]] = [None] * 10
        self.top: i64 = 0
        self.turn = RoundRobin()
        self._drains: Final = Drains()
        self.scan_positions: Final = ScanPositions()
        self.exclusivity: Final = Exclusivity(by_address=policy.exclusive)
        self.groups: Groups | None = None
        self.sweep: Final = Sweep()
        self.schedule: Schedule | None = None
        self.selection: Selection | None = None
        self._last_number: i64 = 0
        self.has_spilled = False
        self.attends = False  # consumers or producers wait (`waiters.py`)
        self.awaits_load = False  # the last dispatch met entries that have to be loaded
        self.rests = False  # DELIVERED_AT_ONCE reached in this turn (`DispatchPause`)
        self._left: i64 = 0
        self._is_limited: Final = policy.is_limited()
        self._drops_oldest: Final = self._is_limited and policy.full == DROP_OLDEST
        if self._is_limited and policy.full == BLOCK and not is_subscription:
            self.credit_pool = CreditPool(self, router)

    # -- in

    def put(self, message: Message, batch: Batch) -> None:
        self.check_room(message)
        self.publish(message, batch)

    def check_room(self, message: Message) -> None:
        """Raise QueueFull if the limits of the address leave no room for `message`."""
        if self._is_limited:
            queue_limits.check(self, message)

    def producer_window(self) -> i64:
        return self.ack_latency.producer_window.most

    def room_for_more(self) -> i64:
        return (
            UNLIMITED
            if self.credit_pool is None
            else queue_limits.room_beside(self, self.credit_pool.granted)
        )

    def call_when_less(self) -> None:
        self.attends = True

    def publish(self, message: Message, batch: Batch) -> None:
        """Append `message`, or hold it until its delivery time; make room if the policy says so."""
        if self._drops_oldest:
            queue_limits.make_room(self, message, batch)
        self.add(message, batch)

    def add(self, message: Message, batch: Batch) -> None:
        """Like `publish`, but regardless of limits."""
        backlog = self.backlogs[message.priority]
        if backlog is None:
            backlog = self.backlog_of(message.priority)
        entry = QueueEntry(self, message, backlog.next_position)
        self.published += 1
        deliver_at_ms = AT_ONCE if message.particulars is None else message.deliver_at_ms
        if deliver_at_ms != AT_ONCE and deliver_at_ms <= self.router.clock.wall_ms():
            deliver_at_ms = AT_ONCE
        if self.is_stored and (message.durable or self.stores_all or batch.stores_all):
            durable_publish.store(entry, deliver_at_ms, batch)
        self._admit(entry, backlog, deliver_at_ms)
        if self.observer is not None:
            self.observer.admitted(entry, deliver_at_ms, batch)

    def bring_back(self, entry: QueueEntry, deliver_at_ms: i64) -> None:
        """Add an entry from the store at its position, at a start."""
        backlog = self.backlog_of(entry.message.priority)
        backlog.next_position = max(backlog.next_position, entry.position)
        self._admit(entry, backlog, deliver_at_ms)

    def backlog_of(self, priority: i64) -> Backlog:
        """Return the backlog of `priority`, created if missing."""
        backlog = self.backlogs[priority]
        if backlog is None:
            paging = self.router.paging
            paged = Paged(self, priority, paging) if paging.window > 0 or self.is_stored else None
            backlog = self.backlogs[priority] = Backlog(paged)
        return backlog

    def _admit(self, entry: QueueEntry, backlog: Backlog, deliver_at_ms: i64) -> None:
        """Count `entry`, and append it to `backlog` or hold it until its delivery time."""
        self.bytes += entry.message.size
        self.memory.enters(entry.message)
        if entry.message.expires_at_ms != NEVER:
            self.sweep.joined(self)
        if deliver_at_ms == AT_ONCE:
            self.join(entry, backlog)
        else:
            backlog.next_position += 1
            held_back(self).hold(entry)

    def join(self, entry: QueueEntry, backlog: Backlog) -> None:
        """Append `entry` to `backlog`, the last one to be delivered."""
        backlog.append(entry)
        message = entry.message
        if message.particulars is not None and message.group:
            join_group(entry, self)
        self.waiting += 1
        if message.priority > self.top:
            self.top = message.priority
        if not self.is_pending:
            self.router.wake(self)

    # -- out

    def attach_consumer(self, consumer: Consumer) -> Queue:
        self._last_number += 1
        consumer.number = self._last_number
        consumer.passed = None
        begin_selection(self, consumer)
        self.consumers.append(consumer)
        if self.exclusivity.in_force or consumer.exclusive:
            choose(self)
        return self

    def attach_browser(self, consumer: Consumer) -> None:
        """Attach `consumer` to get copies of waiting entries and acquire none."""
        if consumer.filter is not None:
            selection_of(self)
        self.browsers.join(consumer)

    def detach_consumer(self, consumer: Consumer, queue: Queue, batch: Batch) -> None:  # noqa: ARG002 as a service's
        self.turn.leave(consumer)
        self._drains.leave(consumer)
        if consumer in self.consumers:
            self.consumers.remove(consumer)
            if self.groups is not None:
                self.groups.left(consumer.number, self)
            if self.exclusivity.in_force:
                choose(self)
        self.browsers.leave(consumer)

    def consumer_ready(self, consumer: Consumer, *, drain: bool) -> None:
        """Serve `consumer`, which has credit; `drain` holds until none is left or the next call."""
        if self.browsers.has(consumer):
            self.browsers.ready(consumer)
        elif not self.exclusivity.shuts_out(consumer):
            self.turn.join(consumer)
        self._drains.leave(consumer)
        if drain:
            self._drains.join(consumer)
        self.router.wake(self)

    def dispatch(self, now_ms: i64, batch: Batch) -> None:
        """Deliver waiting entries to consumers with room; then serve browsers, and end drains."""
        if self.schedule is not None and self.schedule.is_due:
            self.schedule.release(batch)
        if self.attends:
            attend(self)
        if self.sweep.is_due:
            self.sweep.run(self, batch)
        self.awaits_load = False
        if (selection := self.selection) is not None:
            selection.begin(self.turn.size())
        passed_over: list[Consumer] = []
        self._left = 0 if self.rests else DELIVERED_AT_ONCE
        while self.waiting > 0 and self._left > 0 and not self.holds_too_much():
            consumer = self.turn.next()
            if consumer is None:
                break
            if not self._serve(consumer, now_ms, batch):
                self.turn.leave(consumer)
                passed_over.append(consumer)
        if selection is not None:
            passed_over = selection.in_turn(passed_over)
        for consumer in passed_over:
            self.turn.join(consumer)
        if self._left == 0 and self.waiting > 0 and not self.rests:
            self.rests = True
            self.router.timer_queue.at(now_ms, DispatchPause(self))
        if self.browsers.any_ready:
            self.browsers.show(self.backlogs, self.router.clock.wall_ms(), selection)
        if self._drains.any():
            self._drains.end(self)
        if selection is not None:
            selection.end()

    def _serve(self, consumer: Consumer, now_ms: i64, batch: Batch) -> bool:
        """Deliver one entry, or as many as there is room for if no other consumer has any.

        False if `consumer` may take no waiting entry now.
        """
        alone = self.turn.size() == 1
        while True:
            entry = self._take(consumer, now_ms, batch)
            if entry is None:
                return False
            entry.consumer = consumer
            if entry.group is not None and self.groups is not None:
                self.groups.taken(entry, entry.group, consumer.number)
            self.acquired += 1
            self.memory.delivered(entry.message)
            if self.observer is not None:
                self.observer.delivered(entry, batch)
            consumer.deliver(entry)
            self._left -= 1
            if not alone or self.waiting == 0 or self._left == 0 or not consumer.has_room():
                return True

    def _take(self, consumer: Consumer, now_ms: i64, batch: Batch) -> QueueEntry | None:
        """Take the first waiting entry that may go to `consumer`; move or discard expired ones."""
        priority = self.top
        while priority >= 0:
            backlog = self.backlogs[priority]
            if backlog is None or backlog.waiting == 0:
                if priority == self.top and priority > 0:
                    self.top -= 1
                priority -= 1
                continue
            entry = backlog.first()
            if (
                entry is None
                or consumer.filter is not None
                or (entry.history is not None and not entry.may_go_to(consumer.number, now_ms))
                or entry.group is not None
            ):
                entry = first_for(consumer, backlog, priority, now_ms=now_ms, queue=self)
                if entry is None and self._has_to_wait(consumer, backlog):
                    return None
                if entry is None:
                    priority -= 1
                    continue
            if entry.stored_number != NOT_STORED and not self.gate.passes(entry, batch):
                return None
            if entry.message.expires_at_ms != NEVER and self.expire(entry, backlog, batch):
                if self.holds_too_much():
                    return None
                continue
            backlog.remove(entry)
            self.waiting -= 1
            return entry
        return None

    def _has_to_wait(self, consumer: Consumer, backlog: Backlog) -> bool:
        """Return whether entries have to be loaded or judged before `consumer` gets one."""
        if backlog.is_blocked:
            self.awaits_load = True
            return True
        selection = self.selection
        return consumer.filter is not None and selection is not None and selection.stopped

    # -- back

    def accept(self, entry: QueueEntry, batch: Batch) -> None:
        """Remove the acquired `entry`, which has been consumed (core 3.4.2)."""
        if self.observer is not None:
            self.observer.settled(entry, Disposal.REMOVE, batch)
        self.acquired -= 1
        self.memory.settled(entry.message)
        self.router.stats.acknowledged += 1
        self.forget(entry, batch, consumed=True)

    def dispose(
        self,
        entry: QueueEntry,
        disposal: Disposal,
        batch: Batch,
        *,
        cause: Cause = REJECTED_UNSAID,
    ) -> None:
        """End the acquisition of `entry` as `disposal` says; `cause` is that of a rejection."""
        if self.observer is not None:
            self.observer.settled(entry, disposal, batch, cause=cause)
        self.acquired -= 1
        self.memory.settled(entry.message)
        if disposal is Disposal.REMOVE:
            self.router.stats.acknowledged += 1
            self.forget(entry, batch)
        elif self.is_deleted:
            self.forget(entry, batch)
        elif disposal is Disposal.DEAD_LETTER:
            self.router.moves.move(entry, cause, batch)
        elif delivery_attempt.note(entry, disposal, batch):
            self.router.moves.move(entry, DELIVERY_LIMIT, batch)
        else:
            if entry.group is not None and self.groups is not None:
                refused = redelivery.is_refusal(disposal)
                self.groups.back(entry, entry.group, self, refused=refused)
            entry.consumer = None
            entry.sent_to = None
            if self.policy.redelivery_delay_ms > 0 and redelivery.is_failure(disposal):
                held_back(self).pause(entry, delivery_attempt.delay_of(entry, self.policy))
            else:
                self.put_back(entry)

    def put_back(self, entry: QueueEntry) -> None:
        """Return `entry`, which has waited before, to its place."""
        priority = entry.message.priority
        backlog = self.backlog_of(priority)
        backlog.put_back(entry)
        if entry.group is not None:
            entry.group.pass_over(entry)
        if self.scan_positions.any:
            self.scan_positions.look_again(entry, self.consumers, self.router.clock.now_ms())
        self.waiting += 1
        self.router.stats.requeued += 1
        if priority > self.top:
            self.top = priority
        if not self.is_pending:
            self.router.wake(self)

    def forget(self, entry: QueueEntry, batch: Batch, *, consumed: bool = False) -> None:
        """Remove an entry that is neither waiting nor held back any more, also from the store."""
        message = entry.message
        if entry.group is not None and self.groups is not None:
            self.groups.gone(entry, entry.group, self)
        entry.consumer = None
        self.bytes -= message.size
        self.memory.leaves(message)
        if self.attends:
            self.router.wake(self)
        if message.expires_at_ms != NEVER:
            self.sweep.expiring -= 1
        if entry.stored_number != NOT_STORED and not self.is_deleted:
            durable_publish.forget(entry, batch, consumed=consumed)
        if self.outlived is not None:
            self.router.left(self)

    # -- time

    def expire(self, entry: QueueEntry, backlog: Backlog, batch: Batch) -> bool:
        """Move or discard the waiting `entry` if it has expired. True if it has.

        It stays in its place while the queue holds back too many entries that cannot be moved.
        """
        if not expiry.has_expired(entry.message.expires_at_ms, self.router.clock.wall_ms()):
            return False
        if not self.holds_too_much() or not self.policy.expiry:
            self.take_out(entry, backlog)
            self.router.moves.move(entry, EXPIRED, batch)
        return True

    def take_out(self, entry: QueueEntry, backlog: Backlog) -> None:
        """Remove the waiting `entry` from `backlog`."""
        backlog.remove(entry)
        self.waiting -= 1

    def due(self, now_ms: i64) -> None:
        """Go on after a pause: of an entry, between sweeps, or of producers (`Pacing`)."""
        if self.is_deleted:
            return
        self.pacing.tick(now_ms, self.backlog())
        self.sweep.tick(now_ms)
        if self.scan_positions.any:
            self.scan_positions.start_anew(self.consumers)
        self.router.wake(self)

    # -- held back

    def held(self) -> i64:
        """Return the number of entries that wait for a delivery time, a retry or a move."""
        return i64(0) if self.schedule is None else self.schedule.size()

    def scheduled(self) -> list[QueueEntry]:
        """Return the messages that wait for their delivery time, the next one first."""
        return [] if self.schedule is None else self.schedule.scheduled()

    def holds_too_much(self) -> bool:
        """Return whether nothing may be delivered: `HeldEntries` has reached a limit."""
        return self.schedule is not None and self.schedule.held.is_full()

    def cancel(self, position: i64, batch: Batch) -> QueueEntry | None:
        """Discard and return the held-back message of that `stored_position`; None if none."""
        entry = None if self.schedule is None else self.schedule.cancel(position)
        if entry is not None:
            self.forget(entry, batch)
            self.router.wake(self)
        return entry

    def withdraw(self, entry: QueueEntry, batch: Batch) -> None:
        """Discard an entry that waits, or is held back for its move, as if it had never arrived."""
        if not let_go(entry):
            self.take_out(entry, self.backlog_of(entry.message.priority))
        self.forget(entry, batch)

    # -- the node

    def backlog(self) -> i64:
        return self.waiting if self.consumers else i64(0)

    def links(self) -> i64:
        return i64(len(self.producers)) + i64(len(self.consumers)) + self.browsers.count()

    def contents(self) -> i64:
        return self.waiting + self.acquired + self.held()

    def delete(self, batch: Batch) -> None:
        """Discard all entries, acquired ones as they return; the caller removes the stored ones."""
        self.is_deleted = True
        if self.observer is not None:
            self.observer.dropped(self, self.contents(), batch, why="with their queue")
        self._clear()
        forget_all(self, batch)
        for consumer in list(self.consumers):
            consumer.node_deleted()
        self.consumers.clear()
        self.turn = RoundRobin()
        self._drains.clear()
        self.browsers.node_deleted()
        if self.groups is not None:
            self.groups.clear()
        if self.selection is not None:
            self.selection.close()
        self.tell_producers()

    def _clear(self) -> None:
        if self.waiting + self.held() > 0:
            self.router.remains.take(self)
        for backlog in self.backlogs:
            if backlog is not None:
                backlog.drop_pages(backlog.waiting)
        self.backlogs[:] = [None] * 10
        self.waiting = 0
        if self.schedule is not None:
            self.schedule.close()
