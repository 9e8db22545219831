"""The rows that a batch becomes, depending on what the store holds."""

from storage.batch import Batch
from storage.records import StoredNode
from storage.sql.index import NUMBERS_AT_ONCE, QUEUES_AT_ONCE, Index
from storage.sql.segments.segment import queue_at
from storage.sql.statements import DELETE_QUEUE, INSERT_NODE, INSERT_QUEUE, SET_MARK
from tests.unit.storage.test_batch import stored

QUEUE = StoredNode(address="q", kind="queue")


def test_numbers_and_ids_are_spoken_for_in_blocks() -> None:
    index = Index()
    index.speak_for(numbers=10, queues=3)
    batch = Batch()
    batch.append(stored(11))
    changes = index.apply(batch)
    assert changes.statements == [
        (SET_MARK, [(4 + QUEUES_AT_ONCE, "queues")]),
        (INSERT_QUEUE, [(4, "q")]),
        (SET_MARK, [(11 + NUMBERS_AT_ONCE, "numbers")]),
    ]
    batch = Batch()
    batch.append(stored(12, "r"))
    assert index.apply(batch).statements == [(INSERT_QUEUE, [(5, "r")])]


def test_a_queue_that_is_made_anew_has_another_id() -> None:
    index = Index()
    index.speak_for(numbers=100, queues=100)
    batch = Batch()
    batch.add_node(QUEUE)
    index.apply(batch)
    again = Batch()
    again.remove_node(QUEUE)
    again.add_node(QUEUE)
    again.append(stored(1))
    changes = index.apply(again)
    by_statement = dict(changes.statements)
    assert by_statement[DELETE_QUEUE] == [("q",)]
    assert by_statement[INSERT_QUEUE] == [(102, "q")]
    assert by_statement[INSERT_NODE] == [("queue", "q", None, False, "queue", "q")]
    ((_, _, facts),) = changes.segments.segments
    assert queue_at(facts, 0) == 102
