"""Quantities as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pyspark_amqp.jobs.quantities import NONE, duration, moment, number, short_number


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, NONE),
        (0, "0 µs"),
        (0.004, "4 µs"),
        (2, "2 ms"),
        (999.6, "1,000 ms"),
        (1500, "1.5 s"),
        (59_000, "59 s"),
        (60_000, "1 min"),
        (95_000, "1 min 35 s"),
        (3_600_000, "1 h"),
        (93_600_000, "1 d 2 h"),
    ],
)
def test_a_duration_has_the_largest_unit(ms: float | None, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("value", "text", "short"),
    [(0, "0", "0"), (0.25, "0.25", "0.25"), (1234, "1,234", "1.23k"), (5e6, "5,000,000", "5M")],
)
def test_numbers(value: float, text: str, short: str) -> None:
    assert number(value) == text
    assert short_number(value) == short


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(minutes=5), "14:05:09"),
        (timedelta(hours=5), "14:05"),
        (timedelta(days=2), "01-31 14:05"),
        (timedelta(days=9), "2026-01-31"),
    ],
)
def test_a_time_is_as_precise_as_its_period_needs(span: timedelta, text: str) -> None:
    assert moment(datetime(2026, 1, 31, 14, 5, 9, tzinfo=UTC), span) == text
