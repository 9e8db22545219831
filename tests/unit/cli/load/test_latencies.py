"""A histogram of latencies: its precision, its memory, and its percentiles."""

from __future__ import annotations

import random

import pytest

from broker.cli.load.latencies import Latencies

pytestmark = pytest.mark.requirement("OPS-18")


def latencies_of(*values_ns: int) -> Latencies:
    latencies = Latencies()
    for each in values_ns:
        latencies.add(each)
    return latencies


def test_without_latencies_there_is_no_percentile() -> None:
    assert not Latencies()
    assert Latencies().percentile_ns(50) is None


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (1, 1), (50, 50), (90, 90), (99, 99), (99.9, 100), (100, 100)]
)
def test_a_percentile(percent: float, expected: int) -> None:
    assert latencies_of(*range(1, 101)).percentile_ns(percent) == expected


@pytest.mark.parametrize("value_ns", [0, 1, 127, 128, 999, 12_345, 1_000_000, 987_654_321_000])
def test_a_value_is_known_to_one_percent(value_ns: int) -> None:
    assert latencies_of(value_ns).percentile_ns(100) == pytest.approx(value_ns, rel=0.01)


def test_a_clock_that_went_backwards_counts_as_no_latency() -> None:
    assert latencies_of(-5).percentile_ns(100) == 0


def test_percentiles_of_many_are_those_of_the_sorted_values() -> None:
    generator = random.Random(1)
    values_ns = sorted(int(generator.lognormvariate(13, 2)) for _ in range(20_000))
    latencies = latencies_of(*values_ns)
    for percent in (50, 90, 99, 99.9):
        exact = values_ns[round(len(values_ns) * percent / 100) - 1]
        assert latencies.percentile_ns(percent) == pytest.approx(exact, rel=0.01)
    # a value takes a bucket of its own only below 128 ns
    assert latencies.buckets < 2000


def test_merged_latencies_are_those_of_both() -> None:
    both = latencies_of(1, 2)
    both.merge(latencies_of(2, 100))
    assert [both.percentile_ns(percent) for percent in (25, 50, 75, 100)] == [1, 2, 2, 100]
