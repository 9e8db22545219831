"""A queue: how messages come into it, return, and leave it.

An entry is *waiting* (in a `Backlog`), *acquired* (by one consumer), *held back* (`schedule.py`)
or gone. Nothing here awaits; changes that must be durable are noted in the batch of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import AT_ONCE, NEVER, NOWHERE, Message, Origin
from broker.routing.addresses.policy import BLOCK, DROP_OLDEST, AddressPolicy
from broker.routing.credit.credit_pool import UNLIMITED, CreditPool
from broker.routing.entries import delivery_attempt, redelivery
from broker.routing.entries.dead_letter import DELIVERY_LIMIT, EXPIRED, REJECTED_UNSAID, Cause
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import Consumer, Wakeable
from broker.routing.entries.record_mapping import as_message, stored_position
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues import queue_limits
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.held_entries import HeldEntries
from broker.routing.queues.node import QUEUE, Consumable
from broker.routing.queues.node_context import NodeContext
from broker.routing.queues.paging import Paged
from broker.routing.queues.queue_consumers import QueueConsumers
from broker.routing.queues.queue_delivery import QueueDelivery
from broker.routing.queues.queue_persistence import QueuePersistence
from broker.routing.queues.queue_state import QueueState
from broker.routing.queues.schedule import Schedule
from broker.routing.queues.sweep import Sweep
from storage.batch import Batch
from storage.records import StoredMessage

if TYPE_CHECKING:
    from broker.routing.topics.topic import Topic


@final
class Queue(Consumable, Wakeable):
    """Messages in order of priority and arrival, each for one consumer (RCV-03).

    Clients cannot address the queue of a subscription; `topics` put messages into it, and
    `subscription` is the operator's name of it, empty if it has none.
    """

    def __init__(
        self,
        *,
        address: str,
        policy: AddressPolicy,
        context: NodeContext,
        owner: i64 = -1,
        is_subscription: bool = False,
        subscription: str = "",
        stored_as: str = "",
    ) -> None:
        super().__init__(address=address, kind=QUEUE, policy=policy, context=context, owner=owner)
        self.is_subscription: Final = is_subscription
        self.subscription: Final = subscription
        self.topics: Final[dict[Topic, None]] = {}
        self.consumers: Final = QueueConsumers(exclusive=policy.exclusive)
        observer = context.observer_of(policy, address, is_subscription=is_subscription)
        self.state: Final = QueueState(context, policy, observer)
        self.backlogs: Final = self.state.backlogs
        name = stored_as if is_subscription else address
        self._is_stored: Final = self.may_store and name != ""
        self.persistence: Final = QueuePersistence(
            self,
            context,
            stored_as=name,
            is_stored=self._is_stored,
            defers=self.stores_all or not policy.deliver_before_commit,
            consumers=self.consumers.attached,
            producers=self.producers,
        )
        self.is_woken = False
        self.delivery: Final = QueueDelivery(
            self, self.state, consumers=self.consumers, persistence=self.persistence
        )
        self._drops_oldest: Final = policy.is_limited and policy.full == DROP_OLDEST
        if policy.is_limited and policy.full == BLOCK and not is_subscription:
            self.credit_pool = CreditPool(self, context.routing, context.credit_policy)

    # -- in

    def put(self, message: Message, batch: Batch) -> None:
        self.check_room(message)
        self.publish(message, batch)

    def check_room(self, message: Message) -> None:
        """Raise QueueFull if the limits of the address leave no room for `message`."""
        if self.policy.is_limited:
            queue_limits.check(self, message)

    def producer_window(self) -> i64:
        return self.persistence.producer_window()

    def room_for_more(self) -> i64:
        return (
            UNLIMITED
            if self.credit_pool is None
            else queue_limits.room_beside(self, self.credit_pool.granted)
        )

    def call_when_less(self) -> None:
        self.state.attends = True

    def publish(self, message: Message, batch: Batch) -> None:
        """Append `message`, or hold it until its delivery time; make room if the policy says so."""
        if self._drops_oldest:
            queue_limits.make_room(self, message, batch)
        self.add(message, batch)

    def add(self, message: Message, batch: Batch) -> None:
        """Like `publish`, but regardless of limits."""
        backlog = self.backlogs.by_priority[message.priority]
        if backlog is None:
            backlog = self.backlog_of(message.priority)
        entry = QueueEntry(self, message, backlog.next_position)
        self.published += 1
        deliver_at_ms = AT_ONCE if message.optional_fields is None else message.deliver_at_ms
        if deliver_at_ms != AT_ONCE and deliver_at_ms <= self.context.clock.wall_ms():
            deliver_at_ms = AT_ONCE
        if self._is_stored and (message.durable or self.stores_all or batch.stores_all):
            self.persistence.store(entry, deliver_at_ms, batch)
        self._admit(entry, backlog, deliver_at_ms)
        if self.state.observer is not None:
            self.state.observer.admitted(entry, deliver_at_ms, batch)

    def backlog_of(self, priority: i64) -> Backlog:
        """Return the backlog of `priority`, created if missing."""
        backlog = self.backlogs.by_priority[priority]
        if backlog is None:
            paging = self.context.paging
            is_paged = paging.window > 0 or self.persistence.is_stored
            backlog = Backlog(Paged(self, priority, paging) if is_paged else None)
            # the store keeps its delivered mark: what comes from now on is not below it
            backlog.begin_behind(self.persistence.suspected_up_to)
            self.backlogs.by_priority[priority] = backlog
        return backlog

    def _admit(self, entry: QueueEntry, backlog: Backlog, deliver_at_ms: i64) -> None:
        """Count `entry`, and append it to `backlog` or hold it until its delivery time."""
        self.state.enters(entry, self)
        if deliver_at_ms == AT_ONCE:
            self._join(entry, backlog)
        else:
            backlog.next_position += 1
            self._held_back().hold(entry)

    def _join(self, entry: QueueEntry, backlog: Backlog) -> None:
        """Append `entry` to `backlog`, the last one to be delivered."""
        self.backlogs.append(entry, backlog)
        message = entry.message
        if message.optional_fields is not None and message.group:
            self.delivery.join_group(entry)
        if not self.is_woken:
            self.wake()

    # -- in, from the store

    def entry_of(
        self, stored: StoredMessage, position: i64, *, origin: Origin = NOWHERE
    ) -> QueueEntry:
        """Return a new entry for the record of a message, which is not in the queue yet.

        Its delivery count is at least 1 if it may have been delivered before the start (RCV-08).
        `origin` is that of its message if it is known, with the key, which no store keeps.
        """
        paging = self.context.paging
        if origin is NOWHERE:
            origin = paging.origin_of(stored.publisher)
        entry = QueueEntry(self, as_message(stored, origin, self.context.bodies), position)
        entry.stored_number = stored.number
        entry.is_volatile = stored.volatile
        entry.delivery_count = stored.delivery_count
        if stored.number < paging.suspected_below and position <= self.persistence.suspected_up_to:
            entry.delivery_count = max(1, stored.delivery_count)
        return entry

    def bring_back(self, entry: QueueEntry, deliver_at_ms: i64) -> None:
        """Add an entry from the store at its position, at a start."""
        backlog = self.backlog_of(entry.message.priority)
        backlog.next_position = max(backlog.next_position, entry.position)
        self._admit(entry, backlog, deliver_at_ms)

    def bring_back_place(self, *, number: i64, place: i64, size: i64, expires_at_ms: i64) -> None:
        """Add a stored message to its backlog at a start, without loading it.

        `place` is its stored position, `size` its bytes.
        """
        priority = place % 10
        backlog = self.backlog_of(priority)
        paged = backlog.paged
        if paged is None:
            return  # by its present settings the node stores nothing
        backlog.recover(place // 10, number, size=size, expires_at_ms=expires_at_ms)
        paged.count()
        self.backlogs.count_in(priority)
        self.state.bytes += size
        if expires_at_ms != NEVER:
            self.state.expires(self)

    def bring_back_held(self, entry: QueueEntry, cause: Cause) -> None:
        """Hold `entry` back from delivery at a start, since it could not be moved before."""
        self.backlog_of(entry.message.priority).begin_behind(entry.position)
        self.state.enters(entry, self)
        self._held_back().held.add(entry, cause)

    def bring_back_acquired(self, entry: QueueEntry, consumer: Consumer) -> None:
        """Add `entry` at a start as acquired by `consumer`, as if it had never been ready."""
        self.backlog_of(entry.message.priority).begin_behind(entry.position)
        self.state.enters(entry, self)
        if entry.message.group:
            self.delivery.join_group(entry)
        self.delivery.acquire(entry, consumer)

    def bring_in(self, entry: QueueEntry, backlog: Backlog, batch: Batch) -> None:
        """Put a waiting entry that was loaded into `backlog`; discard or move it if expired."""
        backlog.bring_in(entry)
        message = entry.message
        self.context.memory.enters(message)
        if entry.group is None and message.optional_fields is not None and message.group:
            self.delivery.join_group(entry)
        if message.expires_at_ms != NEVER:
            self.state.expire(entry, backlog, batch)

    # -- out

    def attach_consumer(self, consumer: Consumer) -> Queue:
        self.delivery.attach(consumer)
        return self

    def attach_browser(self, consumer: Consumer) -> None:
        """Attach `consumer` to get copies of waiting entries and acquire none."""
        self.delivery.attach_browser(consumer)

    def detach_consumer(self, consumer: Consumer, queue: Queue, batch: Batch) -> None:  # noqa: ARG002 as a service's
        self.delivery.detach(consumer)

    def consumer_ready(self, consumer: Consumer, *, drain: bool) -> None:
        """Serve `consumer`, which has credit. `drain`: tell it once nothing is left for it."""
        self.consumers.ready(consumer, drain=drain)
        self.wake()

    def wake(self) -> None:
        if not self.is_woken:
            self.is_woken = True
            self.context.rounds.woken.append(self)

    def dispatch(self, now_ms: i64, batch: Batch) -> None:
        """Do what is due, then deliver waiting entries to consumers, browsers and drains."""
        state = self.state
        if state.schedule is not None and state.schedule.is_due:
            self._release(state.schedule, batch)
        if state.attends:
            self._attend()
        if state.sweep is not None and state.sweep.is_due:
            self._run_sweep(state.sweep, batch)
        self.delivery.deliver(now_ms, batch)

    def _attend(self) -> None:
        """Serve a standby, and producers that wait for room, after entries have left."""
        state = self.state
        state.attends = False
        if self.consumers.is_successor_awaited():
            if state.acquired == 0:
                self.delivery.choose()
            else:
                state.attends = True
        if self.credit_pool is not None:
            self.credit_pool.serve()
        for topic in self.topics:
            if topic.credit_pool is not None:
                topic.credit_pool.serve()

    # -- back

    def accept(self, entry: QueueEntry, batch: Batch) -> None:
        """Remove the consumed `entry` (core 3.4.2); its sender is answered without its commit."""
        if self.state.observer is not None:
            self.state.observer.settled(entry, Disposal.REMOVE, batch)
        self.context.stats.acknowledged += 1
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
        state = self.state
        if state.observer is not None:
            state.observer.settled(entry, disposal, batch, cause=cause)
        state.settles(entry)
        if disposal is Disposal.REMOVE:
            self.context.stats.acknowledged += 1
            self.forget(entry, batch)
        elif state.is_deleted:
            self.forget(entry, batch)
        elif disposal is Disposal.DEAD_LETTER:
            self.context.mover.move(entry, cause, batch)
        elif self._has_failed_too_often(entry, disposal, batch):
            self.context.mover.move(entry, DELIVERY_LIMIT, batch)
        else:
            self.delivery.returned(entry, refused=redelivery.is_refusal(disposal))
            if self.policy.redelivery_delay_ms > 0 and redelivery.is_failure(disposal):
                delay_ms = delivery_attempt.delay_of(entry, self.policy)
                self._held_back().pause(entry, delay_ms)
            else:
                self._put_back(entry)

    def _has_failed_too_often(self, entry: QueueEntry, disposal: Disposal, batch: Batch) -> bool:
        """Record the end of a delivery; return whether it was the last that may fail."""
        attached = self.consumers.attached
        if disposal is Disposal.RELEASE:
            again_ms = delivery_attempt.release(entry, attached, self.context.clock.now_ms())
            if again_ms != AT_ONCE:
                self.context.timer_queue.at(again_ms, self)
            return False
        # only consumers and administrators take messages out of a durable queue (DST-11)
        limit = i64(0) if self.stores_all else self.policy.max_delivery_count
        return delivery_attempt.note(entry, disposal, batch, consumers=attached, limit=limit)

    def annotate(self, entry: QueueEntry, annotations: bytes, batch: Batch) -> None:
        """Add an encoded map to the annotations of the acquired `entry`, in this queue alone.

        Fault if they become too large or cannot be read; no effect if the message's own cannot.
        """
        message = entry.message.annotated(annotations)
        self.state.bytes += message.size - entry.message.size
        self.context.memory.replaced(entry.message, message)
        entry.message = message
        if entry.stored_number != NOT_STORED and not self.state.is_deleted:
            batch.rewrite(entry.stored_number, message.encoded)

    def _put_back(self, entry: QueueEntry) -> None:
        """Return `entry`, which has waited before, to its place."""
        self.backlogs.put_back(entry, self.backlog_of(entry.message.priority))
        self.delivery.look_again(entry)
        self.context.stats.requeued += 1
        if not self.is_woken:
            self.wake()

    def forget(self, entry: QueueEntry, batch: Batch, *, consumed: bool = False) -> None:
        """Remove an entry that does not wait, also from the store; a `consumed` one is acquired."""
        if entry.group is not None:
            self.delivery.leave_group(entry)
        entry.consumer = None
        if consumed:
            self.state.consumes(entry)
        else:
            self.state.leaves(entry)
        if self.state.attends:
            self.wake()
        if entry.stored_number != NOT_STORED and not self.state.is_deleted:
            self.persistence.forget(entry, batch, consumed=consumed)
        if self.outlived is not None:
            self.note_use_ended()

    # -- time

    def _run_sweep(self, sweep: Sweep, batch: Batch) -> None:
        """Move or discard expired entries that no delivery has met, within the turn's budget."""
        for entry in sweep.run(self.backlogs, self.context.routing.sweeps):
            self.state.expire(entry, self.backlog_of(entry.message.priority), batch)
        if sweep.is_complete and not (self.policy.expiry and self.state.holds_too_much()):
            self.backlogs.ask_expired(self.context.clock.wall_ms())
        sweep.arm(self, self.context.routing)

    def due(self, now_ms: i64) -> None:
        """Go on after a pause: of an entry, between sweeps, or of producers (`Pacing`)."""
        if self.state.is_deleted:
            return
        self.pace(now_ms)
        if self.state.sweep is not None:
            self.state.sweep.tick(now_ms)
        self.delivery.look_at_paused()
        self.wake()

    # -- held back

    def _held_back(self) -> Schedule:
        """Return the schedule, made for the first entry that has to wait."""
        schedule = self.state.schedule
        if schedule is None:
            schedule = self.state.schedule = Schedule(self, self.context.routing)
        return schedule

    def _release(self, schedule: Schedule, batch: Batch) -> None:
        """Make entries available whose delivery time has come, or whose pause is over."""
        scheduled, paused = schedule.take_due()
        for entry in scheduled:
            if self.state.has_expired(entry):
                self.context.mover.move(entry, EXPIRED, batch)
            else:
                self.fall_due(entry, batch)
        for entry in paused:
            if self.state.has_expired(entry):
                self.context.mover.move(entry, EXPIRED, batch)
            else:
                self._put_back(entry)

    def fall_due(self, entry: QueueEntry, batch: Batch) -> None:
        """Put a message whose delivery time has come behind all others (DLY-03)."""
        backlog = self.backlog_of(entry.message.priority)
        entry.position = backlog.next_position
        if entry.stored_number != NOT_STORED:
            batch.fall_due(entry.stored_number, stored_position(entry))
        self._join(entry, backlog)
        observer = self.state.observer
        if observer is not None:
            observer.admitted(entry, AT_ONCE, batch)

    def hold_back(self, entry: QueueEntry, cause: Cause) -> HeldEntries:
        """Keep `entry` from consumers until it can be moved; return all such entries."""
        if entry.group is not None:
            self.delivery.leave_group(entry)
            entry.group = None
        entry.consumer = None
        entry.sent_to = None
        entry.history = None
        if entry.stored_number != NOT_STORED:
            self.persistence.stop_timing(entry.stored_number)
        if self.state.attends:
            self.wake()
        held = self._held_back().held
        held.add(entry, cause)
        return held

    def let_go(self, entry: QueueEntry) -> bool:
        """Stop holding `entry` back; False if it was not held back for a move."""
        schedule = self.state.schedule
        if schedule is None or schedule.held.cause_of(entry) is None:
            return False
        schedule.held.remove(stored_position(entry))
        self.wake()
        return True

    def cancel(self, position: i64, batch: Batch) -> QueueEntry | None:
        """Discard and return the held-back message of that `stored_position`; None if none."""
        schedule = self.state.schedule
        entry = None if schedule is None else schedule.cancel(position)
        if entry is not None:
            self.forget(entry, batch)
            self.wake()
        return entry

    def withdraw(self, entry: QueueEntry, batch: Batch) -> None:
        """Discard an entry that waits, or is held back for its move, as if it had never arrived."""
        if not self.let_go(entry):
            self.backlogs.remove(entry, self.backlog_of(entry.message.priority))
        self.forget(entry, batch)

    def drop_pages(self, at_most: i64, batch: Batch) -> i64:
        """Discard up to `at_most` messages that are not in memory; return their number."""
        dropped: i64 = 0
        for page in self.backlogs.drop_pages(at_most):
            dropped += page.count
            self.state.lose(page.count, page.bytes, page.expiring)
            for number in page.numbers:
                if number != 0:
                    batch.remove(number)
                    self.persistence.stop_timing(number)
            if page.groups is not None:
                self.delivery.drop_from_groups(list(page.groups.values()))
        if dropped > 0 and self.outlived is not None:
            self.note_use_ended()
        return dropped

    # -- the node

    def backlog(self) -> i64:
        return self.backlogs.waiting if self.consumers.attached else i64(0)

    def links(self) -> i64:
        return i64(len(self.producers)) + self.consumers.count()

    def contents(self) -> i64:
        return self.state.contents()

    def delete(self, batch: Batch) -> None:
        """Discard all entries, acquired ones as they return; the caller removes the stored ones."""
        state = self.state
        state.is_deleted = True
        if state.observer is not None:
            state.observer.dropped(self, state.contents(), batch, why="with their queue")
        has_entries = self.backlogs.waiting + state.held() > 0
        remains = state.clear()
        if has_entries:
            self.context.deleted_entries.take(state, remains)
        self.persistence.close(batch)
        self.delivery.close()
        self.tell_producers()
