"""Reads audit records, for people and programs that look for some of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from broker.audit.folder import files_in, lines_of, record_in

_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}(:[0-9]{2}(:[0-9]{2})?)?)?Z?")

TIMES: Final = "a time such as 2026-11-24 or 2026-11-24T04:05:06"
"""The form of `since`, for messages."""


class SinceError(ValueError):
    """A time from which records are wanted is none; the text says how one is written."""


def time_in(since: str) -> str:
    """Return `since` as the times in records are compared with it. Raise SinceError if it is none.

    An empty text is no limit.
    """
    if since and _TIME.fullmatch(since) is None:
        raise SinceError(f"since is {TIMES}")
    return since.removesuffix("Z")


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
