"""What a store tells about itself to those who manage it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StoreFacts:
    """Sizes in bytes. `messages` is None where counting would take too long.

    `ballast_bytes` are kept free for a full disk, `ballast_missing_bytes` should be and are not.
    Since the start the ballast was released `ballast_releases` times, and the log could not be
    moved into the file for want of room `checkpoints_postponed` times.
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


@dataclass(frozen=True)
class QuarantinedMessage:
    """A message that is quarantined: `queue` is empty where that is not known, either."""

    number: int
    queue: str
    found_ms: int
    reason: str
    size: int
