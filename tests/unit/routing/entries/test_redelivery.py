"""Limits on delivery attempts, and pauses for release loops."""

import pytest

from broker.routing.entries import redelivery
from broker.routing.entries.redelivery import DELAY_MAX_MS, Disposal

PAUSES = {
    "the first release": (1, 0),
    "the last one that is free": (9, 0),
    "the tenth in a row": (10, 100),
    "the eleventh": (11, 200),
    "the fourteenth": (14, 1600),
    "the fifteenth": (15, 3200),
    "the sixteenth": (16, 5000),
    "one of very many": (10**6, 5000),
}

LIMITS = {
    "no failure": (0, 20, False),
    "one left": (19, 20, False),
    "the last one": (20, 20, True),
    "beyond, after the limit was lowered": (21, 20, True),
    "a single attempt": (1, 1, True),
    "no limit": (10**6, 0, False),
    "no limit and no failure": (0, 0, False),
}


@pytest.mark.attack("R6")
@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(("releases", "expected"), PAUSES.values(), ids=PAUSES.keys())
def test_a_release_loop_is_slowed_down(releases: int, expected: int) -> None:
    assert redelivery.pause_after(releases) == expected


@pytest.mark.attack("R6")
@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(("failures", "limit", "expected"), LIMITS.values(), ids=LIMITS.keys())
def test_attempts_are_limited(failures: int, limit: int, expected: bool) -> None:
    assert redelivery.is_exhausted(failures, limit) is expected


DELAYS = {
    # name: (failures, first_ms, factor, at_most_ms), the delay in ms
    "none is configured": ((3, 0, 2.0, 0), 0),
    "the first failure": ((1, 1000, 2.0, 0), 1000),
    "the second one": ((2, 1000, 2.0, 0), 2000),
    "the fourth one": ((4, 1000, 2.0, 0), 8000),
    "the fourth one, limited": ((4, 1000, 2.0, 5000), 5000),
    "the first one, limited": ((1, 1000, 2.0, 500), 500),
    "always the same": ((50, 1000, 1.0, 0), 1000),
    "a factor between": ((3, 1000, 1.5, 0), 2250),
    "growing beyond a month": ((30, 60_000, 2.0, 0), DELAY_MAX_MS),
    "a limit beyond a month": ((30, 60_000, 2.0, 2**53), DELAY_MAX_MS),
    "very many failures": ((10**9, 1, 100.0, 0), DELAY_MAX_MS),
    "a very long first one": ((1, 2**53, 100.0, 0), DELAY_MAX_MS),
}


@pytest.mark.parametrize(("asked", "expected"), DELAYS.values(), ids=DELAYS.keys())
def test_the_next_attempt_waits(asked: tuple[int, int, float, int], expected: int) -> None:
    failures, first_ms, factor, at_most_ms = asked
    delay = redelivery.delay_after(
        failures, first_ms=first_ms, factor=factor, at_most_ms=at_most_ms
    )
    assert delay == expected


def test_only_an_attempt_that_failed_makes_the_next_one_wait() -> None:
    failures = [disposal for disposal in Disposal if redelivery.is_failure(disposal)]
    assert failures == [Disposal.FAIL, Disposal.FAIL_ELSEWHERE]
