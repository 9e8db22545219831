"""Counters by their names."""

import pytest

from broker.stats import Stats

NAMES = list(Stats().as_dict())


def test_everything_starts_at_zero() -> None:
    assert set(Stats().as_dict().values()) == {0}


@pytest.mark.parametrize("name", NAMES)
def test_a_counter_is_shown_under_its_own_name(name: str) -> None:
    stats = Stats()
    setattr(stats, name, 3)
    assert stats.as_dict() == {each: 3 if each == name else 0 for each in NAMES}


def test_no_counter_is_left_out() -> None:
    stats = Stats()
    counters = [
        name
        for name in dir(stats)
        if not name.startswith("_") and isinstance(getattr(stats, name), int)
    ]
    assert sorted(NAMES) == sorted(counters)
