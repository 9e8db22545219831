"""Facts about a store for operators: sizes, counts, quarantined messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StoreFacts:
    """Sizes in bytes, and counts. `messages` is None if counting would take too long.

    `ballast_bytes` are reserved now for the case of a full disk, `ballast_missing_bytes` should be
    reserved but are not. `ballast_releases` counts the releases of the ballast since the start,
    `checkpoints_postponed` the times that the disk had no room to move the log into the file.
    `free_bytes` is -1 if unknown.
    """

    schema: str = ""
    file_bytes: int = 0
    log_bytes: int = 0
    unused_bytes: int = 0
    free_bytes: int = -1
    messages: int | None = 0
    quarantined: int = 0
    ballast_bytes: int = 0
    ballast_missing_bytes: int = 0
    ballast_releases: int = 0
    checkpoints_postponed: int = 0


@dataclass(frozen=True, kw_only=True)
class DiskSpace:
    """Bytes of the store's files, and of the disk that they are on."""

    used: int
    free: int
    total: int


@dataclass(frozen=True)
class QuarantinedMessage:
    """A quarantined message. `queue` is empty if unknown, `found_ms` is wall time in ms."""

    number: int
    queue: str
    found_ms: int
    reason: str
    size: int
