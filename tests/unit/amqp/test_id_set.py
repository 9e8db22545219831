"""A set of ids from which ranges are taken, compared with a plain set."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.id_set import LAST, IdSet

IDS: Final = (
    st.integers(0, 600)
    | st.sampled_from([0, 255, 256, 65_535, 65_536, 2**24 - 1, 2**24, 2**31, LAST - 256, LAST])
    | st.integers(0, LAST)
)
STEP: Final = st.tuples(st.sampled_from(["add", "add", "add", "discard", "take"]), IDS, IDS)


def holding(*ids: int) -> IdSet:
    found = IdSet()
    for number in ids:
        found.add(number)
    return found


@pytest.mark.parametrize(
    ("first", "last", "taken"),
    [
        pytest.param(0, LAST, [0, 1, 255, 256, 70_000, LAST], id="all"),
        pytest.param(1, 256, [1, 255, 256], id="some"),
        pytest.param(2, 254, [], id="a gap within a word"),
        pytest.param(257, 69_999, [], id="a gap of many words"),
        pytest.param(70_001, LAST - 1, [], id="the widest gap"),
        pytest.param(LAST, 1, [LAST, 0, 1], id="across the wrap"),
        pytest.param(256, 255, [256, 70_000, LAST, 0, 1, 255], id="all, across the wrap"),
        pytest.param(255, 255, [255], id="one"),
    ],
)
def test_a_range_takes_what_is_in_it_in_order(first: int, last: int, taken: list[int]) -> None:
    held = [0, 1, 255, 256, 70_000, LAST]
    ids = holding(*held)
    assert ids.take_range(first, last) == taken
    assert ids.take_range(first, last) == []
    assert ids.take_range(0, LAST) == [number for number in held if number not in taken]


def test_what_was_removed_is_not_taken() -> None:
    ids = holding(1, 2, 3)
    ids.discard(2)
    ids.discard(2)
    ids.discard(70_000)
    assert ids.take_range(0, LAST) == [1, 3]
    ids.add(4)
    ids.clear()
    assert ids.take_range(0, LAST) == []


@given(st.lists(STEP, max_size=60))
def test_it_does_what_a_plain_set_would(steps: list[tuple[str, int, int]]) -> None:
    ids, model = IdSet(), set[int]()
    for name, number, other in steps:
        if name == "add":
            ids.add(number)
            model.add(number)
        elif name == "discard":
            ids.discard(number)
            model.discard(number)
        else:
            length = (other - number) & LAST
            ahead = sorted((each - number) & LAST for each in model)
            gone = [(number + each) & LAST for each in ahead if each <= length]
            assert ids.take_range(number, other) == gone
            model.difference_update(gone)
    assert ids.take_range(0, LAST) == sorted(model)
