"""Counts of a process of the load: each message is reported once."""

from __future__ import annotations

import time

import pytest

from broker.cli.load.counts import Busy, LoadCounts

pytestmark = pytest.mark.requirement("OPS-18")

NAMES = ("sent", "accepted", "refused", "unsent", "received")


def counts_of(**given: int) -> LoadCounts:
    counts = LoadCounts(**given)
    counts.latencies.add(5)
    counts.delays.add(6)
    return counts


def test_what_was_taken_is_not_counted_again() -> None:
    counts = counts_of(**dict.fromkeys(NAMES, 3))
    taken = counts.taken()
    assert [getattr(taken, name) for name in NAMES] == [3] * len(NAMES)
    assert (taken.latencies.percentile_ns(50), taken.delays.percentile_ns(50)) == (5, 6)
    assert counts == LoadCounts()
    assert not counts.latencies
    assert not counts.delays


def test_merged_counts_are_sums() -> None:
    counts = counts_of(**{name: number for number, name in enumerate(NAMES)})
    counts.merge(counts_of(**dict.fromkeys(NAMES, 10)))
    assert [getattr(counts, name) for name in NAMES] == [10, 11, 12, 13, 14]
    assert counts.latencies.percentile_ns(100) == 5


@pytest.mark.parametrize("name", ["sent", "accepted", "refused", "received"])
def test_anything_counts_as_progress(name: str) -> None:
    assert LoadCounts(**{name: 1})
    assert not LoadCounts()


def test_a_process_that_calculates_is_busy() -> None:
    busy = Busy()
    began_ns = time.process_time_ns()
    while time.process_time_ns() - began_ns < 20_000_000:
        pass
    assert busy.since_last_ns() >= 10_000_000
    assert busy.since_last_ns() < 10_000_000
