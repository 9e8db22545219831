"""Rates of the last ten minutes, their curves, and quantiles of histograms."""

from __future__ import annotations

import pytest

from broker.http.console.sampling import (
    HEIGHT,
    KEPT,
    RECENT,
    SPARK_HEIGHT,
    SPARK_WIDTH,
    WIDTH,
    Sampler,
    curve,
    quantile_ms,
    spark,
)
from broker.stats import Histogram
from tests.support.broker import Broker

pytestmark = pytest.mark.requirement("OPS-06")


def test_rates_are_differences_between_samples() -> None:
    broker = Broker()
    sampler = Sampler(broker.container)
    assert sampler.rates() == []
    sampler.sample()
    broker.container.stats.published += 50
    broker.clock.advance(5000)
    sampler.sample()
    (rates,) = sampler.rates()
    assert (rates.received, rates.delivered, rates.ago_s) == (10.0, 0.0, 0)


def test_samples_are_limited() -> None:
    broker = Broker()
    sampler = Sampler(broker.container)
    for _ in range(2 * KEPT):
        sampler.sample()
    assert len(sampler.rates()) == KEPT - 1


def test_a_curve_ends_at_the_right() -> None:
    assert curve([], 1.0) == ""
    points = curve([0.0, 5.0, 10.0], 10.0).split()
    assert points[-1] == f"{WIDTH:.1f},0.0"
    assert points[0].endswith(f",{HEIGHT:.1f}")
    assert curve([0.0], 0.0) == f"{WIDTH:.1f},{HEIGHT:.1f}"


def test_the_line_of_a_tile_is_one_minute() -> None:
    assert spark([]) == spark([1.0]) == ""
    points = spark([float(number) for number in range(3 * RECENT)]).split()
    assert len(points) == RECENT
    assert points[-1] == f"{SPARK_WIDTH:.1f},0.0"
    assert spark([0.0, 0.0]).split()[0].endswith(f",{SPARK_HEIGHT:.1f}")


def test_dead_letters_are_counted_since_the_first_sample() -> None:
    broker = Broker()
    broker.container.stats.dead_lettered += 5
    sampler = Sampler(broker.container)
    sampler.sample()
    broker.container.stats.dead_lettered += 2
    assert sampler.dead_lettered() == 2


@pytest.mark.parametrize(
    ("values_us", "share", "bound_ms"),
    [
        pytest.param([], 0.99, None, id="no value"),
        pytest.param([100], 0.99, 0.25, id="one value"),
        pytest.param([100] * 98 + [900] * 2, 0.99, 1.0, id="a few slow ones"),
        pytest.param([10**9], 0.5, 16384.0, id="more than the last bound"),
    ],
)
def test_quantiles(values_us: list[int], share: float, bound_ms: float | None) -> None:
    histogram = Histogram(250)
    for value in values_us:
        histogram.observe(value)
    assert quantile_ms(histogram, share) == bound_ms
