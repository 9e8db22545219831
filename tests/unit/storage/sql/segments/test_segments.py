"""The segments that a batch creates, changes and removes."""

from storage.batch import Batch
from storage.sql.segments.packing import numbers_of
from storage.sql.segments.segment import Segment
from storage.sql.segments.segments import PATIENCE, REMEMBERED_MAX, SegmentChanges, Segments, Wanted
from tests.unit.storage.test_batch import stored

IDS = {"q": 7}


def added(segments: Segments, *numbers: int, size: int = 10) -> SegmentChanges:
    batch = Batch()
    for number in numbers:
        batch.append(stored(number).with_bytes(bytes([number % 256]) * size))
    return segments.apply(batch, IDS)


def removing(*numbers: int) -> Batch:
    batch = Batch()
    for number in numbers:
        batch.remove(number)
    return batch


def left(changes: SegmentChanges) -> list[list[int]]:
    """Return the numbers that are left in each segment that changes."""
    return [numbers_of(Segment(n, size, facts)) for size, facts, n in changes.changed]


def told(wanted: Wanted) -> tuple[list[int], list[int]]:
    return wanted.numbers, wanted.with_bytes


def test_a_segment_is_made_changed_and_removed() -> None:
    segments = Segments()
    changes = added(segments, 1, 2, 3)
    assert [(number, size) for number, size, _ in changes.segments] == [(1, 30)]
    assert [number for number, _, _ in changes.bodies] == [1]
    batch = removing(1, 3)
    assert not segments.wanted(batch).any()
    changes = segments.apply(batch, IDS)
    assert left(changes) == [[2]]
    changes = segments.apply(removing(2), IDS)
    assert (changes.removed, changes.changed) == ([(1, 3)], [])
    assert told(segments.wanted(removing(2))) == ([2], []), "it is forgotten"


def test_what_is_gone_changes_nothing() -> None:
    segments = Segments()
    added(segments, 1, 2, 3)
    segments.apply(removing(2), IDS)
    changes = segments.apply(removing(2), IDS)
    assert (changes.changed, changes.removed) == ([], [])


def test_what_is_not_remembered_is_asked_for() -> None:
    segments, others = Segments(), Segments()
    added(segments, 1, 2, 3)
    ((number, size, facts),) = added(others, 10, 11).segments
    batch = removing(11, 2, 5)
    batch.count(12, 1)
    batch.rewrite(13, b"new")
    assert told(segments.wanted(batch)) == ([5, 11, 12], [13])
    segments.learn(Segment(number, size, facts))
    assert told(segments.wanted(removing(11, 2, 10))) == ([], [])
    assert left(segments.apply(removing(11, 2), IDS)) == [[1, 3], [10]]


def test_what_comes_in_the_batch_is_not_asked_for() -> None:
    segments = Segments()
    batch = Batch()
    for number in (4, 5):
        batch.append(stored(number))
    batch.count(5, 2)
    batch.rewrite(4, b"new")
    assert not segments.wanted(batch).any()
    changes = segments.apply(batch, IDS)
    assert (changes.changed, changes.rebuilt) == ([], [])
    assert changes.bodies == [(4, b"newx", None)]


def test_what_was_said_last_counts() -> None:
    segments = Segments()
    added(segments, 1, 2)
    batch = Batch()
    for count in (1, 2):
        batch.count(1, count)
        batch.fall_due(2, 70 + count)
    ((size, facts, number),) = segments.apply(batch, IDS).changed
    assert (facts[52], facts[76 + 8]) == (2, 72)
    assert (size, number) == (20, 1)


def test_what_is_looked_for_does_not_go() -> None:
    segments = Segments()
    added(segments, 1, 2, 3)
    batch = removing(1)
    batch.count(2, 1)
    batch.fall_due(3, 7)
    assert not segments.wanted(batch).any()
    assert left(segments.apply(batch, IDS)) == [[2, 3]]


def test_one_that_is_rewritten_and_goes() -> None:
    segments = Segments()
    ((number, size, facts),) = added(segments, 1, 2).segments
    segments.learn(Segment(number, size, facts, body=bytes(size)))
    batch = removing(1)
    batch.rewrite(2, b"new")
    changes = segments.apply(batch, IDS)
    assert left(changes) == [[2]]
    assert [each for _, each in changes.rebuilt] == [1]


def test_the_oldest_are_forgotten() -> None:
    segments = Segments()
    numbers = range(1, REMEMBERED_MAX + 2)
    for number in numbers:
        added(segments, number)
    assert told(segments.wanted(removing(*numbers))) == ([1], [])


def test_little_that_is_left_is_packed_anew_after_a_while() -> None:
    segments = Segments()
    ((number, size, facts),) = added(segments, *range(1, 11), size=1000).segments
    segments.apply(removing(*range(1, 10)), IDS)
    for later in range(int(PATIENCE) - 1):
        assert not segments.wanted(Batch()).any(), "the rest may follow"
        added(segments, 11 + later)
    assert told(segments.wanted(Batch())) == ([], [1])
    kept = Segment(number, size, facts, body=b"".join(bytes([n]) * 1000 for n in range(1, 11)))
    kept.remove(list(range(1, 10)))
    segments.learn(kept)
    changes = segments.apply(Batch(), IDS)
    assert changes.rebuilt == [(bytes([10]) * 1000, 1)]
    assert [(size, number) for size, _, number in changes.changed] == [(1000, 1)]
    assert not segments.wanted(Batch()).any()
