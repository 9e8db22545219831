"""Effects of failed deliveries (RCV-02, RCV-08): attempt limits, pauses for release loops."""

from enum import Enum
from typing import Final

from mypy_extensions import i64


class Disposal(Enum):
    """Treatment of a queue entry whose delivery has ended."""

    REMOVE = "remove"
    RELEASE = "return, uncounted"
    COUNT = "return and raise delivery-count, not held against the limit"
    FAIL = "return and count the failure"
    ELSEWHERE = "return, never again to this link"
    FAIL_ELSEWHERE = "return and count the failure, never again to this link"
    DEAD_LETTER = "dead-letter"


def is_failure(disposal: Disposal) -> bool:
    """Return whether the attempt failed, so that the entry may have to wait for the next one."""
    return disposal is Disposal.FAIL or disposal is Disposal.FAIL_ELSEWHERE


def is_refusal(disposal: Disposal) -> bool:
    """Return whether the consumer will never get that entry again, so that others have to."""
    return disposal is Disposal.ELSEWHERE or disposal is Disposal.FAIL_ELSEWHERE


RELEASES_FREE: Final[i64] = 9
"""Maximum releases of one entry in a row by one link without a pause; the next costs a pause."""

PAUSE_FIRST_MS: Final[i64] = 100
PAUSE_MAX_MS: Final[i64] = 5000


def pause_after(releases: i64) -> i64:
    """Return how long, in ms, an entry waits for a link after that number of releases in a row."""
    over = releases - RELEASES_FREE
    if over <= 0:
        return 0
    if over > 6:
        return PAUSE_MAX_MS
    return min(PAUSE_MAX_MS, PAUSE_FIRST_MS << (over - 1))


def is_exhausted(failures: i64, max_delivery_count: i64) -> bool:
    """Return whether an entry with `failures` is to be dead-lettered; a limit of 0 is never."""
    return 0 < max_delivery_count <= failures


ATTEMPTS_COUNTED: Final[i64] = 100
"""Failures after which a pause grows no more. The settings allow a factor of 100 at most, so its
power is a finite float."""

DELAY_MAX_MS: Final[i64] = 30 * 24 * 3600 * 1000
"""The longest pause after a failure, in ms (30 days), whatever the settings allow."""


def delay_after(failures: i64, *, first_ms: i64, factor: float, at_most_ms: i64) -> i64:
    """Return how long, in ms, an entry waits after its failure number `failures`.

    Each wait is `factor` times the last one; `first_ms` 0 is no wait. `at_most_ms` 0 is
    DELAY_MAX_MS.
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
"""Disposal of a settled delivery whose outcome was rolled back.

A consumer that acknowledged or refused the message has had it: the attempt failed (RCV-08). A
consumer that gave it back has not, and undeliverable-here is rolled back like all else.
"""


def rolled_back(outcome: Disposal) -> Disposal:
    """Return the disposal of an entry whose `outcome` was in a rolled-back transaction."""
    return AFTER_ROLLBACK[outcome]
