"""The state of a queue that its parts share: its entries, their number and size, its services."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.message import NEVER
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries import expiry
from broker.routing.entries.dead_letter import EXPIRED, Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer, QueueObserver
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.backlogs import Backlogs
from broker.routing.queues.deleted_entries import Remains
from broker.routing.queues.node_context import NodeContext
from broker.routing.queues.schedule import Schedule
from broker.routing.queues.sweep import Sweep
from broker.routing.timer_queue import TimerCallback
from storage.batch import Batch


@final
class QueueState:
    """The entries of one queue, without the rules that move them.

    `backlogs` has the waiting entries, `schedule` those that are held back, if there are any.
    `acquired` counts those that consumers hold; `bytes` is the size of all. If the queue `attends`,
    a consumer waits for entries that others hold, or a producer waits for room. If it `owes_room`,
    it took a message while the one to be discarded for it had to be loaded. `is_of_broker`: the
    entries are responses of the broker, which are delivered even while it drains. `event_source`
    belongs to the event log: its name of the queue, empty until it needs one. `observer` hears of
    all events; another one may take its place, and passes them on to it.
    """

    def __init__(
        self, context: NodeContext, policy: AddressPolicy, observer: QueueObserver | None
    ) -> None:
        self.context: Final = context
        self.memory: Final = context.memory
        self.policy: Final = policy
        self.observer = observer
        self.backlogs: Final = Backlogs()
        self.schedule: Schedule | None = None
        self.sweep: Sweep | None = None
        self.acquired: i64 = 0
        self.bytes: i64 = 0
        self.attends = False
        self.owes_room = False
        self.is_deleted = False
        self.is_of_broker = False
        self.event_source = ""

    def contents(self) -> i64:
        """Return the number of entries, wherever they are."""
        return self.backlogs.waiting + self.acquired + self.held()

    # -- counting

    def enters(self, entry: QueueEntry, owner: TimerCallback) -> None:
        """Count `entry`, which is new in the queue of `owner`, or is restored."""
        message = entry.message
        self.bytes += message.size
        self.memory.enters(message)
        if message.expires_at_ms != NEVER:
            self.expires(owner)

    def expires(self, owner: TimerCallback) -> None:
        """Count an entry with an expiry; have `owner` called when it is time for a sweep."""
        if self.sweep is None:
            self.sweep = Sweep()
        self.sweep.expiring += 1
        self.sweep.arm(owner, self.context.routing)

    def leaves(self, entry: QueueEntry) -> None:
        """Stop counting `entry`, which is neither waiting nor held back any more."""
        message = entry.message
        self.bytes -= message.size
        self.memory.leaves(message)
        if message.expires_at_ms != NEVER and self.sweep is not None:
            self.sweep.expiring -= 1

    def acquires(self, entry: QueueEntry, consumer: Consumer) -> None:
        """Count `entry`, which `consumer` holds from now on."""
        entry.consumer = consumer
        self.acquired += 1
        self.memory.delivered(entry.message.encoded_size)

    def settles(self, entry: QueueEntry) -> None:
        """Stop counting `entry` as held by its consumer."""
        self.acquired -= 1
        self.memory.settled(entry.message.encoded_size)

    def consumes(self, entry: QueueEntry) -> None:
        """Stop counting `entry`, which its consumer has accepted: `settles` and `leaves` in one.

        They would read the message and its size twice for each message that is consumed.
        """
        message = entry.message
        self.acquired -= 1
        self.bytes -= message.size
        self.memory.dropped(message)
        if message.expires_at_ms != NEVER and self.sweep is not None:
            self.sweep.expiring -= 1

    def lose(self, messages: i64, size: i64, expiring: i64) -> None:
        """Stop counting waiting messages that were not in memory, and are lost or discarded.

        `size` is their bytes, and `expiring` the number of those with an expiry. Their backlog
        has stopped counting them before.
        """
        self.backlogs.waiting -= messages
        self.bytes -= size
        if self.sweep is not None:
            self.sweep.expiring -= expiring

    def clear(self) -> Remains:
        """Remove all entries but acquired ones; return those that were in memory."""
        schedule, self.schedule = self.schedule, None
        if schedule is not None:
            schedule.close()
        return Remains(self.backlogs.clear(), schedule)

    # -- expiry

    def has_expired(self, entry: QueueEntry) -> bool:
        """Return whether `entry` has expired by the wall clock."""
        return expiry.has_expired(entry.message.expires_at_ms, self.context.clock.wall_ms())

    def expire(self, entry: QueueEntry, backlog: Backlog, batch: Batch) -> bool:
        """Move or discard the waiting `entry` if it has expired. True if it has.

        It stays in its place while the queue holds back too many entries that cannot be moved.
        """
        if not self.has_expired(entry):
            return False
        if not self.holds_too_much() or not self.policy.expiry:
            self.backlogs.remove(entry, backlog)
            self.context.mover.move(entry, EXPIRED, batch)
        return True

    # -- held back

    def holds_deliveries(self) -> bool:
        """Return whether nothing is delivered, because the broker drains."""
        return self.context.holds_deliveries and not self.is_of_broker

    def held(self) -> i64:
        """Return the number of entries that wait for a delivery time, a retry or a move."""
        return i64(0) if self.schedule is None else self.schedule.size()

    def holds_too_much(self) -> bool:
        """Return whether nothing may be delivered: `HeldEntries` has reached a limit."""
        return self.schedule is not None and self.schedule.held.is_full()

    def scheduled(self) -> list[QueueEntry]:
        """Return the messages that wait for their delivery time, the next one first."""
        return [] if self.schedule is None else self.schedule.scheduled()

    def held_for_move(self) -> list[QueueEntry]:
        """Return the messages that could not be moved, in the order in which they were held."""
        return [] if self.schedule is None else self.schedule.held.entries()

    def cause_of(self, entry: QueueEntry) -> Cause | None:
        """Return why `entry` is to be moved; None if it is not held back for that."""
        return None if self.schedule is None else self.schedule.held.cause_of(entry)
