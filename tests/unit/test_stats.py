"""Counters by their names."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp import errors
from broker.routing.entries import dead_letter
from broker.stats import CAUSES, CONDITIONS, OTHER, Breakdown, Histogram, Stats

NAMES = list(Stats().as_dict())


def test_everything_starts_at_zero() -> None:
    assert set(Stats().as_dict().values()) == {0}


@pytest.mark.parametrize("name", NAMES)
def test_a_counter_is_shown_under_its_own_name(name: str) -> None:
    stats = Stats()
    setattr(stats, name, 3)
    assert stats.as_dict() == {each: 3 if each == name else 0 for each in NAMES}


def test_no_counter_is_left_out() -> None:
    stats = Stats()
    counters = [
        name
        for name in dir(stats)
        if not name.startswith("_") and isinstance(getattr(stats, name), int)
    ]
    assert sorted(NAMES) == sorted(counters)


@pytest.mark.requirement("OPS-04")
@given(st.lists(st.integers(-10, 2**45)), st.integers(1, 1000))
def test_a_histogram_counts_each_value_below_its_first_bound(values: list[int], least: int) -> None:
    counted = Histogram(least)
    for value in values:
        counted.observe(value)
    bounds = [*(least * 2**at for at in range(16)), math.inf]
    expected = [0] * 17
    for value in values:
        expected[next(at for at, bound in enumerate(bounds) if value <= bound)] += 1
    assert counted.counts == expected
    assert counted.total == sum(max(0, value) for value in values)


@pytest.mark.requirement("OPS-04")
def test_a_breakdown_counts_values_of_its_sets_and_all_others_as_one() -> None:
    counted = Breakdown(("red", "blue"), ("old", "new"))
    for labels in (("red", "old"), ("red", "old"), ("green", "new"), ("pink", "x"), ("blue", "x")):
        counted.add(*labels)
    assert counted.counts == {
        ("red", "old"): 2,
        (OTHER, "new"): 1,
        (OTHER, OTHER): 1,
        ("blue", OTHER): 1,
    }


def test_denied_access_is_counted_in_all_and_by_kind_and_verb() -> None:
    stats = Stats()
    for kind, verb in (("queue", "send"), ("queue", "send"), ("topic", "view")):
        stats.denied(kind, verb)
    assert stats.access_denied == 3
    assert stats.by.access_denied == {("queue", "send"): 2, ("topic", "view"): 1}


def test_the_conditions_and_causes_are_those_of_the_broker() -> None:
    assert set(CONDITIONS) <= {value for value in vars(errors).values() if isinstance(value, str)}
    assert {dead_letter.REJECTED, dead_letter.DELIVERY_LIMIT.reason} == set(CAUSES)
