"""The input buffer, which keeps the beginning of a frame until the rest arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.frames import HEAD_SIZE
from broker.amqp.input import Input


def holding(data: bytes, *, wanted: int = HEAD_SIZE) -> Input:
    """Return an input that keeps `data`, the beginning of `wanted` bytes."""
    kept = Input()
    kept.keep(data, 0)
    kept.wanted = wanted
    return kept


def test_what_comes_is_passed_on_where_nothing_is_kept() -> None:
    data = b"x"
    assert Input().join(data) is data


def test_nothing_is_given_up_before_there_is_a_frame_header() -> None:
    kept = holding(b"1234")
    assert kept.join(b"567") is None
    assert kept.size == 7
    assert kept.join(b"8") == b"12345678"
    assert kept.size == 0


def test_nothing_is_given_up_before_as_much_has_come_as_is_wanted() -> None:
    kept = holding(b"12345678", wanted=12)
    assert kept.join(b"9ab") is None
    assert kept.join(b"cde") == b"123456789abcde"


def test_an_empty_piece_changes_nothing() -> None:
    kept = holding(b"1234")
    assert kept.join(b"") is None
    assert kept.join(b"5678") == b"12345678"


@pytest.mark.parametrize(
    ("at", "left"),
    [
        pytest.param(0, b"abc", id="all of it"),
        pytest.param(2, b"c", id="what lies behind the last frame"),
        pytest.param(3, b"", id="nothing behind the last frame"),
    ],
)
def test_what_is_kept_is(at: int, left: bytes) -> None:
    kept = Input()
    kept.keep(b"abc", at)
    assert kept.size == len(left)
    assert kept.take() == left
    assert kept.size == 0


def test_what_has_come_may_be_taken_before_it_is_enough() -> None:
    kept = holding(b"12")
    assert kept.join(b"34") is None
    assert kept.take() == b"1234"
    assert kept.join(b"5") == b"5", "it starts anew"


def test_what_has_come_may_be_forgotten() -> None:
    kept = holding(b"12")
    kept.clear()
    assert kept.size == 0
    assert kept.join(b"3") == b"3"


@given(st.binary(min_size=9, max_size=60), st.lists(st.integers(1, 9), max_size=60))
def test_pieces_come_out_as_they_went_in(data: bytes, cuts: list[int]) -> None:
    """A reader of eight bytes at a time gets all of a stream in order, however it is cut."""
    kept = Input()
    seen = b""
    at = 0
    for size in [*cuts, len(data)]:
        piece = data[at : at + size]
        at += size
        whole = kept.join(piece)
        if whole is not None:
            eights = len(whole) // HEAD_SIZE * HEAD_SIZE
            seen += whole[:eights]
            kept.keep(whole, eights)
    assert seen + kept.take() == data
