"""Suspended links: clients, links and deliveries that may be resumed, and their end by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.journal import Journal
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import NOT_FOUND, Refused, Request
from broker.management.response import NO_CONTENT, Response
from broker.routing.router import Router
from broker.routing.termini.suspended import SuspendedTerminus
from broker.routing.topics.lifetime import NEVER_ENDS

SUSPENDED_LINK: Final = "suspended-link"

SENDER: Final = "sender"
RECEIVER: Final = "receiver"


@dataclass(frozen=True, kw_only=True)
class SuspendedLinkRecord(EntityRecord):
    """A link that has ended, and whose unsettled deliveries another one of its name may resume.

    Its name is the link's, its identity a number. `role` is the client's. `bytes` is the memory
    that it takes, with its messages. `since_ms` is wall time. It ends in `remaining_ms`; null while
    its session or connection goes on, and for a subscription that never ends.
    """

    container_id: str
    user: str
    role: str
    address: str
    unsettled: int
    bytes: int
    since_ms: int
    expiry_policy: str
    remaining_ms: int | None


def record_of(terminus: SuspendedTerminus, now_ms: int) -> SuspendedLinkRecord:
    """Return the attributes of `terminus`; `now_ms` is on the clock of deadlines."""
    container_id, name, is_sender = terminus.key
    deadline_ms = int(terminus.expiry.deadline_ms)
    return SuspendedLinkRecord(
        name=name,
        identity=str(int(terminus.number)),
        type=SUSPENDED_LINK,
        container_id=container_id,
        user=terminus.user,
        role=SENDER if is_sender else RECEIVER,
        address=terminus.address,
        unsettled=terminus.count(),
        bytes=int(terminus.memory),
        since_ms=int(terminus.since_ms),
        expiry_policy=terminus.expiry.terms.policy,
        remaining_ms=None if deadline_ms == NEVER_ENDS else max(0, deadline_ms - now_ms),
    )


class SuspendedLinks(Entity):
    """All suspended links."""

    type = SUSPENDED_LINK
    part = "connections"
    attributes = attributes_of(SuspendedLinkRecord)

    def __init__(self, router: Router, journal: Journal) -> None:
        self._router: Final = router
        self._journal: Final = journal

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "END": self._end}

    def _record(self, terminus: SuspendedTerminus) -> SuspendedLinkRecord:
        return record_of(terminus, int(self._router.clock.now_ms()))

    def _found(self, request: Request) -> SuspendedTerminus:
        wanted = request.subject()
        for each in self._router.termini.all():
            if str(int(each.number)) == wanted:
                return each
        raise Refused(NOT_FOUND, f"no suspended link {wanted}")

    def query(self, request: Request) -> Response:
        """Return a page of suspended links, by identity; the filter is for that."""
        page = read_page(request, self.attributes)
        found = {str(int(each.number)): each for each in self._router.termini.all()}
        return page.response(self._record(found[key]).as_map() for key in page.choose(found))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=self._router.termini.all(),
            names_of=lambda each: (each.key[1], str(int(each.number))),
            record_of=self._record,
        )
        return list_of(request, self.attributes, listing)

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        return Response(body=self._record(self._found(request)).as_map())

    def _end(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """End a suspended link: its messages wait again, and its outcomes are forgotten."""
        request.only()
        self._router.termini.end(self._found(request), self._journal.batch)
        return Response(status=NO_CONTENT, description="No Content")
