"""The transactions of one connection: their ids, their maximum number, and their timeouts."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, trait

from broker.amqp.events import AbortListener
from broker.amqp.outcomes import ACCEPTED, TransactionalState
from broker.links.container import Container
from broker.routing.errors import LimitReached
from broker.routing.queues.node import Node
from broker.routing.timer_queue import TimerCallback
from broker.routing.transaction import Transaction

if TYPE_CHECKING:
    from broker.links.coordinator import LinkCoordinator

NOT_STARTED: Final[i64] = -1
NOT_ROLLED_BACK: Final[i64] = -1


@trait
class AcquiringLink:
    """A link that acquires messages within transactions (core 4.4.3)."""

    @abstractmethod
    def transaction_ended(self, ended: OpenTransaction) -> None:
        """Acquire nothing more within `ended`, which is about to be committed or rolled back."""


@final
class OpenTransaction(AbortListener):
    """A transaction that was declared, and is not discharged yet.

    `accepted` is the delivery state of every message that is accepted within it. Its timeout runs
    from the first operation, because JMS clients have a transaction open at all times. `acquirers`
    are the links that acquire, or have acquired, messages within it. Its rollback is accepted once
    no deliveries of theirs are `aborting`; until then `rollback_id` is the delivery-id of that
    command, NOT_ROLLED_BACK before.
    """

    def __init__(self, txn_id: bytes, work: Transaction, coordinator: LinkCoordinator) -> None:
        self.id: Final = txn_id
        self.work: Final = work
        self.coordinator: Final = coordinator
        self.accepted: Final = TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
        self.deadline_ms: i64 = NOT_STARTED
        self.acquirers: Final[dict[AcquiringLink, None]] = {}
        self.aborting: i64 = 0
        self.rollback_id: i64 = NOT_ROLLED_BACK

    def aborted(self) -> None:
        self.aborting -= 1
        if self.aborting == 0 and self.rollback_id != NOT_ROLLED_BACK:
            self.coordinator.accept_rollback(self)


@final
class Transactions(TimerCallback):
    """The open transactions of a connection, by id; any of its links may take part in any."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._open: Final[dict[bytes, OpenTransaction]] = {}
        # transactions with work, in the order of their first operations, and so of their deadlines
        self._begun: Final[dict[bytes, OpenTransaction]] = {}
        self._is_waiting = False

    def declare(self, coordinator: LinkCoordinator) -> OpenTransaction:
        """Begin a transaction; raise LimitReached if the connection has too many."""
        container = self._container
        limits = container.limits
        if 0 < limits.transactions_max <= i64(len(self._open)):
            raise LimitReached(f"a connection has at most {limits.transactions_max} transactions")
        work = Transaction(
            container.router,
            operations_max=limits.transaction_operations_max,
            bytes_max=limits.transaction_bytes_max,
        )
        declared = OpenTransaction(container.next_txn_id(), work, coordinator)
        work.id = declared.id
        self._open[declared.id] = declared
        return declared

    def count(self) -> int:
        """Return the number of open transactions."""
        return len(self._open)

    def all(self) -> list[OpenTransaction]:
        """Return the open transactions, in the order of their declaration."""
        return list(self._open.values())

    def find(self, txn_id: bytes) -> OpenTransaction | None:
        """Return the open transaction of that id; None if there is none."""
        return self._open.get(txn_id)

    def join(self, txn_id: bytes) -> OpenTransaction | None:
        """Like `find`, for an operation within the transaction; the first starts its timeout."""
        found = self._open.get(txn_id)
        if found is not None and found.deadline_ms == NOT_STARTED:
            timeout_ms = self._container.limits.transaction_timeout_ms
            if timeout_ms > 0:
                found.deadline_ms = self._container.clock.now_ms() + timeout_ms
                self._begun[txn_id] = found
                self._wait_for(found)
        return found

    def _wait_for(self, first: OpenTransaction) -> None:
        """Set a timer for the deadline of `first`: one timer serves all transactions behind it."""
        if not self._is_waiting:
            self._is_waiting = True
            self._container.router.timer_queue.at(first.deadline_ms, self)

    def memory(self) -> i64:
        """Return the bytes of memory that the open transactions keep."""
        kept: i64 = 0
        for each in self._open.values():
            kept += each.work.memory
        return kept

    def make_room_in(self, node: Node) -> bool:
        """Return whether one of them removes more messages from a full queue than it adds."""
        return any(each.work.makes_room_in(node) for each in self._open.values())

    def largest(self) -> OpenTransaction | None:
        """Return the open transaction that keeps most memory; None without any."""
        largest: OpenTransaction | None = None
        for each in self._open.values():
            if largest is None or each.work.memory > largest.work.memory:
                largest = each
        return largest

    def forget(self, ended: OpenTransaction) -> None:
        """Remove `ended`, which is being discharged or rolled back; no link acquires within it."""
        del self._open[ended.id]
        self._begun.pop(ended.id, None)
        if ended.acquirers:
            for acquirer in list(ended.acquirers):
                acquirer.transaction_ended(ended)
            ended.acquirers.clear()

    def due(self, now_ms: i64) -> None:
        """Detach the coordinator links of transactions that have timed out."""
        self._is_waiting = False
        while self._begun:
            first = next(iter(self._begun.values()))
            if first.deadline_ms > now_ms:
                self._wait_for(first)
                return
            first.coordinator.give_up("a transaction has lasted too long")
