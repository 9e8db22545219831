"""Ranges of numbers, and checksums of rows."""

import pytest

from storage.sql.rows import checksum, ranges

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


def test_a_checksum_tells_place_and_content() -> None:
    assert len({checksum(1, b"x"), checksum(2, b"x"), checksum(1, b"y")}) == 3
