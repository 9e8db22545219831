"""The coordinator: a link on which transactions are declared and discharged (core 4, RCV-06).

A commit that fails is reported by `rejected` with its cause, never with the condition
`amqp:transaction:rollback`: JMS clients take that to mean that the result is unknown.
If the broker gives a transaction up, it detaches the link with that condition; clients
then attach a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import (
    INVALID_FIELD,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    TRANSACTION_ROLLBACK,
    UNKNOWN_ID,
    Fault,
    LinkFault,
)
from broker.amqp.events import IncomingOwner
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.outcomes import Declared, Rejected, error_of
from broker.amqp.performatives import Attach
from broker.amqp.terminus import Coordinator
from broker.amqp.transactions import (
    LOCAL_TRANSACTIONS,
    MULTI_SSNS_PER_TXN,
    MULTI_TXNS_PER_SSN,
    Declare,
    Discharge,
    read_command,
)
from broker.journal import Waiter
from broker.links.attach import may_reject
from broker.links.refusal import as_fault
from broker.links.transactions import OpenTransaction
from broker.routing.errors import RoutingError

if TYPE_CHECKING:
    from broker.links.peer import Peer

CAPABILITIES: Final = (LOCAL_TRANSACTIONS, MULTI_TXNS_PER_SSN, MULTI_SSNS_PER_TXN)

ROLLED_BACK_BY_CLIENT: Final = "the client rolled it back"
COMMIT_REFUSED: Final = "its commit was refused"
LINK_ENDED: Final = "the link of its coordinator has ended"
CONNECTION_ENDED: Final = "its connection has ended"
"""Why a transaction is rolled back, besides the reasons of `give_up`."""

CREDIT: Final[i64] = 100
"""Maximum commands that a client may send ahead; JMS clients send two together."""


@final
class CommitReceipt(Waiter):
    """A discharge that is accepted once its commit is durable."""

    def __init__(self, link: IncomingLink, delivery_id: i64) -> None:
        self._link: Final = link
        self._delivery_id: Final[i64] = delivery_id

    def committed(self) -> None:
        self._link.accept_delivery(self._delivery_id)


@final
class LinkCoordinator(IncomingOwner):
    """The owner of a link to the coordinator. Transactions declared on it end with it."""

    def __init__(self, peer: Peer, link: IncomingLink) -> None:
        self._peer: Final = peer
        self._container: Final = peer.container
        self._link: Final = link
        self._transactions: Final = peer.transactions
        self._declared: Final[dict[bytes, OpenTransaction]] = {}
        self._may_reject = True
        self._given_up = ""

    def attach(self, attach: Attach) -> None:
        """Answer with the capabilities that the broker offers, whatever others are desired."""
        self._may_reject = may_reject(attach.source)
        self._container.claim_link(self._peer.container_id, self._link, None, incoming=True)
        self._link.accept(
            self, source=attach.source, target=Coordinator(capabilities=list(CAPABILITIES))
        )
        self._link.grant(CREDIT)

    # -- from the link

    def delivered(self, delivery_id: i64, data: bytes, at: i64, end: i64, settled: bool) -> None:
        """Handle a declare or discharge. Raise LinkFault for other messages, and settled ones."""
        if settled:
            raise LinkFault(INVALID_FIELD, "what a coordinator is told is not settled before (4.2)")
        sections = self._container.sections
        sections.read(data, at, end)
        try:
            command = read_command(data, sections.body, end)
        except Fault as fault:
            raise LinkFault(fault.condition, fault.description) from None
        if isinstance(command, Declare):
            self._declare(delivery_id, command)
        else:
            self._discharge(delivery_id, command)

    def posted(
        self,
        delivery_id: i64,  # noqa: ARG002 - always refused
        data: bytes,  # noqa: ARG002
        at: i64,  # noqa: ARG002
        end: i64,  # noqa: ARG002
        *,
        settled: bool,  # noqa: ARG002
        txn_id: bytes,  # noqa: ARG002
    ) -> None:
        """Raise LinkFault: a request to the coordinator belongs to no transaction."""
        raise LinkFault(NOT_ALLOWED, "what a coordinator is told is part of no transaction")

    def credit_low(self) -> None:
        self._link.grant(CREDIT)

    def _declare(self, delivery_id: i64, command: Declare) -> None:
        if command.has_global_id:
            refusal = LinkFault(NOT_IMPLEMENTED, "distributed transactions are not offered")
            self._reject(delivery_id, refusal)
            return
        try:
            declared = self._transactions.declare(self)
        except RoutingError as limit:
            self._reject(delivery_id, as_fault(limit))
            return
        self._declared[declared.id] = declared
        self._link.settle(delivery_id, Declared(declared.id))

    def _discharge(self, delivery_id: i64, command: Discharge) -> None:
        found = self._transactions.find(command.txn_id)
        if found is None:
            unknown = LinkFault(UNKNOWN_ID, "no such transaction on this connection")
            self._reject(delivery_id, unknown)
            return
        if command.txn_id in self._link.session.connection.partial_postings:
            raise LinkFault(TRANSACTION_ROLLBACK, "a message of the transaction is not whole (4.4)")
        found.coordinator.forget(found)
        batch = self._container.journal.batch
        if command.fail:
            found.work.roll_back(batch)
            self._tell_rolled_back(found, ROLLED_BACK_BY_CLIENT)
            found.rollback_id = delivery_id
            if found.aborting == 0:
                self.accept_rollback(found)
            return
        try:
            found.work.commit(batch)
        except RoutingError as refusal:
            self._fail_commit(delivery_id, found, as_fault(refusal))
        except Fault as fault:
            self._fail_commit(delivery_id, found, fault)
        else:
            self._container.journal.submit(CommitReceipt(self._link, delivery_id))

    def accept_rollback(self, ended: OpenTransaction) -> None:
        """Accept the discharge that rolled `ended` back: no delivery of it is unfinished."""
        self._link.accept_delivery(ended.rollback_id)

    def _fail_commit(self, delivery_id: i64, ended: OpenTransaction, cause: Fault) -> None:
        """Report that a commit has failed and was rolled back.

        The outcome names the `cause`. A detach has a condition of transactions (4.3): JMS clients
        take that for a rollback there, but not in an outcome.
        """
        self._tell_rolled_back(ended, COMMIT_REFUSED)
        if not self._may_reject:
            raise LinkFault(TRANSACTION_ROLLBACK, str(cause), cause.info)
        self._link.settle(delivery_id, Rejected(error_of(cause)))

    def _tell_rolled_back(self, ended: OpenTransaction, reason: str) -> None:
        """Report a rollback, unless nothing was done: JMS clients end many such transactions."""
        if ended.work.operations > 0:
            self._container.watcher.rolled_back(self._peer, int(ended.work.operations), reason)

    def _reject(self, delivery_id: i64, fault: Fault) -> None:
        """Refuse a command by its outcome, or by a detach if `rejected` is not taken (4.3)."""
        if not self._may_reject:
            raise LinkFault(fault.condition, fault.description, fault.info)
        self._link.settle(delivery_id, Rejected(error_of(fault)))

    # -- ends

    def forget(self, ended: OpenTransaction) -> None:
        """Remove `ended`, a transaction that was declared here and is not open any more."""
        del self._declared[ended.id]
        self._transactions.forget(ended)

    def give_up(self, why: str) -> None:
        """End the link, and roll back everything that was declared on it."""
        self._given_up = why
        self._link.detach(LinkFault(TRANSACTION_ROLLBACK, why))

    def incoming_ended(self, closed: bool) -> None:  # noqa: ARG002 - nothing outlives the link
        self._container.forget_link(self._peer.container_id, self._link, incoming=True)
        batch = self._container.journal.batch
        is_connection = self._peer.connection.is_ending
        reason = self._given_up or (CONNECTION_ENDED if is_connection else LINK_ENDED)
        for each in list(self._declared.values()):
            self.forget(each)
            each.work.roll_back(batch)
            self._tell_rolled_back(each, reason)
