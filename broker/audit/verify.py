"""Checks the chain of audit records over all files of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.audit.folder import AuditFile, files_in, lines_of, read_head, record_in
from broker.audit.record import BEGINNING, FIELDS, ChainLink, hash_of
from broker.audit.writer import RETENTION


@dataclass(frozen=True, kw_only=True)
class ChainReport:
    """The result of a check. `problem` is the first break of the chain, empty if it is sound.

    `file` and `line` (from 1) say where that is, if it is in a file; `torn_bytes` is the size of a
    last line that was not written to its end, which a broker that starts removes and records.
    """

    files: int
    records: int
    first: int
    last: ChainLink
    problem: str = ""
    file: Path | None = None
    line: int = 0
    torn_bytes: int = 0

    def is_sound(self) -> bool:
        """Return whether no record was changed, removed, added or exchanged."""
        return not self.problem


class ChainBreak(Exception):  # noqa: N818 - it is found, it does not go wrong
    """A break of the chain, in `file` at `line`."""

    def __init__(self, problem: str, file: Path | None = None, line: int = 0) -> None:
        super().__init__(problem)
        self.file: Final = file
        self.line: Final = line


class ChainCheck:
    """The check of one folder; `anchor` is a record that the operator has noted elsewhere."""

    def __init__(self, folder: Path, anchor: ChainLink | None = None) -> None:
        self._folder: Final = folder
        # read first: a running broker goes on writing
        self._head: Final = read_head(folder)
        self._anchor: Final = anchor
        self._files: Final = files_in(folder)
        self._records = 0
        self._first = 0
        self._before_first = BEGINNING
        self._last = BEGINNING
        self._removed: Final[set[ChainLink]] = set()
        self._torn = 0

    def report(self) -> ChainReport:
        """Read all files, and return the result. OSError if one cannot be read."""
        problem: ChainBreak | None = None
        try:
            for file in self._files:
                self._check_file(file)
            self._check_ends()
        except ChainBreak as found:
            problem = found
        return ChainReport(
            files=len(self._files),
            records=self._records,
            first=self._first,
            last=self._last,
            problem="" if problem is None else str(problem),
            file=None if problem is None else problem.file,
            line=0 if problem is None else problem.line,
            torn_bytes=self._torn,
        )

    def _check_file(self, file: AuditFile) -> None:
        for number, line in enumerate(lines_of(file.path), 1):
            if self._torn:
                raise ChainBreak("a line without its end is not the last one", file.path, number)
            if not line.endswith(b"\n"):
                self._torn = len(line)
                if file is not self._files[-1]:
                    raise ChainBreak("the last line of the file was cut", file.path, number)
                return
            problem = self._problem_of(line[:-1])
            if problem:
                raise ChainBreak(problem, file.path, number)

    def _problem_of(self, line: bytes) -> str:
        """Return why `line` is not the next record; empty if it is."""
        record = record_in(line)
        if record is None or tuple(record) != FIELDS:
            return "this line is no record"
        seq, previous = record["seq"], record["previous_hash"]
        assert isinstance(seq, int)
        if not self._records:
            self._first = seq
            self._before_first = self._last = ChainLink(seq - 1, str(previous))
        if seq != self._last.seq + 1:
            return _misplaced(seq, self._last.seq + 1)
        if previous != self._last.hash:
            return f"record {seq - 1} was changed, or record {seq} does not follow it"
        self._last = ChainLink(seq, hash_of(line))
        self._records += 1
        self._note_retention(record["action"], record["after"])
        if self._anchor is not None and self._anchor.seq == seq and self._anchor != self._last:
            return f"record {seq} is not the one that was noted"
        if self._head is not None and self._head.seq == seq and self._head != self._last:
            return f"record {seq} was changed: the file head has another hash of it"
        return ""

    def _note_retention(self, action: object, after: object) -> None:
        if action == RETENTION and isinstance(after, dict):
            seq, known_hash = after.get("up_to_seq"), after.get("up_to_hash")
            if isinstance(seq, int) and isinstance(known_hash, str):
                self._removed.add(ChainLink(seq, known_hash))

    def _check_ends(self) -> None:
        """Raise ChainBreak if records are missing before the first one, or after the last one."""
        before, last = self._before_first, self._last
        # retention may not have finished: it removes the oldest file first
        is_removed = any(each == before or each.seq > before.seq for each in self._removed)
        if before != BEGINNING and not is_removed:
            raise ChainBreak(
                f"the records before {self._first} are missing, and no record says that their"
                " retention was over"
            )
        if self._head is None:
            raise ChainBreak("the file head is missing: the last records may be, too")
        for name, link in (("the file head", self._head), ("what was noted", self._anchor)):
            if link is not None and link.seq > last.seq:
                file = self._files[-1].path if self._files else None
                missing = f"records {last.seq + 1} to {link.seq} are missing, by {name}"
                raise ChainBreak(missing, file)


def _misplaced(seq: int, expected: int) -> str:
    if seq > expected:
        missing = f"record {expected} is" if seq == expected + 1 else f"{expected} to {seq - 1} are"
        return f"{missing} missing before record {seq}"
    return f"record {seq} stands where record {expected} belongs"


def verify(folder: Path, anchor: ChainLink | None = None) -> ChainReport:
    """Check the chain of the records in `folder`. OSError if they cannot be read."""
    return ChainCheck(folder, anchor).report()
