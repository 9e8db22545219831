"""A broker's writes to its store and talk with its clients, in order, as recorded by strace.

strace stops each thread at the entry and the exit of a system call, so the order of lines agrees
with cause and effect: a completed sync precedes the outcome that waited for it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

WRITING: Final = ("pwrite64", "pwritev", "write", "writev")
SYNCING: Final = ("fsync", "fdatasync")
SPEAKING: Final = ("write", "writev", "sendto", "sendmsg")
HEARING: Final = ("read", "readv", "recvfrom", "recvmsg")
OTHERS: Final = ("openat", "ftruncate", "unlink", "rename", "link", "fallocate")
TRACED: Final = sorted({*WRITING, *SYNCING, *SPEAKING, *HEARING, *OTHERS})

IGNORED: Final = ("-shm", ".lock", ".ballast")
"""Endings of files that a power cut may destroy: SQLite makes its shared memory anew."""


@dataclass(frozen=True)
class Write:
    """Bytes were written to a file."""

    file: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class Truncate:
    """A file was given another length."""

    file: str
    size: int


@dataclass(frozen=True)
class Opened:
    """A file was opened in a way that creates it if it is missing."""

    file: str


@dataclass(frozen=True)
class Removed:
    """A file's name was removed."""

    file: str


@dataclass(frozen=True)
class SyncBegan:
    """A sync has begun; it makes all earlier writes to the file durable. `token` identifies it."""

    file: str
    token: int


@dataclass(frozen=True)
class Synced:
    """A sync has returned; `file` is empty for the folder itself."""

    file: str
    token: int


@dataclass(frozen=True)
class Said:
    """Bytes were written to a socket: from now on the client may have read them."""

    connection: str
    data: bytes


@dataclass(frozen=True)
class Heard:
    """Bytes were read from a socket: the broker did not know them before."""

    connection: str
    data: bytes


Event = Write | Truncate | Opened | Removed | SyncBegan | Synced | Said | Heard


def command(trace: Path) -> list[str]:
    """Return the start of a command; the command of the process to record follows it."""
    return [
        *("strace", "-f", "-yy", "-xx", "-s", "100000000", "-o", str(trace)),
        *("-e", "trace=" + ",".join(TRACED), "-e", "signal=none"),
    ]


