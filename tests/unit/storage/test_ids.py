"""Changes to remembered ids in a batch: an id added and removed in one batch leaves no trace."""

import pytest

from storage.ids import IdChanges
from storage.records import StoredId, StoredNode


def stored(number: int, address: str = "q") -> StoredId:
    return StoredId(number=number, kind="queue", address=address, digest=b"d", at_ms=0)


def numbers(changes: IdChanges) -> tuple[list[int], list[int]]:
    kept = [int(each.number) for each in changes.remembered if each is not None]
    return kept, changes.forgotten


def noted(*given: int) -> IdChanges:
    changes = IdChanges()
    for number in given:
        changes.remember(stored(number))
    return changes


def test_what_comes_and_goes_is_gone() -> None:
    changes = noted(7, 8)
    for number in (7, 7, 6, 9):
        changes.forget(number)
    assert numbers(changes) == ([8], [6, 9])


def test_a_number_that_is_not_the_next_one_is_refused() -> None:
    changes = noted(7)
    with pytest.raises(ValueError, match="id 9"):
        changes.remember(stored(9))


def test_a_node_takes_back_its_own() -> None:
    changes = noted(1, 2)
    changes.remember(stored(3, "other"))
    changes.node_removed(StoredNode(address="q", kind="topic"))
    assert numbers(changes) == ([1, 2, 3], [])
    changes.node_removed(StoredNode(address="q", kind="queue"))
    assert numbers(changes) == ([3], [])
