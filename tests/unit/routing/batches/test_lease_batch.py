"""The slices of a lease's batch."""

import pytest

from broker.routing.batches.lease_batch import LeaseBatch, LeaseBatchBuilder
from broker.routing.entries.entry import QueueEntry
from storage.batch import Batch
from tests.support.routing import Routing, bodies, new_message

pytestmark = pytest.mark.requirement("PIP-05")

CASES = [
    pytest.param("", 3, [], id="nothing"),
    pytest.param("----", 2, [0, 0, 1, 1], id="in runs"),
    pytest.param("-----", 2, [0, 0, 0, 1, 1], id="as equal as can be"),
    pytest.param("--", 4, [0, 2], id="fewer than slices"),
    pytest.param("---", 1, [0, 0, 0], id="one slice"),
    pytest.param("abab", 4, [3, 1, 3, 1], id="groups by their names"),
    pytest.param("-a-", 4, [0, 3, 2], id="a group among others"),
    pytest.param("\N{SNOWMAN}", 4, [0], id="a name that is not ASCII"),
]


def built(slices: int, entries: list[QueueEntry], batch: Batch) -> LeaseBatch:
    builder = LeaseBatchBuilder(1, slices, entries)
    assert builder.go_on(2 * len(entries), batch)
    return builder.lease_batch


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize(("groups", "slices", "expected"), CASES)
def test_messages_are_in_slices(
    groups: str, slices: int, expected: list[int], at_once: int
) -> None:
    routing = Routing()
    queue = routing.queue()
    for each in groups:
        queue.put(new_message(b"m", group="" if each == "-" else each), routing.batch)
    builder = LeaseBatchBuilder(1, slices, routing.consumer(queue, len(groups)).entries)
    while not builder.go_on(at_once, routing.batch):
        assert len(builder.numbers) < len(groups)
    assert builder.lease_batch.slices == expected


def test_a_slice_has_its_messages_in_the_order_of_their_acquisition() -> None:
    routing = Routing()
    queue = routing.queue()
    for name in ("a1", "x1", "b1", "a2", "x2", "b2"):
        group = "" if name[0] == "x" else name[0]
        queue.put(new_message(name.encode(), group=group), routing.batch)
    lease_batch = built(4, routing.consumer(queue, 6).entries, routing.batch)
    assert [bodies(lease_batch.slice(index)) for index in range(4)] == [
        [b"x1"],
        [b"b1", b"b2"],
        [b"x2"],
        [b"a1", b"a2"],
    ]
    assert lease_batch.sizes() == [1, 2, 1, 2]
    assert lease_batch.bytes == 12


def test_sizes_tell_of_empty_slices_too() -> None:
    assert LeaseBatch(1, 3, [1, 1]).sizes() == [0, 2, 0]


def test_what_is_lost_leaves_its_slice() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"0", b"1", b"2", b"3")
    entries = routing.consumer(queue, 4).entries
    lease_batch = LeaseBatch(1, 2, [0, 0, 1, 1])
    lease_batch.add(entries[0])
    lease_batch.leave_out()
    lease_batch.add(entries[2])
    lease_batch.add(entries[3])
    assert lease_batch.sizes() == [1, 2]
    assert bodies(lease_batch.slice(1)) == [b"2", b"3"]
    assert lease_batch.bytes == 3


def test_what_is_taken_out_leaves_its_slice() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"0", b"1", b"2", b"3")
    lease_batch = built(2, routing.consumer(queue, 4).entries, routing.batch)
    lease_batch.take_out(dict.fromkeys([lease_batch.entries[0], lease_batch.entries[3]]))
    assert bodies(lease_batch.slice(0)) == [b"1"]
    assert bodies(lease_batch.slice(1)) == [b"2"]
    assert lease_batch.bytes == 2