@cache
def reason_not_to() -> str | None:
    """Return why nothing can be recorded here, None if it can. Tracing a child takes no root."""
    if shutil.which("strace") is None:
        return "there is no strace here (on Debian: strace)"
    tried = subprocess.run(
        ["strace", "-f", "-e", "trace=fsync", "-o", "/dev/null", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if tried.returncode == 0 else f"strace may not trace: {tried.stderr.strip()}"


LINE: Final = re.compile(r"^(\d+) +(.*)$")
CALL: Final = re.compile(r"^(\w+)\((.*)\) += (-?\d+|\?)(.*)$")
RESUMED: Final = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$")
UNFINISHED: Final = " <unfinished ...>"
STRING: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
DESCRIPTOR: Final = re.compile(r"^(?:\d+|AT_FDCWD)<((?:[^>]|(?<=-)>)*)>")


class TraceError(Exception):
    """The trace has something that this module does not know; stopping prevents overlooking it."""


def events_of(trace: Path, folder: Path, run: str = "") -> list[Event]:
    """Return the events of files in `folder` and of connections, whose names begin with `run`."""
    return list(_Reading(folder, run).events(trace))


class _Reading:
    """One pass through a trace."""

    def __init__(self, folder: Path, run: str) -> None:
        self._folder: Final = str(folder)
        self._mark: Final = _in_hex(str(folder).encode())
        self._run: Final = run
        self._begun: Final[dict[str, tuple[str, int]]] = {}
        self._tokens = 0

    def events(self, trace: Path) -> Iterator[Event]:
        with trace.open() as lines:
            for line in lines:
                yield from self._events_in(line.rstrip("\n"))

    def _events_in(self, line: str) -> Iterator[Event]:
        found = LINE.match(line)
        if found is None:
            return
        thread, text = found[1], found[2]
        resumed = RESUMED.match(text)
        if resumed is not None:
            begun, token = self._begun.pop(thread, ("", 0))
            if begun:
                yield from self._ended(begun + resumed[2], token, was_told=True)
        elif self._concerns(text):
            if text.endswith(UNFINISHED):
                begun = text.removesuffix(UNFINISHED)
                self._tokens += 1
                self._begun[thread] = (begun, self._tokens)
                yield from self._entered(begun, self._tokens)
            else:
                self._tokens += 1
                yield from self._ended(text, self._tokens, was_told=False)

    def _concerns(self, text: str) -> bool:
        return "<TCP" in text or self._mark in text

    def _entered(self, begun: str, token: int) -> Iterator[Event]:
        """Yield events that count from a call's entry on: they may happen at any moment then."""
        name = begun.partition("(")[0]
        if name in HEARING or name in OTHERS:
            return
        complete = f"{begun}) = {_asked(begun)}" if name in WRITING + SPEAKING else f"{begun}) = 0"
        for event in self._ended(complete, token, was_told=False):
            if not isinstance(event, Synced):
                yield event

    def _ended(self, text: str, token: int, *, was_told: bool) -> Iterator[Event]:
        found = CALL.match(text)
        if found is None:
            if "exited" in text or "killed" in text:
                return
            raise TraceError(text[:200])
        name, arguments, result = found[1], found[2], found[3]
        if result == "?":
            return  # killed during the call
        if int(result) < 0:
            if name in SYNCING and self._name(arguments) is not None:
                raise TraceError(f"a sync failed: {text[:200]}")
            return
        if was_told and name in WRITING + SPEAKING:
            return
        if "<TCP" in arguments:
            yield from self._talked(name, arguments, int(result))
        else:
            yield from self._stored(name, arguments, found[4], token=token, told=was_told)

    def _talked(self, name: str, arguments: str, size: int) -> Iterator[Event]:
        where = DESCRIPTOR.match(arguments)
        if where is None or size == 0:
            return
        connection = self._run + where[1]
        if name in SPEAKING:
            yield Said(connection, _bytes_in(arguments)[:size])
        elif name in HEARING:
            yield Heard(connection, _bytes_in(arguments)[:size])

    def _stored(
        self, name: str, arguments: str, behind: str, *, token: int, told: bool
    ) -> Iterator[Event]:
        if name in ("openat", "unlink"):
            path = _path_in(behind if name == "openat" else arguments)
            file = self._inside(path)
            if file and name == "unlink":
                yield Removed(file)
            elif file and "O_CREAT" in arguments:
                yield Opened(file)
            return
        file = self._name(arguments)
        if name in ("rename", "link"):
            file = self._inside(_path_in(arguments))
        if file is None or name in HEARING:
            return
        if name in SYNCING:
            if not told:
                yield SyncBegan(file, token)
            yield Synced(file, token)
        elif name == "ftruncate":
            yield Truncate(file, int(arguments.rpartition(",")[2]))
        elif name == "pwrite64":
            yield Write(file, int(arguments.rpartition(",")[2]), _bytes_in(arguments))
        else:
            raise TraceError(f"{name} of {file}: nobody has said what a power cut makes of that")

    def _name(self, arguments: str) -> str | None:
        """Return the file named by the first argument: empty for the folder, None for others."""
        found = DESCRIPTOR.match(arguments)
        return None if found is None else self._inside(_decoded(found[1]))

    def _inside(self, path: str) -> str | None:
        if path == self._folder:
            return ""
        pure = PurePosixPath(path)
        if str(pure.parent) != self._folder or path.endswith(IGNORED):
            return None
        return pure.name


def _asked(begun: str) -> int:
    """Return the most bytes that an unfinished call may have written: all it was given."""
    return len(_bytes_in(begun))


def _in_hex(text: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text)


def _decoded(text: str) -> str:
    return bytes.fromhex(text.replace("\\x", "")).decode() if text.startswith("\\x") else text


def _bytes_in(text: str) -> bytes:
    return b"".join(bytes.fromhex(each.replace("\\x", "")) for each in STRING.findall(text))


def _path_in(text: str) -> str:
    found = STRING.search(text)
    if found is not None:
        return bytes.fromhex(found[1].replace("\\x", "")).decode()
    within = re.search(r"<([^>]*)>", text)
    return _decoded(within[1]) if within is not None else ""
