"""The services that all nodes of one broker share: memory, numbers of the store, rounds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64, trait

from broker.large_body import LargeBodyReferences
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.context import RoutingContext
from broker.routing.credit.commit_delay import CommitDelay
from broker.routing.credit.credit_policy import CreditPolicy
from broker.routing.credit.memory import MemoryBudget
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import ObserverChoice, QueueObserver
from broker.routing.entries.reports import Reports
from broker.routing.queues.commit_gate import Gates
from broker.routing.queues.deleted_entries import DeletedEntries
from broker.routing.queues.judging import Judging
from broker.routing.queues.message_events import EventLogLimits, MessageEventLog
from broker.routing.queues.paging import Paging
from broker.routing.queues.rounds import Rounds
from storage.batch import Batch


@trait
class Mover:
    """Moves messages to dead-letter and expiry nodes."""

    @abstractmethod
    def move(self, entry: QueueEntry, cause: Cause, batch: Batch) -> None:
        """Move `entry`, which is neither waiting nor acquired any more, because of `cause`."""


@final
class NodeContext:
    """The services of one broker for its nodes.

    `bodies` keeps the large bodies of messages that are loaded from the store, if it has any.
    `observer` is that of all queues but those whose policy asks for the `event_log`;
    `observer_choice` may give a further one to a queue that is no subscription's.
    `holds_deliveries`: the broker drains, and queues deliver nothing but its own responses.
    """

    observer_choice: ObserverChoice | None = None
    bodies: LargeBodyReferences | None = None
    holds_deliveries = False
    _last_stored_number: i64 = 0

    def __init__(
        self,
        routing: RoutingContext,
        *,
        credit_policy: CreditPolicy,
        commit_delay: CommitDelay,
        gates: Gates,
        paging: Paging,
        pacing_mark: i64,
        mover: Mover,
        observer: QueueObserver | None,
        event_log_limits: EventLogLimits,
    ) -> None:
        self.routing: Final = routing
        self.clock: Final = routing.clock
        self.stats: Final = routing.stats
        self.timer_queue: Final = routing.timer_queue
        self.credit_policy: Final = credit_policy
        self.memory: Final[MemoryBudget] = credit_policy.memory
        self.commit_delay: Final = commit_delay
        self.gates: Final = gates
        self.paging: Final = paging
        self.pacing_mark: Final[i64] = pacing_mark
        self.mover: Final = mover
        self.rounds: Final = Rounds(routing.clock)
        self.judging: Final = Judging(routing)
        self.reports: Final = Reports(routing)
        self.deleted_entries: Final = DeletedEntries(credit_policy.memory, routing)
        self.event_log: Final = MessageEventLog(routing, observer, limits=event_log_limits)
        self._observer: Final = observer

    def observer_of(
        self, policy: AddressPolicy, address: str, *, is_subscription: bool
    ) -> QueueObserver | None:
        """Return the observer of a new queue; None for most."""
        found = self.event_log if policy.event_log else self._observer
        choice = self.observer_choice
        if choice is None or is_subscription:
            return found
        return choice.observer_of(address, found)

    def number_from(self, first: i64) -> None:
        """Assign no stored number below `first`: the store has used those already."""
        self._last_stored_number = first - 1

    def next_stored_number(self) -> i64:
        """Return a new number, which names one message to the store."""
        self._last_stored_number += 1
        return self._last_stored_number

    def suspect(self) -> None:
        """Treat all messages now in the store as possibly delivered before the start (RCV-08)."""
        self.paging.suspected_below = self._last_stored_number + 1
