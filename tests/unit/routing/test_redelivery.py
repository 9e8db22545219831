"""Attempt limits, and pauses for release loops."""

import pytest

from broker.routing import redelivery

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


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(("releases", "expected"), PAUSES.values(), ids=PAUSES.keys())
def test_a_release_loop_is_slowed_down(releases: int, expected: int) -> None:
    assert redelivery.pause_after(releases) == expected


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(("failures", "limit", "expected"), LIMITS.values(), ids=LIMITS.keys())
def test_attempts_are_limited(failures: int, limit: int, expected: bool) -> None:
    assert redelivery.is_exhausted(failures, limit) is expected
