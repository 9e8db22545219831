"""The number of messages that producers may have under way, measured on a simulated clock."""

import pytest

from broker.routing.credit.ack_latency import AckLatency
from broker.routing.credit.commit_delay import CommitDelay
from broker.routing.credit.credit_pool import UNLIMITED
from broker.routing.credit.producer_window import (
    FIRST,
    LONGEST_REST_US,
    NARROWEST,
    REST_US,
    TRIAL_US,
    WIDEST,
)

HOLD_US = 2000
EVERY_US = 1000
"""Interval between two timed messages under load, in µs."""

SLOW = 10 * HOLD_US


class Measured:
    """The producer window of a queue under load, where one message at a time is timed."""

    def __init__(self) -> None:
        self.commit_delay = CommitDelay(HOLD_US)
        self.now_us = 1_000_000
        self._ack_latency = AckLatency(self.commit_delay)
        self.producer_window = self._ack_latency.producer_window
        self._number = 0

    def measure(self, lag_us: int, times: int = 1) -> int:
        """Let `times` messages be settled after `lag_us` each; return the window after that."""
        for _ in range(times):
            self._number += 1
            self.now_us += max(EVERY_US - lag_us, 0)
            self._ack_latency.arrived(self._number, self._number, self.now_us)
            self.now_us += lag_us
            self._ack_latency.settled(self.now_us)
        return int(self.producer_window.most)


HISTORIES = {
    # name: (lag in µs, number of messages) in turn, the resulting window of a producer
    "consumers are new": ([], FIRST),
    "one message was consumed soon": ([(100, 1)], FIRST),
    "eight messages were consumed soon": ([(100, 8)], FIRST + FIRST // 16),
    "consumers keep up for long": ([(100, 100)], WIDEST),
    "half of the hold is soon enough": ([(HOLD_US // 2, 100)], WIDEST),
    "one message alone came late": ([(100, 100), (2 * HOLD_US, 1)], WIDEST),
    "two did, one behind the other": ([(100, 100), (2 * HOLD_US, 2)], WIDEST * 3 // 4),
    "one came very late": ([(100, 100), (100 * HOLD_US, 1)], WIDEST * 3 // 4),
    "all come late": ([(100, 100), (2 * HOLD_US, 40)], NARROWEST),
    "all come very late": ([(100, 100), (SLOW, 7)], NARROWEST),
    "they come late for longer than a trial": ([(SLOW, TRIAL_US // SLOW + 3)], UNLIMITED),
    "after a trial they come soon again": ([(SLOW, TRIAL_US // SLOW + 3), (100, 20)], WIDEST),
}


@pytest.mark.parametrize(("lags_us", "most"), HISTORIES.values(), ids=HISTORIES.keys())
def test_how_much_producers_may_have_under_way(lags_us: list[tuple[int, int]], most: int) -> None:
    measured = Measured()
    measured.producer_window.begin()
    for lag_us, times in lags_us:
        measured.measure(lag_us, times)
    assert measured.producer_window.most == most


def test_messages_that_came_before_the_window_was_narrowed_do_not_narrow_it_again() -> None:
    measured = Measured()
    measured.producer_window.begin()
    measured.now_us += SLOW
    windows = set()
    for _ in range(10):
        measured.now_us += 1
        measured.producer_window.measured(SLOW, SLOW, measured.now_us)
        windows.add(measured.producer_window.most)
    (window,) = windows
    assert window < FIRST // 2


def test_consumers_that_are_neither_soon_nor_late_leave_the_window_as_it_is() -> None:
    measured = Measured()
    measured.producer_window.begin()
    window = measured.measure(HOLD_US * 5 // 8, 20)
    assert measured.measure(HOLD_US * 5 // 8, 100) == window


def test_commits_that_take_long_leave_consumers_more_time() -> None:
    measured = Measured()
    measured.producer_window.begin()
    for _ in range(20):
        measured.commit_delay.committed(5 * HOLD_US)
    assert measured.measure(2 * HOLD_US, 10) > FIRST


def test_while_much_is_unwritten_the_window_narrows_though_consumers_keep_up() -> None:
    measured = Measured()
    measured.producer_window.begin()
    measured.commit_delay.is_crowded = True
    assert measured.measure(100, 3) < FIRST // 2
    measured.commit_delay.is_crowded = False
    assert measured.measure(100, 100) == WIDEST


def test_slow_consumers_hold_producers_up_for_less_than_a_twentieth_of_the_time() -> None:
    measured = Measured()
    measured.producer_window.begin()
    limited_us, from_us = 0, measured.now_us
    while measured.now_us - from_us < 10 * LONGEST_REST_US:
        before_us = measured.now_us
        if measured.measure(SLOW) != UNLIMITED:
            limited_us += measured.now_us - before_us
    assert TRIAL_US < limited_us < (measured.now_us - from_us) // 20


def test_a_rest_after_consumers_have_kept_up_is_short_again() -> None:
    measured = Measured()
    measured.producer_window.begin()
    for _ in range(4):
        while measured.measure(SLOW) != UNLIMITED:
            pass
        while measured.measure(SLOW) == UNLIMITED:
            pass
    measured.measure(100, 20)
    while measured.measure(SLOW) != UNLIMITED:
        pass
    rested_from_us = measured.now_us
    while measured.measure(SLOW) == UNLIMITED:
        pass
    assert measured.now_us - rested_from_us <= REST_US + 2 * SLOW


def test_after_a_quiet_time_consumers_have_a_whole_trial_again() -> None:
    measured = Measured()
    measured.producer_window.begin()
    measured.measure(SLOW)
    measured.now_us += 60 * 1_000_000
    assert measured.measure(SLOW, TRIAL_US // SLOW) == NARROWEST


def test_where_there_are_no_consumers_producers_are_free() -> None:
    measured = Measured()
    assert measured.producer_window.most == UNLIMITED
    measured.producer_window.begin()
    measured.producer_window.forget()
    assert measured.producer_window.most == UNLIMITED
    measured.producer_window.begin()
    assert measured.producer_window.most == FIRST, "the next consumers are new"


def test_a_window_that_is_smaller_is_to_be_told() -> None:
    measured = Measured()
    measured.producer_window.begin()
    assert measured.producer_window.has_narrowed
    measured.producer_window.has_narrowed = False
    measured.measure(100, 10)
    assert not measured.producer_window.has_narrowed
    measured.measure(SLOW, 3)
    assert measured.producer_window.has_narrowed
