"""The store: its size, and the damaged messages in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.management.response import Response
from broker.routing.router import Router
from storage.api import Store
from storage.facts import QuarantinedMessage

STORE: Final = "store"
QUARANTINED: Final = "quarantined-message"


@dataclass(frozen=True, kw_only=True)
class StoreRecord(EntityRecord):
    """The one store. Sizes are bytes; `messages` is null if counting would take too long.

    The record includes the broker's memory, by use, because store and memory make up for each
    other: of `memory_max` bytes `memory_used` are in use.
    """

    schema: str
    file_bytes: int
    log_bytes: int
    unused_bytes: int
    free_bytes: int
    messages: int | None
    quarantined: int
    memory_max: int
    memory_used: int
    memory_nondurable: int
    memory_durable: int
    memory_held: int
    memory_leased: int
    memory_transactions: int
    memory_unfinished: int
    memory_output: int
    memory_staged: int
    memory_termini: int
    ballast_bytes: int
    ballast_missing_bytes: int
    ballast_releases: int
    checkpoints_postponed: int


@dataclass(frozen=True, kw_only=True)
class QuarantinedRecord(EntityRecord):
    """A stored message that is damaged, and will not be delivered. Its name is its number.

    `queue` is empty if it is unknown; `found_ms` is when the damage was found, in ms since 1970.
    """

    queue: str
    found_ms: int
    reason: str
    size: int


class Stores(Entity):
    """The store of this broker."""

    type = STORE
    part = "store"
    attributes = attributes_of(StoreRecord)

    def __init__(self, store: Store, router: Router) -> None:
        self._store: Final = store
        self._router: Final = router

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read}

    def query(self, request: Request) -> Later:
        page = read_page(request, self.attributes)

        async def answer() -> Response:
            return page.response([(await self._record()).as_map()])

        return Later(answer)

    def _read(self, request: Request, caller: Caller) -> Later:  # noqa: ARG002
        request.only()

        async def answer() -> Response:
            return Response(body=(await self._record()).as_map())

        return Later(answer)

    async def _record(self) -> StoreRecord:
        facts = await self._store.facts()
        memory = self._router.memory
        return StoreRecord(
            name=self._store.name,
            identity=STORE,
            type=STORE,
            schema=facts.schema,
            file_bytes=facts.file_bytes,
            log_bytes=facts.log_bytes,
            unused_bytes=facts.unused_bytes,
            free_bytes=facts.free_bytes,
            messages=facts.messages,
            quarantined=facts.quarantined,
            memory_max=memory.limit,
            memory_used=memory.total(),
            memory_nondurable=memory.volatile,
            memory_durable=memory.durable,
            memory_held=memory.held,
            memory_leased=memory.leased,
            memory_transactions=memory.transactions,
            memory_unfinished=memory.unfinished,
            memory_output=memory.output,
            memory_staged=memory.staged,
            memory_termini=memory.termini,
            ballast_bytes=facts.ballast_bytes,
            ballast_missing_bytes=facts.ballast_missing_bytes,
            ballast_releases=facts.ballast_releases,
            checkpoints_postponed=facts.checkpoints_postponed,
        )


class DamagedMessages(Entity):
    """Stored messages that are damaged, and therefore quarantined."""

    type = QUARANTINED
    part = "store"
    attributes = attributes_of(QuarantinedRecord)

    def __init__(self, store: Store) -> None:
        self._store: Final = store

    def operations(self) -> Mapping[str, Operation]:
        return {}

    def query(self, request: Request) -> Later:
        """Return messages with numbers above `after`, ascending. An offset is refused."""
        page = read_page(request, self.attributes, "after")
        if page.offset:
            raise Refused(BAD_REQUEST, "damaged messages have no offset: use the argument after")
        after = request.number("after", -1, low=-1, high=2**63 - 1)

        async def answer() -> Response:
            found = await self._store.quarantined_messages(after, page.count)
            return page.response(_record_of(each).as_map() for each in found)

        return Later(answer)


def _record_of(message: QuarantinedMessage) -> QuarantinedRecord:
    return QuarantinedRecord(
        name=str(message.number),
        identity=str(message.number),
        type=QUARANTINED,
        queue=message.queue,
        found_ms=message.found_ms,
        reason=message.reason,
        size=message.size,
    )
