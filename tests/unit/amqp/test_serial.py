"""Serial number arithmetic of 32 bits (RFC 1982)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp import serial

NUMBERS = st.integers(0, 2**32 - 1)
STEPS = st.integers(-(2**31), 2**31 - 1)


@given(NUMBERS, STEPS)
def test_ahead_undoes_add(start: int, step: int) -> None:
    assert serial.ahead(serial.add(start, step), start) == step


@given(NUMBERS, NUMBERS)
def test_a_sum_stays_within_32_bits(start: int, step: int) -> None:
    assert 0 <= serial.add(start, step) < 2**32


@given(NUMBERS, STEPS)
def test_one_is_before_the_other_or_behind_it(start: int, step: int) -> None:
    other = serial.add(start, step)
    if step == -(2**31):
        assert serial.compare(other, start) == -1, "undefined by RFC 1982: we say before"
    else:
        assert serial.compare(other, start) == (step > 0) - (step < 0)
        assert serial.compare(start, other) == -serial.compare(other, start)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(5, 5, 0, id="equal"),
        pytest.param(6, 5, 1, id="one ahead"),
        pytest.param(5, 6, -1, id="one behind"),
        pytest.param(0, 2**32 - 1, 1, id="ahead across the wrap"),
        pytest.param(2**32 - 1, 0, -1, id="behind across the wrap"),
        pytest.param(2**31 - 1, 0, 2**31 - 1, id="as far ahead as can be"),
        pytest.param(2**31, 0, -(2**31), id="half the ring counts as behind"),
    ],
)
def test_the_distance_of_two_numbers(one: int, other: int, expected: int) -> None:
    assert serial.ahead(one, other) == expected
