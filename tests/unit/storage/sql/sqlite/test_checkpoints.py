"""Checkpoints: when the log is moved into the file, and the estimate that its size improves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage.batch import Batch
from storage.sql.sqlite.checkpoints import (
    OUT_AT_MOST,
    PAGE_BYTES,
    PAGES,
    PAGES_OF_COMMIT,
    Checkpoints,
)
from tests.unit.storage.test_batch import stored


def small() -> Batch:
    batch = Batch()
    batch.append(stored(1))
    return batch


def large() -> Batch:
    batch = Batch()
    batch.content_changes().write(1, 0, bytes(100 * PAGE_BYTES))
    return batch


def consumed() -> Batch:
    batch = Batch()
    for number in range(800):
        batch.remove(number)
    return batch


def commits_until_due(checkpoints: Checkpoints, make: Callable[[], Batch]) -> int:
    """Return the number of commits until a checkpoint is due."""
    count = 0
    while not checkpoints.is_due():
        checkpoints.written(make())
        count += 1
    return count


GUESSES = [
    pytest.param(small, PAGES // PAGES_OF_COMMIT, id="small commits"),
    pytest.param(large, 10, id="chunks"),
    pytest.param(consumed, 10, id="removals"),
]


@pytest.mark.parametrize(("make", "expected"), GUESSES)
def test_the_first_guess(make: Callable[[], Batch], expected: int) -> None:
    assert commits_until_due(Checkpoints(), make) == expected


LESSONS = [
    pytest.param(PAGES, 500, id="right"),
    pytest.param(2 * PAGES, 250, id="too long"),
    pytest.param(PAGES // 2, 1000, id="too short"),
    pytest.param(1000 * PAGES, PAGES // OUT_AT_MOST // PAGES_OF_COMMIT, id="far too long"),
    pytest.param(0, 500 * OUT_AT_MOST, id="somebody else has moved it"),
]


@pytest.mark.parametrize(("pages", "expected"), LESSONS)
def test_the_next_guess_is_better(pages: int, expected: int) -> None:
    checkpoints = Checkpoints()
    commits_until_due(checkpoints, small)
    checkpoints.moved(pages)
    assert commits_until_due(checkpoints, small) == expected


def test_what_finds_no_room_stays_due_and_is_counted() -> None:
    checkpoints = Checkpoints()
    commits_until_due(checkpoints, small)
    checkpoints.postpone()
    checkpoints.postpone()
    assert (checkpoints.postponed, checkpoints.is_postponed) == (2, True)
    assert checkpoints.is_due()
    checkpoints.moved(PAGES)
    assert (checkpoints.postponed, checkpoints.is_postponed) == (2, False)
    assert not checkpoints.is_due()
