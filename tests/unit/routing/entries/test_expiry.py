"""The expiry of a message."""

import pytest

from broker.message import NEVER
from broker.routing.entries import expiry

CASES = {
    "without expiry, long ago": (NEVER, 10**15, False),
    "a moment before": (1000, 999, False),
    "at that very moment": (1000, 1000, True),
    "afterwards": (1000, 1001, True),
    "expired before it came": (1, 1000, True),
}


@pytest.mark.requirement("PRD-04")
@pytest.mark.parametrize(("expires_at_ms", "now_ms", "expected"), CASES.values(), ids=CASES.keys())
def test_expiry(expires_at_ms: int, now_ms: int, expected: bool) -> None:
    assert expiry.has_expired(expires_at_ms, now_ms) is expected
