"""Backups: copies of the store, made while the broker serves clients, one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.audit import record as audited
from broker.audit.audit import Audit
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Spawn
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import ACCEPTED, Response
from storage.api import Store, StoreError

BACKUP: Final = "backup"

RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"


@dataclass(frozen=True, kw_only=True)
class BackupRecord(EntityRecord):
    """The last backup since the start. Its name is the file; sizes are bytes.

    `state` is running, done or failed; `problem` says why it failed, else it is empty.
    """

    state: str
    bytes: int
    total_bytes: int
    problem: str


class Backups(Entity):
    """The last backup since the start, finished or running. Earlier ones are not listed."""

    type = BACKUP
    part = "store"
    attributes = attributes_of(BackupRecord)

    def __init__(self, store: Store, spawn: Spawn, audit: Audit) -> None:
        self._audit: Final = audit
        self._store: Final = store
        self._spawn: Final = spawn
        self._file = ""
        self._state = ""
        self._problem = ""
        self._bytes = 0
        self._total = 0

    def operations(self) -> Mapping[str, Operation]:
        return {"CREATE": self._create, "READ": self._read}

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        chosen = page.choose([self._file] if self._file else [])
        return page.response(self._record().as_map() for _ in chosen)

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        if not self._file or request.subject() != self._file:
            raise Refused(NOT_FOUND, f"no backup to {request.subject()} since the start")
        return Response(body=self._record().as_map())

    def _create(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Begin to copy the store to the new file of that name; READ reports the progress."""
        request.only()
        name = request.subject()
        file = Path(name)
        if "\0" in name or not file.is_absolute():
            raise Refused(BAD_REQUEST, "a backup is named by a file, from the root: /…")
        if self._state == RUNNING:
            raise Refused(CONFLICT, f"a backup to {self._file} is under way")
        try:
            is_there, has_folder = file.exists(), file.parent.is_dir()
        except OSError as error:
            raise Refused(BAD_REQUEST, f"{name:.100}: {error.strerror}") from None
        if not has_folder:
            raise Refused(NOT_FOUND, f"no folder {file.parent} on the broker's machine: create it")
        if is_there:
            raise Refused(CONFLICT, f"{file} is there already: name a new file")
        self._file, self._state, self._problem = name, RUNNING, ""
        self._bytes = self._total = 0
        self._spawn(self._run())
        return Response(status=ACCEPTED, description="Accepted", body=self._record().as_map())

    async def _run(self) -> None:
        try:
            await self._store.back_up(self._file, self._told)
        except StoreError as error:
            self._state, self._problem = FAILED, str(error)
            self._audited("backup.failed", audited.FAILED, {"reason": str(error)})
        else:
            self._state = DONE
            self._audited("backup.done", audited.DONE, {"bytes": self._total})

    def _audited(self, action: str, result: str, facts: Mapping[str, object]) -> None:
        resource = f"backup:{self._file}"
        self._audit.record(
            audited.AuditEvent(action=action, resource=resource, result=result, after=facts)
        )

    def _told(self, done: int, total: int) -> None:
        self._bytes, self._total = done, total

    def _record(self) -> BackupRecord:
        return BackupRecord(
            name=self._file,
            identity=self._file,
            type=BACKUP,
            state=self._state,
            bytes=self._bytes,
            total_bytes=self._total,
            problem=self._problem,
        )
