"""Rows of messages, their ranges and checksums."""

import pytest

from storage.sql.rows import BODY, Rows, checksum, ranges
from tests.unit.storage.test_batch import stored

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


def test_messages_of_their_own_have_their_bytes_in_their_rows() -> None:
    rows = Rows([stored(1), None, stored(3)], {"q": 4})
    assert [row[0] for row in rows.messages] == [1, 3]
    assert {row[1] for row in rows.messages} == {4}


def test_copies_share_a_body() -> None:
    first, second, third = stored(1), stored(2), stored(3)
    assert first.encoded is second.encoded is third.encoded
    rows = Rows([first, second, third], {"q": 1})
    assert rows.bodies == [(1, b"x")]
    assert [(row[BODY], row[BODY + 1]) for row in rows.messages] == [(1, None)] * 3
