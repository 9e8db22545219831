"""Open transactions: which client has declared them, how large they are, and their rollback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.links.container import Container
from broker.links.peer import Peer
from broker.links.transactions import NOT_STARTED, OpenTransaction
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import NOT_FOUND, Refused, Request
from broker.management.response import NO_CONTENT, Response

TRANSACTION: Final = "transaction"

ROLLED_BACK: Final = "an administrator has rolled the transaction back"
"""The reason that the client and the audit get."""


@dataclass(frozen=True, kw_only=True)
class TransactionRecord(EntityRecord):
    """A declared transaction. Its name is its txn-id in hexadecimal.

    `operations` are messages sent and acknowledged in it, `bytes` the memory that it keeps. It is
    rolled back in `remaining_ms`; 0 if its time has not begun, which it does with the first
    operation, or has no limit.
    """

    connection: str
    container_id: str
    user: str
    operations: int
    bytes: int
    remaining_ms: int


@dataclass(frozen=True)
class DeclaredTransaction:
    """A transaction and the connection that has declared it."""

    peer: Peer
    transaction: OpenTransaction

    def names(self) -> tuple[str, str]:
        """Return the name, and the identity, which has the connection."""
        name = self.transaction.id.hex()
        return name, f"{self.peer.id}/{name}"

    def record(self, now_ms: int) -> TransactionRecord:
        """Return the attributes; `now_ms` is on the clock of deadlines."""
        name, identity = self.names()
        work, deadline_ms = self.transaction.work, int(self.transaction.deadline_ms)
        is_timed = deadline_ms != NOT_STARTED
        return TransactionRecord(
            name=name,
            identity=identity,
            type=TRANSACTION,
            connection=str(self.peer.id),
            container_id=self.peer.container_id,
            user=self.peer.identity.user,
            operations=int(work.operations),
            bytes=int(work.memory),
            remaining_ms=max(0, deadline_ms - now_ms) if is_timed else 0,
        )


class TransactionEntity(Entity):
    """The open transactions of all connections."""

    type = TRANSACTION
    part = "connections"
    attributes = attributes_of(TransactionRecord)

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "ROLLBACK": self._roll_back}

    def _all(self) -> list[DeclaredTransaction]:
        return [
            DeclaredTransaction(peer, each)
            for peer in self._container.peers()
            for each in peer.transactions.all()
        ]

    def _record(self, declared: DeclaredTransaction) -> TransactionRecord:
        return declared.record(int(self._container.clock.now_ms()))

    def _found(self, request: Request) -> DeclaredTransaction:
        wanted = request.subject()
        for each in self._all():
            if each.names()[1] == wanted:
                return each
        raise Refused(NOT_FOUND, f"no transaction {wanted} is open")

    def query(self, request: Request) -> Response:
        """Return a page of transactions, by identity; the filter is for that."""
        page = read_page(request, self.attributes)
        found = {each.names()[1]: each for each in self._all()}
        return page.response(self._record(found[key]).as_map() for key in page.choose(found))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=self._all(),
            names_of=DeclaredTransaction.names,
            record_of=self._record,
            filters={"connection": "connection"},
        )
        return list_of(request, self.attributes, listing)

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        return Response(body=self._record(self._found(request)).as_map())

    def _roll_back(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Detach the link on which a transaction was declared, which rolls it back.

        The link's other transactions are rolled back, too: a JMS session has one at a time.
        """
        request.only()
        self._found(request).transaction.coordinator.give_up(ROLLED_BACK)
        return Response(status=NO_CONTENT, description="No Content")
