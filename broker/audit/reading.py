"""Reads audit records, for people and programs that look for some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from broker.audit.folder import files_in, lines_of, record_in


@dataclass(frozen=True, kw_only=True)
class RecordChoice:
    """A choice of records: those at `since` (as in records) or later, with an action that matches
    the pattern, of that user or about it. An empty text chooses all.
    """

    since: str = ""
    action: str = ""
    user: str = ""

    def has(self, record: Mapping[str, object]) -> bool:
        """Return whether `record` is chosen."""
        if self.since and str(record.get("at")) < self.since:
            return False
        if self.action and not fnmatchcase(str(record.get("action")), self.action):
            return False
        named = (record.get("actor"), record.get("resource"))
        return not self.user or named[0] == self.user or named[1] == f"user:{self.user}"


def records(folder: Path, wanted: RecordChoice) -> Iterator[Mapping[str, object]]:
    """Yield the records in `folder` that are wanted, the oldest first; lines that are none are
    left out. OSError if the files cannot be read.
    """
    for file in files_in(folder):
        for line in lines_of(file.path):
            record = record_in(line)
            if record is not None and wanted.has(record):
                yield record
