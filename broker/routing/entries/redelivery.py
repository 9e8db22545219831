"""What a failed delivery leads to (RCV-02, RCV-08): attempt limits, pauses for release loops."""

from enum import Enum
from typing import Final

from mypy_extensions import i64


class Disposal(Enum):
    """What becomes of a queue entry once its delivery has ended."""

    REMOVE = "remove"
    RELEASE = "return, uncounted"
    COUNT = "return and raise delivery-count, not held against the limit"
    FAIL = "return and count the failure"
    ELSEWHERE = "return, never again to this link"
    FAIL_ELSEWHERE = "return and count the failure, never again to this link"
    DEAD_LETTER = "dead-letter"


def is_failure(disposal: Disposal) -> bool:
    """Whether the attempt failed, so that the entry may have to wait for the next one."""
    return disposal is Disposal.FAIL or disposal is Disposal.FAIL_ELSEWHERE


def is_refusal(disposal: Disposal) -> bool:
    """Whether the consumer will never have that entry again, so that others have to."""
    return disposal is Disposal.ELSEWHERE or disposal is Disposal.FAIL_ELSEWHERE


RELEASES_FREE: Final[i64] = 9
"""How often in a row a link may release one entry before the next release costs it a pause."""

PAUSE_FIRST_MS: Final[i64] = 100
PAUSE_MAX_MS: Final[i64] = 5000


def pause_after(releases: i64) -> i64:
    """How long, in ms, an entry released so often in a row by one link waits for that link."""
    over = releases - RELEASES_FREE
    if over <= 0:
        return 0
    if over > 6:
        return PAUSE_MAX_MS
    return min(PAUSE_MAX_MS, PAUSE_FIRST_MS << (over - 1))


def is_exhausted(failures: i64, max_delivery_count: i64) -> bool:
    """Whether an entry that failed so often goes to the dead-letter node; 0 = never."""
    return 0 < max_delivery_count <= failures


ATTEMPTS_COUNTED: Final[i64] = 100
"""Beyond so many failures a pause grows no more; the settings' factor is small enough for that."""

DELAY_MAX_MS: Final[i64] = 30 * 24 * 3600 * 1000
"""The longest pause after a failure, where the settings name none."""


def delay_after(failures: i64, *, first_ms: i64, factor: float, at_most_ms: i64) -> i64:
    """How long, in ms, an entry that failed so often waits; each wait is `factor` times the last.

    `at_most_ms` 0 is DELAY_MAX_MS.
    """
    if first_ms <= 0:
        return 0
    longest = at_most_ms if 0 < at_most_ms < DELAY_MAX_MS else DELAY_MAX_MS
    grown: float = float(first_ms) * factor ** float(min(failures, ATTEMPTS_COUNTED) - 1)
    if grown >= float(longest):
        return longest
    return i64(int(grown))


AFTER_ROLLBACK: Final[dict[Disposal, Disposal]] = {
    Disposal.REMOVE: Disposal.FAIL,
    Disposal.DEAD_LETTER: Disposal.FAIL,
    Disposal.FAIL: Disposal.FAIL,
    Disposal.FAIL_ELSEWHERE: Disposal.FAIL,
    Disposal.COUNT: Disposal.COUNT,
    Disposal.RELEASE: Disposal.RELEASE,
    Disposal.ELSEWHERE: Disposal.RELEASE,
}
"""What an outcome that was rolled back leaves of a settled delivery.

Whoever acknowledged a message, or refused it, has had it: the attempt failed (RCV-08). Whoever
gave it back had not, and its place of return is as little decided as anything else.
"""


def rolled_back(outcome: Disposal) -> Disposal:
    """The disposal of an entry whose `outcome` was part of a transaction that was rolled back."""
    return AFTER_ROLLBACK[outcome]
