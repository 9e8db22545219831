"""Pacing: the conditions under which producers are held back, and for how long."""

from collections.abc import Callable

import pytest

from broker.routing.credit.pacing import IDLE, PATIENCE_MS, TRIES, Pacing
from tests.support.parties import RecordingProducer

MARK = 2000

GRANTS = {
    "nothing waits": (0, True),
    "a backlog at the mark": (MARK, True),
    "a backlog above the mark": (MARK + 1, False),
}


@pytest.mark.parametrize(("backlog", "expected"), GRANTS.values(), ids=GRANTS.keys())
def test_producers_wait_while_consumers_are_behind(backlog: int, expected: bool) -> None:
    assert Pacing(MARK).observe(backlog) is expected


def hold_back(pacing: Pacing, producer: RecordingProducer, now_ms: int) -> None:
    assert not pacing.observe(MARK + 1)
    pacing.wait(producer, now_ms)


def held_back(producer: RecordingProducer, *, now_ms: int = 100) -> Pacing:
    pacing = Pacing(MARK)
    hold_back(pacing, producer, now_ms)
    return pacing


def test_a_producer_goes_on_when_the_backlog_has_fallen() -> None:
    producer = RecordingProducer()
    pacing = held_back(producer)
    pacing.fell(MARK + 1)
    assert (producer.resumed, pacing.is_waited_for()) == (0, True)
    pacing.fell(MARK)
    assert (producer.resumed, pacing.is_waited_for()) == (1, False)
    assert pacing.deadline_ms == IDLE
    pacing.fell(0)
    assert producer.resumed == 1


def test_a_producer_never_waits_longer_than_patience() -> None:
    producer = RecordingProducer()
    pacing = held_back(producer, now_ms=100)
    assert pacing.deadline_ms == 100 + PATIENCE_MS
    pacing.tick(100 + PATIENCE_MS - 1, MARK + 1)
    assert producer.resumed == 0
    pacing.tick(100 + PATIENCE_MS, MARK + 1)
    assert producer.resumed == 1
    pacing.tick(100 + 2 * PATIENCE_MS, MARK + 1)
    assert producer.resumed == 1


def test_pacing_that_did_not_help_is_off_until_the_backlog_has_fallen() -> None:
    pacing = Pacing(MARK)
    for trial in range(TRIES):
        hold_back(pacing, RecordingProducer(), now_ms=trial * PATIENCE_MS)
        pacing.tick((trial + 1) * PATIENCE_MS, MARK + 1)
    assert pacing.observe(MARK * 100)
    assert pacing.observe(MARK), "it has fallen"
    assert not pacing.observe(MARK + 1)


HELPS = {
    "the backlog falls in time": lambda pacing: pacing.fell(MARK),
    "it has fallen when patience ends": lambda pacing: pacing.tick(10 * PATIENCE_MS, MARK),
    "it has fallen when credit is asked for": lambda pacing: pacing.observe(MARK),
}


@pytest.mark.parametrize("relief", HELPS.values(), ids=HELPS.keys())
def test_pacing_that_helped_starts_to_count_anew(relief: Callable[[Pacing], object]) -> None:
    pacing = Pacing(MARK)
    for trial in range(TRIES - 1):
        hold_back(pacing, RecordingProducer(), now_ms=trial * PATIENCE_MS)
        pacing.tick((trial + 1) * PATIENCE_MS, MARK + 1)
    hold_back(pacing, RecordingProducer(), now_ms=9 * PATIENCE_MS)
    relief(pacing)
    pacing.tick(20 * PATIENCE_MS, MARK)
    hold_back(pacing, RecordingProducer(), now_ms=20 * PATIENCE_MS)
    pacing.tick(21 * PATIENCE_MS, MARK + 1)
    assert not pacing.observe(MARK + 1), "in vain once, not three times"


def test_the_patience_of_the_first_one_counts_for_all() -> None:
    first, second = RecordingProducer(), RecordingProducer()
    pacing = held_back(first, now_ms=0)
    pacing.wait(second, PATIENCE_MS - 1)
    pacing.tick(PATIENCE_MS, MARK + 1)
    assert (first.resumed, second.resumed) == (1, 1)


def test_a_producer_that_asks_twice_is_answered_once() -> None:
    producer = RecordingProducer()
    pacing = held_back(producer)
    pacing.wait(producer, 105)
    pacing.fell(0)
    assert producer.resumed == 1


def test_a_producer_that_has_left_is_not_resumed() -> None:
    gone, there = RecordingProducer(), RecordingProducer()
    pacing = held_back(gone)
    pacing.wait(there, 100)
    pacing.leave(gone)
    pacing.fell(0)
    assert (gone.resumed, there.resumed) == (0, 1)


def test_the_next_one_has_the_whole_patience_after_everybody_has_left() -> None:
    gone, later = RecordingProducer(), RecordingProducer()
    pacing = held_back(gone, now_ms=100)
    pacing.leave(gone)
    pacing.leave(gone)
    assert not pacing.is_waited_for()
    pacing.wait(later, 105)
    assert pacing.deadline_ms == 105 + PATIENCE_MS
