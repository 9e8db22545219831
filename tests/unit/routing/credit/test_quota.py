"""Token buckets: what a rate allows after a time, and how long a debt lasts."""

from __future__ import annotations

import pytest

from broker.routing.credit.credit_pool import SIZE_GUESSED, UNLIMITED
from broker.routing.credit.quota import (
    TURNS_PER_S,
    WAIT_MAX_MS,
    BacklogSource,
    Quota,
    TokenBucket,
)
from broker.routing.timer_queue import TimerQueue
from tests.support.clock import SimulatedClock

pytestmark = pytest.mark.requirement("SEC-05")

LARGEST = 2**50


class Empty(BacklogSource):
    """A user without messages."""

    def backlog_bytes(self) -> int:
        return 0


FILLED = [
    # rate, taken at 0 ms, looked at after ms, tokens then, ms until a portion then
    pytest.param(100, 0, 0, 100, 0, id="full at first"),
    pytest.param(100, 0, 5000, 100, 0, id="no more than those of a second"),
    pytest.param(100, 100, 0, 0, 21, id="all taken"),
    pytest.param(100, 100, 10, 1, 11, id="one after ten milliseconds"),
    pytest.param(100, 100, 9, 0, 12, id="none a millisecond before"),
    pytest.param(100, 350, 1000, -150, 1000, id="a debt"),
    pytest.param(100, 350, 2500, 0, 21, id="a debt that is paid"),
    pytest.param(100, 350, 100_000, 100, 0, id="a debt long ago"),
    pytest.param(1, 1, 0, 0, WAIT_MAX_MS, id="one each second"),
    pytest.param(1, 1, 999, 0, 2, id="not yet"),
    pytest.param(1, 1, 1000, 1, 0, id="now"),
    pytest.param(LARGEST, LARGEST, 86_400_000, LARGEST, 0, id="the largest rate, a day later"),
    pytest.param(LARGEST, LARGEST, 1, LARGEST // 1000, 20, id="the largest rate, at once"),
    pytest.param(0, 5, 1000, 0, 0, id="no rate"),
]


@pytest.mark.parametrize(("rate", "taken", "after_ms", "tokens", "wait_ms"), FILLED)
def test_a_bucket(rate: int, taken: int, after_ms: int, tokens: int, wait_ms: int) -> None:
    bucket = TokenBucket(rate, 0)
    bucket.take(taken)
    bucket.fill(after_ms)
    assert bucket.tokens() == tokens
    assert bucket.wait_ms() == pytest.approx(wait_ms, abs=1)


def test_many_looks_add_up_to_the_rate() -> None:
    bucket = TokenBucket(333, 0)
    bucket.take(333)
    for now_ms in range(1001):
        bucket.fill(now_ms)
    assert bucket.tokens() == 333


def test_what_is_given_back_is_no_more_than_a_second_allows() -> None:
    bucket = TokenBucket(10, 0)
    bucket.take(3)
    bucket.take(-7)
    assert (bucket.tokens(), bucket.is_full()) == (10, True)


CHANGED = [
    pytest.param(100, 10, 10, id="less"),
    pytest.param(100, 200, 100, id="more, which is there after a second"),
    pytest.param(0, 100, 100, id="a first one"),
    pytest.param(100, 0, 0, id="none any more"),
]


@pytest.mark.parametrize(("before", "after", "tokens"), CHANGED)
def test_another_rate(before: int, after: int, tokens: int) -> None:
    bucket = TokenBucket(before, 0)
    bucket.limit(after, 0)
    assert bucket.tokens() == tokens


ALLOWED = [
    # messages and bytes per second, messages and bytes used, size of messages, credit for one
    pytest.param(0, 0, 5, 5, 0, UNLIMITED, id="no rates"),
    pytest.param(1000, 0, 0, 0, 0, 1000 // TURNS_PER_S, id="a portion of messages"),
    pytest.param(10, 0, 0, 0, 0, 1, id="at least one message"),
    pytest.param(1000, 0, 995, 0, 0, 5, id="what is left"),
    pytest.param(1000, 0, 1000, 0, 0, 0, id="nothing left"),
    pytest.param(0, 10_000_000, 0, 0, 0, 200_000 // SIZE_GUESSED, id="a portion of bytes"),
    pytest.param(0, 10_000_000, 0, 0, 50_000, 4, id="of large messages"),
    pytest.param(0, 10_000_000, 0, 0, 999_999, 1, id="at least one large message"),
    pytest.param(0, 10_000_000, 0, 9_999_999, 50_000, 1, id="one for the last byte"),
    pytest.param(0, 10_000_000, 0, 10_000_000, 0, 0, id="no byte left"),
    pytest.param(1000, 10_000_000, 0, 0, 0, 20, id="the stricter one: messages"),
    pytest.param(1_000_000, 10_000_000, 0, 0, 50_000, 4, id="the stricter one: bytes"),
    pytest.param(1000, 10_000_000, 0, 10_000_000, 0, 0, id="both are needed"),
]


@pytest.mark.parametrize(("messages", "octets", "sent", "received", "size", "allowed"), ALLOWED)
def test_credit_for_one_producer(
    messages: int, octets: int, sent: int, received: int, size: int, allowed: int
) -> None:
    quota = Quota(SimulatedClock(), TimerQueue(), Empty())
    quota.limit(messages_per_s=messages, bytes_per_s=octets)
    quota.pay(sent)
    quota.received(received)
    assert quota.allowance(size) == allowed


def test_a_user_that_has_used_nothing_owes_nothing() -> None:
    clock = SimulatedClock()
    quota = Quota(clock, TimerQueue(), Empty())
    quota.limit(messages_per_s=10, bytes_per_s=1000)
    assert quota.is_full()
    quota.received(2500)
    clock.advance(2400)
    assert not quota.is_full()
    clock.advance(200)
    assert quota.is_full()
