"""Transactions at the broker's edge: their pending operations and their end (RCV-06)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.amqp.descriptors import AMQP_VALUE
from broker.amqp.outcomes import (
    RELEASED,
    Accepted,
    Modified,
    Outcome,
    Rejected,
    TransactionalState,
)
from broker.amqp.transactions import Declare, read_command
from tests.scenario.simulation_records import Ending, Entry, Message, Node

if TYPE_CHECKING:
    from tests.scenario.simulation_links import Link
    from tests.scenario.simulation_world import World

FAILED = Modified(delivery_failed=True)


@dataclass(eq=False)
class Transaction:
    """A transaction declared on `coordinator` and not discharged."""

    coordinator: Link
    posted: list[tuple[Node, Message]] = field(default_factory=list)
    retired: dict[Entry, Outcome] = field(default_factory=dict)
    operations: int = 0
    is_doomed: bool = False
    deadline: int | None = None

    def demands(self) -> dict[Node, tuple[int, int]]:
        """Return the additional messages and bytes per queue; acknowledged messages reduce them."""
        wanted: dict[Node, tuple[int, int]] = {}
        for node, message in self.posted:
            if node.kind == "queue":
                count, size = wanted.get(node, (0, 0))
                wanted[node] = (count + 1, size + message.size)
        for entry, outcome in self.retired.items():
            if isinstance(outcome, Accepted) and entry.node in wanted:
                count, size = wanted[entry.node]
                wanted[entry.node] = (count - 1, size - entry.message.size)
        return wanted


class Transactions:
    """The open transactions of one connection, by id."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._all: dict[Transaction, None] = {}
        self._open: dict[bytes, Transaction] = {}

    def is_open(self, txn_id: bytes) -> bool:
        return txn_id in self._open

    def declare(self, coordinator: Link) -> Transaction:
        """Return a new transaction; the broker has not named its id yet."""
        declared = Transaction(coordinator)
        self._all[declared] = None
        return declared

    def name(self, declared: Transaction, txn_id: bytes) -> None:
        self._open[txn_id] = declared

    def join(self, txn_id: bytes) -> Transaction | None:
        """Return the open transaction and start its timeout; None if it is not open."""
        found = self._open.get(txn_id)
        limits = self._world.container.limits
        if found is not None and found.deadline is None:
            found.deadline = self._world.model.now + int(limits.transaction_timeout_ms)
        return found

    def count(self, found: Transaction) -> None:
        found.operations += 1
        most = int(self._world.container.limits.transaction_operations_max)
        found.is_doomed = found.is_doomed or found.operations > most

    def post(self, txn_id: bytes, link: Link) -> type[Accepted | Rejected] | None:
        """Return the outcome of a message posted in a transaction; None if that is not open."""
        found = self.join(txn_id)
        if found is None:
            return None
        node, message = self._world.arrived(link)
        if node is None:
            self._world.model.stats["unroutable"] += 1
            found.is_doomed = True
            return Rejected
        self.count(found)
        if not found.is_doomed:
            found.posted.append((node, message))
        return Rejected if found.is_doomed else Accepted

    def doom(self, txn_id: bytes) -> None:
        found = self.join(txn_id)
        if found is not None:
            found.is_doomed = True

    def retire(self, state: TransactionalState, entry: Entry, link: Link, *, is_late: bool) -> None:
        """Defer the outcome of `entry` to the end of the transaction.

        Without an open transaction, return the entry to its queue and end the link, or the session
        if `is_late`: the link had ended before.
        """
        found = self.join(state.txn_id)
        outcome = state.outcome or link.default_outcome or RELEASED
        if found is None:
            self._return(entry, outcome)
            if is_late:
                link.session.end()
            else:
                link.end(Ending.DETACHED, by_fault=True)
            return
        found.retired[entry] = outcome
        self.count(found)

    def discharge(
        self, txn_id: bytes, *, fail: bool
    ) -> tuple[type[Accepted | Rejected], Transaction | None]:
        """Discharge a transaction; return the outcome, and the transaction if it is committed."""
        found = self._open.pop(txn_id, None)
        if found is None:
            return Rejected, None
        del self._all[found]
        if fail:
            self._roll_back(found)
            return Accepted, None
        if not self._may_commit(found):
            self._roll_back(found)
            return Rejected, None
        model = self._world.model
        for entry, outcome in found.retired.items():
            if not entry.node.is_deleted:
                model.settle(entry, outcome, explicit=True)
            elif isinstance(outcome, Accepted):
                model.stats["acknowledged"] += 1
        for node, message in found.posted:
            model.put(node, message, limited=False)
        model.stats["published"] += len(found.posted)
        model.stats["committed"] += 1
        return Accepted, found

    def _may_commit(self, found: Transaction) -> bool:
        if found.is_doomed or any(node.is_deleted for node, _ in found.posted):
            return False
        for node, (count, size) in found.demands().items():
            there, rule = node.there(), node.rule
            all_bytes = sum(entry.message.size for entry in there) + size
            too_many = 0 < rule.limit < len(there) + count
            if count > 0 and (too_many or 0 < rule.bytes_limit < all_bytes):
                return False
        return True

    def _roll_back(self, found: Transaction) -> None:
        self._world.model.stats["rolled_back"] += 1
        for entry, outcome in found.retired.items():
            self._return(entry, outcome)

    def _return(self, entry: Entry, outcome: Outcome) -> None:
        """Return `entry` to its queue, as failed if the client had acknowledged or refused it.

        A released message counts as never delivered.
        """
        if entry.node.is_deleted:
            return
        was_tried = isinstance(outcome, Accepted | Rejected) or (
            isinstance(outcome, Modified) and outcome.delivery_failed
        )
        self._world.model.settle(entry, FAILED if was_tried else RELEASED, explicit=True)

    def coordinator_ended(self, coordinator: Link) -> None:
        for each in [each for each in self._all if each.coordinator is coordinator]:
            del self._all[each]
            self._roll_back(each)
        self._open = {key: each for key, each in self._open.items() if each in self._all}

    def run_out(self, now: int) -> None:
        """End coordinators whose transactions have exceeded their time."""
        for each in list(self._open.values()):
            if each.deadline is not None and each.deadline <= now:
                each.coordinator.end(Ending.DETACHED)


def command_of(payload: bytes) -> tuple[bytes, bool] | None:
    """Return the id and the `fail` flag of a discharge; None for a declare."""
    assert payload[2] == AMQP_VALUE
    command = read_command(payload, 0, len(payload))
    return None if isinstance(command, Declare) else (command.txn_id, command.fail)
