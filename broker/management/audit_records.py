"""Audit records by management, the newest first. The files are read in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from broker.audit.folder import files_in, lines_of, record_in
from broker.audit.reading import RecordChoice, SinceError, time_in
from broker.audit.record import FIELDS
from broker.links.container import Container
from broker.management.entity import Entity, Operation
from broker.management.later import Later
from broker.management.page import Page, read_page
from broker.management.request import BAD_REQUEST, CONFLICT, FAILED, Refused, Request
from broker.management.response import Response

AUDIT_RECORD: Final = "audit-record"

NUMBER_MAX: Final = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class RecordSearch:
    """The newest `at_most` records with a number below `before` that `choice` has."""

    choice: RecordChoice
    before: int
    at_most: int

    def found_in(self, folder: Path) -> list[Mapping[str, object]]:
        """Return the records, the newest first. OSError if the files cannot be read."""
        found: list[Mapping[str, object]] = []
        for file in reversed(files_in(folder)):
            if file.first >= self.before:
                continue
            chosen = [record for record in map(record_in, lines_of(file.path)) if self._has(record)]
            found += [record for record in reversed(chosen) if record is not None]
            if len(found) >= self.at_most:
                break
        return found[: self.at_most]

    def _has(self, record: Mapping[str, object] | None) -> bool:
        if record is None:
            return False
        number = record["seq"]
        return isinstance(number, int) and number < self.before and self.choice.has(record)


class AuditRecords(Entity):
    """The records of the audit, if it is on."""

    type = AUDIT_RECORD
    part = "audit"
    attributes = FIELDS

    def __init__(self, container: Container) -> None:
        self._container: Final = container  # its audit is replaced at the start

    def operations(self) -> Mapping[str, Operation]:
        return {}

    def query(self, request: Request) -> Later:
        """Return records with a number below `before`, the newest first.

        `since` (as in records), `action` (a pattern) and `user` choose records. `next` of the
        response is the value of `before` for the next page, null at the end. Records of the last
        seconds may not be written yet.
        """
        page = read_page(request, self.attributes, "before", "since", "action", "user")
        if page.offset:
            raise Refused(BAD_REQUEST, "audit records have no offset: use the argument before")
        folder = self._container.audit.folder()
        if folder is None:
            raise Refused(CONFLICT, "the audit of this broker is off")
        try:
            since = time_in(request.text("since", ""))
        except SinceError as error:
            raise Refused(BAD_REQUEST, str(error)) from None
        search = RecordSearch(
            choice=RecordChoice(
                since=since,
                action=request.text("action", ""),
                user=request.text("user", ""),
            ),
            before=request.number("before", NUMBER_MAX, low=1, high=NUMBER_MAX),
            at_most=page.count,
        )
        return Later(partial(_answer, search, folder, page))


async def _answer(search: RecordSearch, folder: Path, page: Page) -> Response:
    loop = asyncio.get_running_loop()
    try:
        records = await loop.run_in_executor(None, search.found_in, folder)
    except OSError as error:
        text = f"the audit records cannot be read: {error.strerror}"
        return Response(status=FAILED, description=text)
    rows: list[object] = [[record.get(name) for name in page.attributes] for record in records]
    is_full = len(records) == search.at_most
    following = records[-1]["seq"] if is_full else None
    return Response(
        body={"attributeNames": list(page.attributes), "results": rows, "next": following},
        properties={"count": len(rows)},
    )
