"""The folder of audit records: its files, their names, and the head.

The head is a file with the number and hash of the last record that was written. It shows whether
records are missing at the end, which the chain alone cannot.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from broker.audit.record import ChainLink, hash_of

HEAD: Final = "head"
LOCK: Final = "lock"

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

TAIL_BYTES: Final = 64 * 1024
"""Bytes at the end of a file that are searched for its last line: several times the longest."""

_NAME: Final = re.compile(r"audit-([0-9]{12,18})-([0-9]{8})\.jsonl")
_HEAD: Final = re.compile(rb"([0-9]{20}) ([0-9a-f]{64})\n")


@dataclass(frozen=True, order=True)
class AuditFile:
    """One file of records: the number of its first one, and the day on which it began (UTC)."""

    first: int
    day: date
    path: Path


def file_for(folder: Path, first: int, day: date) -> AuditFile:
    """Return the file that begins with the record of number `first`."""
    return AuditFile(first, day, folder / f"audit-{first:012}-{day:%Y%m%d}.jsonl")


def files_in(folder: Path) -> list[AuditFile]:
    """Return the files of records in `folder`, the oldest first. OSError if it cannot be read."""
    found = []
    for path in folder.iterdir():
        matched = _NAME.fullmatch(path.name)
        if matched is None:
            continue
        try:
            day = date.fromisoformat(matched[2])
        except ValueError:
            continue
        found.append(AuditFile(int(matched[1]), day, path))
    return sorted(found)


def encoded_head(link: ChainLink) -> bytes:
    """Return the content of the head, which always has the same length."""
    return f"{link.seq:020} {link.hash}\n".encode("ascii")


def read_head(folder: Path) -> ChainLink | None:
    """Return the head; None if it is missing or cannot be understood."""
    try:
        matched = _HEAD.fullmatch((folder / HEAD).read_bytes())
    except OSError:
        return None
    return None if matched is None else ChainLink(int(matched[1]), matched[2].decode())


def write_head(folder: Path, link: ChainLink) -> None:
    """Write the head in place: it is one sector, so a crash leaves the old or the new one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(folder / HEAD, flags, FILE_MODE)
    try:
        os.pwrite(descriptor, encoded_head(link), 0)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class FileEnd:
    """The end of a file: its last complete line, None without one; the bytes up to its end; and
    the bytes after it, of a line that was not written to its end.
    """

    line: bytes | None
    end: int
    torn: bytes


def end_of(path: Path) -> FileEnd:
    """Return the end of a file of records. OSError if it cannot be read."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - TAIL_BYTES)
        file.seek(start)
        tail = file.read()
    cut = tail.rfind(b"\n") + 1
    torn = tail[cut:]
    if cut == 0:
        return FileEnd(None, start, torn)
    begins = tail.rfind(b"\n", 0, cut - 1) + 1
    return FileEnd(tail[begins : cut - 1], start + cut, torn)


def record_in(line: bytes) -> Mapping[str, object] | None:
    """Return the record in a line; None if it is no JSON object with a number `seq`."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("seq"), int):
        return None
    return found


def link_of(line: bytes) -> ChainLink | None:
    """Return the link of a record's line; None if it is no record."""
    record = record_in(line)
    if record is None:
        return None
    seq = record["seq"]
    assert isinstance(seq, int)
    return ChainLink(seq, hash_of(line))


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, with their line feeds. OSError if it cannot be read."""
    with path.open("rb") as file:
        yield from file
