"""Send times of deliveries, from marks: exact to the grain, with few marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.send_times import GRAIN_MS, MARKS_MAX, SendTimes

CASES = [
    # notes (the number below which all deliveries were sent, and the time), a number, its time
    ("the first write", [(5, 1000)], 4, 1000),
    ("a write within the grain counts as the one before", [(5, 1000), (9, 1050)], 8, 1000),
    ("a later one has a time of its own", [(5, 1000), (9, 1100)], 5, 1100),
    ("the older one keeps its time", [(5, 1000), (9, 1100)], 4, 1000),
    ("an hour of silence in between", [(5, 1000), (6, 1050), (7, 3_601_050)], 6, 3_601_050),
    ("nothing was noted", [], 3, 0),
]


def note(times: SendTimes, following: int, now_ms: int, *, oldest: int = 0) -> None:
    """Record that the deliveries below `following` have been sent by `now_ms`."""
    if times.wants_mark(now_ms):
        times.mark(now_ms, oldest=oldest)
    times.following = following


@pytest.mark.parametrize(
    ("notes", "number", "sent_ms"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_delivery_was_sent(notes: list[tuple[int, int]], number: int, sent_ms: int) -> None:
    times = SendTimes()
    for following, now_ms in notes:
        note(times, following, now_ms)
    assert times.sent_ms(number) == sent_ms


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 500)), min_size=1, max_size=50))
def test_no_delivery_seems_younger_than_it_is_or_older_by_more_than_the_grain(
    writes: list[tuple[int, int]],
) -> None:
    times = SendTimes()
    sent: list[int] = []
    now_ms = 1
    for count, later_ms in writes:
        now_ms += later_ms
        sent += [now_ms] * count
        note(times, len(sent), now_ms)
    for number, at_ms in enumerate(sent):
        assert at_ms - GRAIN_MS < times.sent_ms(number) <= at_ms


def test_marks_stay_few_and_the_oldest_stays_exact() -> None:
    times = SendTimes()
    for number in range(100_000):
        note(times, number + 1, 1000 + number * GRAIN_MS)
    assert len(times._numbers) <= MARKS_MAX + 1
    assert times.sent_ms(0) == 1000
    assert times.sent_ms(99_999) == 1000 + 99_999 * GRAIN_MS


def test_what_is_settled_needs_no_marks() -> None:
    times = SendTimes()
    for number in range(1000):
        note(times, number + 1, 1000 + number * GRAIN_MS, oldest=number - 10)
        assert len(times._numbers) <= 12
    assert times.sent_ms(990) == 1000 + 990 * GRAIN_MS
