"""Ascending numbers, and ranges of them."""

import pytest

from storage.sql.segments.ranges import ascending, index_of, joined, ranges

RANGES = [
    pytest.param([], [], id="nothing"),
    pytest.param([5], [(5, 5)], id="one"),
    pytest.param([3, 1, 2], [(1, 3)], id="in any order"),
    pytest.param([1, 2, 4, 5, 9], [(1, 2), (4, 5), (9, 9)], id="with gaps"),
    pytest.param([2, 2, 3, 3], [(2, 3)], id="said twice"),
]


@pytest.mark.parametrize(("numbers", "expected"), RANGES)
def test_ranges(numbers: list[int], expected: list[tuple[int, int]]) -> None:
    assert ranges(numbers) == expected


ASCENDING = [
    pytest.param([], [], id="nothing"),
    pytest.param([3, 1, 2], [1, 2, 3], id="in any order"),
    pytest.param([1, 1, 2], [1, 2], id="said twice"),
]


@pytest.mark.parametrize(("numbers", "expected"), ASCENDING)
def test_each_once_in_order(numbers: list[int], expected: list[int]) -> None:
    assert ascending(numbers) == expected


def test_what_ascends_is_not_copied() -> None:
    numbers = [0, 1, 7]
    assert ascending(numbers) is numbers


@pytest.mark.parametrize("near", range(7))
def test_where_a_number_is_does_not_depend_on_where_one_looks_first(near: int) -> None:
    numbers = [10, 20, 21, 30, 40]
    assert [index_of(numbers, number, near) for number in (5, 10, 11, 21, 22, 40, 41)] == [
        *(0, 0, 1, 2, 3, 4, 5)
    ]
    assert index_of([], 5, near) == 0


def test_what_follows_directly_is_joined() -> None:
    assert joined([(1, 64), (65, 70), (72, 80), (81, 81)]) == [(1, 70), (72, 81)]
    assert joined([]) == []
