"""How far producers may be ahead, by what was measured on a clock that the test sets."""

import pytest

from broker.routing.headway import FREE, NARROWEST, REST_US, TRIAL_US, WIDEST, Headway

HOLD_US = 2000
EVERY_US = 100
"""So often something is measured under load."""


class Measured:
    """The headway of a queue under load, where one message after the other is timed."""

    def __init__(self) -> None:
        self.headway = Headway(HOLD_US)
        self.now_us = 1_000_000

    def measure(self, lag_us: int, times: int = 1) -> int:
        for _ in range(times):
            self.now_us += EVERY_US
            self.headway.measured(lag_us, self.now_us)
        return int(self.headway.most)


HISTORIES = [
    ("nothing is known", [], FREE),
    ("consumers keep up", [(HOLD_US // 2, 1000)], FREE),
    ("one message came late", [(HOLD_US, 1)], WIDEST * 3 // 4),
    ("several came late", [(HOLD_US, 3)], 216),
    ("all come late, a trial long", [(3 * HOLD_US, TRIAL_US // EVERY_US)], NARROWEST),
    ("all come late, longer than that", [(3 * HOLD_US, TRIAL_US // EVERY_US + 2)], FREE),
    ("a little late is kept narrow", [(HOLD_US * 3 // 4, 5 * TRIAL_US // EVERY_US)], NARROWEST),
    ("in time again stays as it is", [(HOLD_US, 1), (HOLD_US // 2, 1000)], WIDEST * 3 // 4),
    ("soon again gets more", [(HOLD_US, 1), (HOLD_US // 4, 1)], 408),
    ("soon again for long is free", [(HOLD_US, 50), (HOLD_US // 4, 100)], FREE),
]


@pytest.mark.parametrize(
    ("lags_us", "most"), [each[1:] for each in HISTORIES], ids=[each[0] for each in HISTORIES]
)
def test_how_far_producers_may_be_ahead(lags_us: list[tuple[int, int]], most: int) -> None:
    measured = Measured()
    for lag_us, times in lags_us:
        measured.measure(lag_us, times)
    assert measured.headway.most == most


def test_a_slow_consumer_holds_producers_up_for_a_twentieth_of_the_time_at_most() -> None:
    measured = Measured()
    limited = 0
    for _ in range(20 * REST_US // EVERY_US):
        limited += measured.measure(10 * HOLD_US) != FREE
    assert limited <= 20 * (TRIAL_US // EVERY_US + 2)


def test_after_a_quiet_time_consumers_have_a_whole_trial_again() -> None:
    measured = Measured()
    measured.measure(HOLD_US)
    measured.now_us += 60 * 1_000_000
    assert measured.measure(3 * HOLD_US) < WIDEST
    assert measured.measure(3 * HOLD_US, TRIAL_US // EVERY_US - 1) == NARROWEST


@pytest.mark.parametrize(
    ("producers", "each"),
    [(0, 384), (1, 384), (2, 192), (100, 3), (1000, 1)],
    ids=["none is one", "one has all", "two have half", "a hundred", "one message at least"],
)
def test_what_each_of_several_producers_gets(producers: int, each: int) -> None:
    measured = Measured()
    measured.measure(HOLD_US)
    assert measured.headway.of_each(producers) == each


def test_each_of_several_is_free_where_all_are() -> None:
    assert Headway(HOLD_US).of_each(7) == FREE


def test_where_nobody_consumes_producers_are_free() -> None:
    measured = Measured()
    measured.measure(HOLD_US, 50)
    measured.headway.forget()
    assert measured.headway.most == FREE
