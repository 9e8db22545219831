"""Batches of changes for a store: changes that cancel out, and refused numbers."""

import time

import pytest

from storage.batch import Batch
from storage.records import StoredMessage, StoredNode


def stored(number: int, queue: str = "q", *, position: int | None = None) -> StoredMessage:
    return StoredMessage(
        number=number,
        queue=queue,
        position=number if position is None else position,
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


def test_queues_that_go_one_after_the_other_take_back_what_is_still_there() -> None:
    batch = Batch()
    for number, queue in enumerate(["a", "b", "a", "b", "a", "c"]):
        batch.append(stored(number, queue))
    batch.remove_subscription("a")
    assert numbers(batch) == [1, 3, 5]
    batch.consume(1)
    batch.forget_first(3)
    batch.append(stored(6, "b"))
    batch.append(stored(7, "a"))
    batch.remove_subscription("b")
    assert numbers(batch) == [5, 7]
    batch.remove_subscription("a")
    batch.remove_subscription("nothing")
    assert (numbers(batch), batch.bytes) == ([5], len(stored(5).encoded))
    batch.remove(5)
    batch.forget_first(5)
    batch.append(stored(20, "a"))
    batch.remove_subscription("a")
    assert (numbers(batch), batch.bytes) == ([], 0)


def test_each_message_is_looked_at_once_however_many_queues_go() -> None:
    batch = Batch()
    for number in range(5000):
        batch.append(stored(number, "other"))
    began_s = time.process_time()
    for number in range(5000):
        batch.remove_subscription(f"s{number}")
    assert time.process_time() - began_s < 0.3


def test_a_queue_that_goes_takes_back_what_was_noted_for_it() -> None:
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.append(stored(1))
    batch.append(stored(2, "other"))
    batch.remove_node(StoredNode(address="q", kind="queue"))
    batch.append(stored(3))
    assert (numbers(batch), batch.nodes_added) == ([2, 3], [])
