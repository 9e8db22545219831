"""Writes audit records to files: the chain, rotation, retention, and repairs after a crash.

All calls block, and are to be made in one thread at a time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from broker.audit.folder import (
    FILE_MODE,
    FOLDER_MODE,
    LOCK,
    AuditFile,
    end_of,
    file_for,
    files_in,
    link_of,
    read_head,
    write_head,
)
from broker.audit.record import (
    BEGINNING,
    FAILED,
    AuditEvent,
    ChainLink,
    body_of,
    hash_of,
    line_of,
)

REPAIRED: Final = "audit.repaired"
DAMAGED: Final = "audit.damaged"
RETENTION: Final = "audit.retention"


@dataclass(frozen=True)
class AuditLimits:
    """The sizes of audit files. A file is closed at `file_bytes`, and at the end of the day (UTC).

    The oldest files are deleted beyond `total_bytes`, and once all their records are older than
    `retention_days`; 0 is no limit.
    """

    file_bytes: int
    total_bytes: int
    retention_days: int


@dataclass(frozen=True)
class PendingRecord:
    """A record that is not written yet: the wall-clock ms of its event, and its encoded fields."""

    at_ms: int
    body: str


class AuditWriter:
    """The files of one folder, and the end of their chain. `told` are lines for the operator.

    Another process that writes to the same folder would break the chain, so the folder is locked.
    """

    def __init__(self, folder: Path, limits: AuditLimits, *, wall_ms: Callable[[], int]) -> None:
        self.told: Final[list[str]] = []
        self.folder: Final = folder
        self._limits: Final = limits
        self._wall_ms: Final = wall_ms
        self._lock = -1
        self._descriptor = -1
        self._file: AuditFile | None = None
        self._size = 0
        self._is_spoilt = False  # there may be bytes of a failed write behind `_size`
        self._link = BEGINNING
        self._found: list[AuditEvent] = []

    @property
    def link(self) -> ChainLink:
        """The last record that was written, once the folder is open."""
        return self._link

    # -- the folder

    def open(self) -> None:
        """Lock the folder, and continue its chain. Raise OSError if that is impossible."""
        if self._lock >= 0:
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._continue()
        except BlockingIOError as error:
            os.close(lock)
            raise OSError(error.errno, "another broker writes to this folder") from None
        except OSError:
            os.close(lock)
            raise
        self._lock = lock

    def _continue(self) -> None:
        """Find the last record, and note what is wrong with the end of the chain."""
        self._found = []
        files = files_in(self.folder)
        self._file = files[-1] if files else None
        last: bytes | None = None
        for file in reversed(files):
            ending = end_of(file.path)
            if ending.torn:
                self._cut(file, ending.end, ending.torn)
            if ending.line is None and ending.end > 0:
                self._file = None  # its end is no line, so none may follow it
            last = ending.line
            if last is not None:
                break
        head = read_head(self.folder)
        self._link = self._followed(last, head)
        if not files and head is None:
            write_head(self.folder, self._link)
        self._descriptor = -1

    def _cut(self, file: AuditFile, end: int, torn: bytes) -> None:
        """Remove a line that was not written to its end, as after a kill or a power cut."""
        os.truncate(file.path, end)
        self._found.append(
            AuditEvent(
                action=REPAIRED,
                resource=file.path.name,
                after={"removed_bytes": len(torn), "removed_sha256": hash_of(torn)},
            )
        )
        self.told.append(
            f"audit: the last record in {file.path} was not written to its end,"
            f" and was removed ({len(torn)} bytes)"
        )

    def _followed(self, last: bytes | None, head: ChainLink | None) -> ChainLink:
        """Return the link that the next record follows; note what is missing before it."""
        found = BEGINNING if last is None else link_of(last)
        if found is None:
            assert last is not None
            found = ChainLink(0 if head is None else head.seq, hash_of(last))
            self._note_damage("the last record cannot be read", found, head)
        elif head is not None and (
            head.seq > found.seq or (head.seq == found.seq and head != found)
        ):
            self._note_damage("the last records were changed or removed", found, head)
            found = ChainLink(head.seq, found.hash)
        elif head is None and last is not None:
            self._note_damage("the file head is missing", found, head)
        return found

    def _note_damage(self, what: str, found: ChainLink, head: ChainLink | None) -> None:
        facts: dict[str, object] = {"what": what, "found_seq": found.seq, "found_hash": found.hash}
        if head is not None:
            facts |= {"expected_seq": head.seq, "expected_hash": head.hash}
        self._found.append(AuditEvent(action=DAMAGED, result=FAILED, after=facts))
        self.told.append(f"audit: {what}, in {self.folder}; `jms-broker audit verify` shows where")

    def close(self) -> None:
        """Close the files, and unlock the folder. Idempotent."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._lock = -1

    # -- records

    def append(self, pending: Sequence[PendingRecord]) -> None:
        """Write records to the disk, all of them or none: OSError then, and they may come again."""
        self.open()
        now_ms = self._wall_ms()
        day = _day_of(now_ms)
        if self._descriptor >= 0:
            self._look(day)
        is_new = self._open_file(day)
        found = [PendingRecord(now_ms, body_of(event)) for event in self._found]
        self._write([*found, *pending])
        self._found = []
        if is_new:
            try:
                self._retire(day, now_ms)
            except OSError as error:  # the records are written all the same
                self.told.append(f"audit: old files were not deleted: {error}")

    def keep_house(self) -> None:
        """Delete files that are too old, if there are any. Raise OSError if that is impossible."""
        self.open()
        now_ms = self._wall_ms()
        day = _day_of(now_ms)
        if self._outdated(day):
            if self._descriptor >= 0:
                self._look(day)
            self._open_file(day)
            self._retire(day, now_ms)

    def _look(self, day: date) -> None:
        """Close the current file if it is full, of another day, or was changed by someone else."""
        file = self._file
        assert file is not None
        try:
            there = file.path.stat()
            own = os.fstat(self._descriptor)
            is_same = (there.st_ino, there.st_dev) == (own.st_ino, own.st_dev)
            size = there.st_size if is_same else -1
        except FileNotFoundError:
            size = -1
        is_changed = size != self._size and not self._is_spoilt
        if is_changed:
            facts: dict[str, object] = {"file": file.path.name, "expected_bytes": self._size}
            self._found.append(
                AuditEvent(action=DAMAGED, result=FAILED, after={**facts, "found_bytes": size})
            )
            self.told.append(f"audit: {file.path} was changed by another program")
        if is_changed or file.day != day or self._size >= self._limits.file_bytes:
            self._leave_file()

    def _leave_file(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1
        self._file = None
        self._is_spoilt = False

    def _open_file(self, day: date) -> bool:
        """Open the file for the next record; return whether it is a new one."""
        if self._descriptor >= 0:
            return False
        last = self._file
        if last is not None and (
            last.day != day or last.path.stat().st_size >= self._limits.file_bytes
        ):
            last = None
        file = file_for(self.folder, self._link.seq + 1, day) if last is None else last
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(file.path, flags, FILE_MODE)
        self._size = os.fstat(self._descriptor).st_size
        self._file = file
        if last is None:
            _sync_folder(self.folder)
        return last is None

    def _write(self, pending: Sequence[PendingRecord]) -> None:
        link = self._link
        lines = []
        for each in pending:
            line = line_of(each.body, at_ms=each.at_ms, previous=link)
            link = ChainLink(link.seq + 1, hash_of(line))
            lines.append(line + b"\n")
        data = b"".join(lines)
        if self._is_spoilt:
            os.ftruncate(self._descriptor, self._size)
        self._is_spoilt = True
        try:
            _write_all(self._descriptor, data)
            os.fdatasync(self._descriptor)
        except OSError:
            # else what was written stays, in front of the records of the next attempt
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
                self._is_spoilt = False
            raise
        self._is_spoilt = False
        self._size += len(data)
        self._link = link
        with suppress(OSError):  # an old head only shows less
            write_head(self.folder, link)

    # -- retention

    def _outdated(self, day: date) -> list[AuditFile]:
        """Return the files that retention deletes, the oldest first; never the newest one."""
        files = files_in(self.folder)
        days, total_max = self._limits.retention_days, self._limits.total_bytes
        oldest_day = day - timedelta(days=days) if 0 < days < day.toordinal() else date.min
        sizes = [file.path.stat().st_size for file in files]
        total = sum(sizes)
        outdated = []
        for file, size in zip(files[:-1], sizes, strict=False):
            # a file has the records of one day
            if file.day >= oldest_day and not 0 < total_max < total:
                break
            outdated.append(file)
            total -= size
        return outdated

    def _retire(self, day: date, now_ms: int) -> None:
        """Delete old files, after a record that says up to which one."""
        outdated = self._outdated(day)
        ends = [line for file in outdated if (line := end_of(file.path).line) is not None]
        link = link_of(ends[-1]) if ends else None
        if link is not None:
            event = AuditEvent(
                action=RETENTION,
                after={"files": len(outdated), "up_to_seq": link.seq, "up_to_hash": link.hash},
            )
            self._write([PendingRecord(now_ms, body_of(event))])
        for file in outdated:
            file.path.unlink(missing_ok=True)


def _day_of(at_ms: int) -> date:
    """Return the day (UTC) of a wall-clock time in milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date()


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`: a write may take only a part of it, as before a disk is full."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
