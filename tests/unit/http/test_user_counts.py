"""Counts of what users have open."""

from __future__ import annotations

import pytest

from broker.http.user_counts import UserCounts


def test_what_a_user_has_open_counts_until_it_ends() -> None:
    counts = UserCounts()
    with counts.one("ada"), counts.one("ada"), counts.one("bob"):
        assert (counts.of("ada"), counts.of("bob"), counts.of("eve")) == (2, 1, 0)
        assert counts.total() == 3
    assert (counts.of("ada"), counts.total()) == (0, 0)


def test_an_error_ends_it_too() -> None:
    counts = UserCounts()
    with pytest.raises(LookupError), counts.one("ada"):
        raise LookupError
    assert counts.total() == 0
    assert not counts._by_user, "no name is kept"
