"""What a case can come to: passed, failed, or not applicable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Verdict(Enum):
    """Passed, failed, or why neither can be said."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


RESET: Final = "a connection that was reset"


class Failed(Exception):  # noqa: N818 - a verdict, not an error of the harness
    """The broker broke the rule: `expected` and `got` in words."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = expected
        self.got = got

    @property
    def is_end(self) -> bool:
        """Whether the broker had closed the socket."""
        return self.got.startswith(("the end of the stream", RESET))

    @property
    def is_silence(self) -> bool:
        """Whether nothing came in time."""
        return self.got.startswith("nothing for ")


class NotApplicable(Exception):  # noqa: N818 - as above
    """The case cannot be tried on this broker, for a reason to be told."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Options:
    """Where the broker is, and what a user told the harness about it.

    `address` is a queue that exists; where it is None every case uses an address of its own,
    which the broker makes when it is attached to. `missing_address` is one that it will not make.
    `blocking_address` and `rejecting_address` are queues of less than a thousand messages, to be
    emptied: full, the one gives no credit, the other rejects.
    """

    host: str
    port: int
    user: str | None = None
    password: str | None = None
    address: str | None = None
    missing_address: str | None = None
    blocking_address: str | None = None
    rejecting_address: str | None = None
    timeout_s: float = 5.0


def require(claim: object, expected: str, got: object) -> None:
    """Fail where `claim` is false; `got` is shown as it is written in Python."""
    if not claim:
        raise Failed(expected, got if isinstance(got, str) else repr(got))
