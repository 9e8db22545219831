"""Percentiles, and the requests that a slow one delayed."""

from __future__ import annotations

from math import inf

import pytest

from tests.attacks.latency import Sample, held_up, latency, percentile


@pytest.mark.parametrize(
    ("took_ms", "every_ms", "expected"),
    [
        pytest.param(1.0, 10.0, [], id="in time"),
        pytest.param(10.0, 10.0, [], id="just in time"),
        pytest.param(10.5, 10.0, [0.5], id="the next one was late"),
        pytest.param(35.0, 10.0, [25.0, 15.0, 5.0], id="three were late"),
    ],
)
def test_requests_that_were_held_up(took_ms: float, every_ms: float, expected: list[float]) -> None:
    assert held_up(took_ms, every_ms) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        pytest.param(0, 1, id="the least"),
        pytest.param(50, 2, id="the middle of four is the second"),
        pytest.param(51, 3, id="just above the middle"),
        pytest.param(99, 4, id="few values have no tail"),
        pytest.param(100, 4, id="the largest"),
    ],
)
def test_percentile(percent: float, expected: float) -> None:
    assert percentile([1, 2, 3, 4], percent) == expected


def test_one_stall_shows_in_p99_though_it_is_one_request_of_many() -> None:
    quick = [Sample(number / 100, 1.0) for number in range(500)]
    stalled = latency([*quick, Sample(5.0, 1000.0)], every_ms=10.0)
    assert stalled.count == 501
    assert stalled.p50_ms == 1.0
    assert stalled.p99_ms > 900
    assert stalled.max_ms == 1000.0


def test_without_requests_every_bound_is_exceeded() -> None:
    nothing = latency([], every_ms=10.0)
    assert (nothing.count, nothing.p99_ms) == (0, inf)
    assert nothing.text() == "-"
