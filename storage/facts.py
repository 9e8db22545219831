"""What a store tells about itself to those who manage it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class StoreFacts:
    """Sizes in bytes. `messages` is None where counting would take too long."""

    schema: str = ""
    file_bytes: int = 0
    log_bytes: int = 0
    unused_bytes: int = 0
    free_bytes: int = -1
    messages: int | None = 0
    quarantined: int = 0


@dataclass(frozen=True)
class SetAside:
    """A message that is set aside: `queue` is empty where that is not known, either."""

    number: int
    queue: str
    found_ms: int
    reason: str
    size: int
