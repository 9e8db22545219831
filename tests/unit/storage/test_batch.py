"""Batches of changes for a store: changes that cancel out, and refused numbers."""

import pytest

from storage.batch import Batch
from storage.records import StoredMessage, StoredNode


def stored(number: int, queue: str = "q") -> StoredMessage:
    return StoredMessage(
        number=number,
        queue=queue,
        position=number,
        encoded=b"x",
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
    )


def numbers(batch: Batch) -> list[int]:
    return [int(message.number) for message in batch.appended if message is not None]


def test_what_comes_and_goes_leaves_no_trace() -> None:
    batch = Batch()
    batch.append(stored(7))
    batch.append(stored(8))
    batch.remove(7)
    batch.remove(7)
    assert (numbers(batch), batch.removed) == ([8], [])
    assert not batch.is_empty()
    batch.remove(8)
    assert batch.is_empty()


@pytest.mark.parametrize("number", [6, 9], ids=["before its messages", "behind its messages"])
def test_what_is_removed_may_have_come_earlier(number: int) -> None:
    batch = Batch()
    batch.append(stored(7))
    batch.append(stored(8))
    batch.remove(number)
    assert (numbers(batch), batch.removed) == ([7, 8], [number])


def test_a_number_that_is_not_the_next_one_is_refused() -> None:
    batch = Batch()
    batch.append(stored(7))
    with pytest.raises(ValueError, match="message 9"):
        batch.append(stored(9))


def test_a_queue_that_goes_takes_back_what_was_noted_for_it() -> None:
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.append(stored(1))
    batch.append(stored(2, "other"))
    batch.remove_node(StoredNode(address="q", kind="queue"))
    batch.append(stored(3))
    assert (numbers(batch), batch.nodes_added) == ([2, 3], [])
