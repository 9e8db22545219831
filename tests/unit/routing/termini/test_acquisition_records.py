"""Records of what links of a source hold: which rows of its lease are written, and which not."""

from __future__ import annotations

import pytest

from broker.routing.entries.redelivery import Disposal
from broker.routing.termini.acquisition_records import (
    NAME_PREFIX,
    AcquisitionRecord,
)
from storage.batch import Batch
from storage.leases import StoredTerminus
from tests.support.parties import RecordingConsumer, RecordingWitness
from tests.support.routing import Routing, encoded, new_message

pytestmark = pytest.mark.requirement("RCV-08")


def terminus(timeout_s: int = 60) -> StoredTerminus:
    return StoredTerminus(
        container_id="client",
        link="link",
        owner="alice",
        address="q",
        expiry_policy="connection-close",
        timeout_s=timeout_s,
        default_outcome=b"",
    )


class Scene:
    """A queue with messages, a consumer that acquires them, and a record of its source."""

    def __init__(self, count: int = 3, *, durable: bool = True, witness: bool = False) -> None:
        self.witness = RecordingWitness() if witness else None
        self.routing = Routing(observer=self.witness)
        self.queue = self.routing.queue()
        for number in range(count):
            message = new_message(encoded(b"%d" % number), durable=durable)
            self.queue.put(message, self.routing.batch)
        self.consumer = RecordingConsumer()
        self.queue.attach_consumer(self.consumer)
        self.records = self.routing.router.termini.records
        self.record = AcquisitionRecord(self.records, self.queue, terminus())

    def acquire(self, count: int) -> None:
        self.consumer.credit = count
        self.queue.consumer_ready(self.consumer, drain=False)
        self.routing.router.context.rounds.dispatch(self.routing.batch)
        for entry in self.consumer.entries:
            self.record.acquired(entry)

    def settle(self, disposal: Disposal, index: int = 0) -> None:
        self.consumer.held = True
        self.consumer.dispose(disposal, self.routing.batch, index=index)

    def written(self) -> tuple[list[str], dict[int, list[int] | None]]:
        """Write what has changed; return the names of leases, and the numbers in each batch."""
        batch = Batch()
        self.records.write(batch)
        changes = batch.leases
        if changes is None:
            return [], {}
        return [name for name, lease in changes.leases.items() if lease], {
            number: None if stored is None else stored.numbers
            for (_, number), stored in changes.batches.items()
        }


def test_a_round_is_one_batch_and_the_first_describes_the_source() -> None:
    scene = Scene()
    scene.acquire(2)
    name = scene.record.name
    assert name.startswith(NAME_PREFIX)
    assert scene.written() == ([name], {1: [1, 2]})
    assert not scene.records.any, "until the next change"
    scene.acquire(1)
    assert scene.written() == ([], {2: [3]})
    scene.record.renew(terminus(timeout_s=7))
    assert scene.written() == ([name], {})


def test_what_is_consumed_costs_a_row_only_with_the_last_of_its_batch() -> None:
    scene = Scene()
    scene.acquire(3)
    scene.written()
    scene.settle(Disposal.REMOVE)
    scene.settle(Disposal.REMOVE)
    assert scene.written() == ([], {})
    scene.settle(Disposal.REMOVE)
    assert scene.written() == ([], {1: None})


@pytest.mark.parametrize(
    "disposal",
    [each for each in Disposal if each is not Disposal.REMOVE],
    ids=lambda each: each.name,
)
def test_a_batch_is_written_anew_without_what_returns(disposal: Disposal) -> None:
    scene = Scene()
    scene.acquire(3)
    scene.written()
    scene.settle(disposal, index=1)
    assert scene.written() == ([], {1: [1, 3]})


def test_what_is_settled_in_its_own_round_is_not_written() -> None:
    scene = Scene(1)
    scene.acquire(1)
    scene.settle(Disposal.REMOVE)
    assert scene.written() == ([], {})
    batch = Batch()
    scene.record.end(batch)
    assert batch.leases is None


def test_a_message_without_a_row_needs_none() -> None:
    scene = Scene(2, durable=False)
    scene.acquire(2)
    assert not scene.records.any
    assert [scene.record.has(entry) for entry in scene.consumer.entries] == [False, False]


def test_counts_are_those_of_the_acquisition() -> None:
    scene = Scene(1)
    scene.acquire(1)
    scene.settle(Disposal.FAIL)
    scene.consumer.held = False
    scene.acquire(1)
    batch = Batch()
    scene.records.write(batch)
    assert batch.leases is not None
    (stored,) = [each for each in batch.leases.batches.values() if each is not None]
    assert stored.counts == [1 << 1]
    assert (stored.slice_count, stored.slices) == (1, b"\0")


def test_the_end_removes_the_lease_and_leaves_the_queue_as_it_was() -> None:
    scene = Scene(witness=True)
    other = AcquisitionRecord(scene.records, scene.queue, terminus())
    scene.acquire(2)
    scene.written()
    batch = Batch()
    scene.record.end(batch)
    assert batch.leases is not None
    assert list(batch.leases.ended) == [scene.record.name]
    assert scene.queue.state.observer is not scene.witness
    other.end(Batch())
    assert scene.queue.state.observer is scene.witness
    scene.settle(Disposal.RELEASE)
    assert scene.written() == ([], {})


def test_other_observers_hear_of_everything() -> None:
    scene = Scene(witness=True)
    scene.acquire(2)
    scene.settle(Disposal.REMOVE)
    assert scene.witness is not None
    assert [disposal for _, _, disposal in scene.witness.heard] == [Disposal.REMOVE]


def test_a_stop_leaves_the_rows() -> None:
    scene = Scene()
    scene.acquire(2)
    scene.written()
    scene.record.leave_to_store()
    scene.settle(Disposal.RELEASE)
    assert scene.written() == ([], {})


def test_a_restored_batch_is_deleted_if_nothing_is_left_of_it() -> None:
    scene = Scene(2)
    scene.consumer.credit = 2
    scene.queue.consumer_ready(scene.consumer, drain=False)
    scene.routing.router.context.rounds.dispatch(scene.routing.batch)
    scene.record.bring_back("$terminus/old")
    scene.record.bring_back_batch(4, scene.consumer.entries[:1])
    scene.record.bring_back_batch(5, [])
    assert scene.written() == ([], {5: None})
    scene.acquire(0)
    assert scene.written() == ([], {6: [2]})
