"""Changes to stages in a batch: a stage added and removed in one batch leaves no trace."""

from storage.stages import StageChanges, StoredSink, StoredStage


def stage(number: int) -> StoredStage:
    return StoredStage(
        number=number,
        query="q",
        batch=0,
        partition=0,
        attempt=0,
        kind="queue",
        address="a",
        publisher="",
        begun_ms=0,
    )


def test_a_stage_that_comes_and_goes_is_gone() -> None:
    changes = StageChanges()
    changes.add(stage(1))
    changes.add(stage(2))
    for number in (1, 1, 3):
        changes.remove(number)
    assert (list(changes.added), changes.removed) == ([2], [1, 3])


def test_what_is_forgotten_is_not_kept_and_the_other_way_round() -> None:
    changes = StageChanges()
    changes.keep(StoredSink(query="a", batch=1, at_ms=0))
    changes.forget("a")
    assert (changes.sinks, changes.forgotten) == ({}, ["a"])
    changes.keep(StoredSink(query="a", batch=2, at_ms=0))
    assert int(changes.sinks["a"].batch) == 2
