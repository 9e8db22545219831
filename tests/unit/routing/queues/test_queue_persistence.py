"""Messages that wait for their commit, and commits that wait for consumers."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.credit.credit_pool import UNLIMITED
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from broker.routing.transaction import Transaction
from storage.batch import Batch
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message

HOLD_US = 2000


class Kept(Routing):
    """Routing on a store whose commits take time; `written` ends one."""

    def __init__(self, *, policy: AddressPolicy | None = None) -> None:
        super().__init__(policy=policy, hold_us=HOLD_US, commits_take_time=True)
        self.batches = 1
        self.batch = Batch(self.batches)

    def next_batch(self) -> Batch:
        """Begin a commit, and return its batch; later changes belong to the next one."""
        begun = self.batch
        self.batches += 1
        self.batch = Batch(self.batches)
        return begun

    def written(self, batch: Batch) -> None:
        """End the commit of `batch`."""
        self.router.context.gates.lift(batch.last_number(), batch.page)
        self.pump()

    def send(self, queue: Queue, body: bytes, *, durable: bool = True, priority: int = 4) -> None:
        queue.put(new_message(body, durable=durable, priority=priority), self.batch)
        self.pump()

    def transact(self, queue: Queue, *bodies: bytes) -> None:
        work = Transaction(self.router, operations_max=0, bytes_max=0)
        for body in bodies:
            work.post(queue, new_message(body, durable=True), 1)
        work.commit(self.batch)
        self.pump()

    def make_prompt(self, queue: Queue, consumer: RecordingConsumer) -> None:
        """Let `consumer` acknowledge promptly until the queue counts as prompt."""
        for _ in range(12):
            self.next_batch()
            self.send(queue, b"early")
            consumer.entries[-1].queue.accept(consumer.entries.pop(), self.batch)
        self.next_batch()
        ack_latency = queue.persistence.ack_latency
        assert ack_latency is not None
        assert ack_latency.is_prompt


# -- messages that wait for their commit


@pytest.mark.requirement("PRD-03")
def test_a_message_is_delivered_before_its_commit() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=10)
    kept.send(queue, b"a")
    assert consumer.taken == [b"a"]


@pytest.mark.requirement("RCV-06")
def test_what_a_transaction_sent_is_delivered_when_its_commit_is_durable() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=10)
    kept.transact(queue, b"a", b"b")
    assert (consumer.taken, kept.batch.is_urgent) == ([], True)
    kept.written(kept.next_batch())
    assert consumer.taken == [b"a", b"b"]


@pytest.mark.requirement("DST-11")
def test_a_durable_address_delivers_what_is_on_the_disk() -> None:
    kept = Kept()
    queue = kept.queue("/queue/durable/q")
    consumer = kept.consumer(queue, credit=10)
    kept.send(queue, b"a", durable=False)
    assert (consumer.taken, kept.batch.is_urgent) == ([], True)
    kept.written(kept.next_batch())
    assert consumer.taken == [b"a"]


def test_a_setting_says_the_same_of_any_address() -> None:
    kept = Kept(policy=AddressPolicy(deliver_before_commit=False))
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=10)
    kept.send(queue, b"a")
    assert consumer.taken == []
    first = kept.next_batch()
    kept.send(queue, b"b")
    kept.written(first)
    assert consumer.taken == [b"a"]
    kept.written(kept.next_batch())
    assert consumer.taken == [b"a", b"b"]


def test_nothing_overtakes_what_waits_for_its_commit() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=10)
    kept.send(queue, b"before")
    kept.transact(queue, b"a")
    kept.send(queue, b"durable")
    kept.send(queue, b"not", durable=False)
    assert consumer.taken == [b"before"]
    kept.written(kept.next_batch())
    assert consumer.taken == [b"before", b"a", b"durable", b"not"]


def test_what_came_before_a_transaction_does_not_wait_for_it() -> None:
    kept = Kept()
    queue = kept.queue()
    kept.send(queue, b"before")
    kept.transact(queue, b"a")
    consumer = kept.consumer(queue, credit=10)
    assert consumer.taken == [b"before"]


def test_a_queue_opens_again_when_all_that_waits_is_durable() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=10)
    kept.transact(queue, b"a")
    first = kept.next_batch()
    kept.transact(queue, b"b")
    second = kept.next_batch()
    kept.written(first)
    assert consumer.taken == [b"a"]
    kept.written(second)
    kept.send(queue, b"c")
    assert consumer.taken == [b"a", b"b", b"c"], "and c has not waited"
    assert not kept.router.context.gates.any


def test_a_store_that_commits_at_once_lets_nobody_wait() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue, credit=10)
    work = Transaction(routing.router, operations_max=0, bytes_max=0)
    work.post(queue, new_message(b"a", durable=True), 1)
    work.commit(routing.batch)
    routing.pump()
    assert consumer.taken == [b"a"]


def test_a_queue_that_is_deleted_meanwhile_is_forgotten() -> None:
    kept = Kept()
    queue = kept.queue()
    kept.transact(queue, b"a")
    kept.router.delete(queue, kept.batch)
    kept.written(kept.next_batch())
    assert not kept.router.context.gates.any


@pytest.mark.requirement("RCV-02")
def test_a_dead_letter_is_delivered_when_its_move_is_durable() -> None:
    """Else, after a crash, it might be in its old queue although it was consumed from this one."""
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=1)
    letters = kept.consumer(kept.queue("DLQ"), credit=10)
    kept.send(queue, b"a")
    kept.next_batch()
    consumer.dispose(Disposal.DEAD_LETTER, kept.batch)
    kept.pump()
    assert (letters.taken, kept.batch.is_urgent) == ([], True)
    kept.written(kept.next_batch())
    assert len(letters.taken) == 1


# -- messages that are written at once


def test_a_queue_that_is_not_known_to_be_prompt_is_written_at_once() -> None:
    kept = Kept()
    queue = kept.queue()
    kept.consumer(queue, credit=10)
    kept.next_batch()
    kept.send(queue, b"a")
    assert kept.batch.is_urgent


@pytest.mark.requirement("OPS-04")
def test_the_time_until_a_settlement_is_measured() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=10)
    kept.next_batch()
    kept.send(queue, b"a")
    kept.clock.advance(7)
    queue.accept(consumer.entries.pop(), kept.batch)
    settled = kept.stats.measured.settle_us
    assert (sum(settled.counts), settled.total) == (1, 7000)


def test_a_prompt_queue_is_not() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=100)
    kept.make_prompt(queue, consumer)
    kept.send(queue, b"a")
    kept.send(queue, b"b")
    assert not kept.batch.is_urgent


def test_one_that_has_lost_its_consumers_is() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=100)
    kept.make_prompt(queue, consumer)
    kept.leave(queue, consumer, Disposal.RELEASE)
    kept.send(queue, b"a")
    assert kept.batch.is_urgent


def test_a_message_for_later_is_written_at_once() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=100)
    kept.make_prompt(queue, consumer)
    later = new_message(b"a", durable=True, deliver_at_ms=kept.clock.wall_ms() + 60_000)
    queue.put(later, kept.batch)
    assert kept.batch.is_urgent


def test_one_slow_subscriber_has_the_message_written_at_once() -> None:
    kept = Kept()
    prompt, slow = kept.queue("a"), kept.queue("b")
    consumer = kept.consumer(prompt, credit=100)
    kept.make_prompt(prompt, consumer)
    kept.send(prompt, b"x")
    assert not kept.batch.is_urgent
    kept.send(slow, b"x")
    assert kept.batch.is_urgent


def test_what_is_not_stored_is_nobodys_concern() -> None:
    kept = Kept()
    queue = kept.queue()
    kept.next_batch()
    kept.send(queue, b"a", durable=False)
    assert not kept.batch.is_urgent
    assert queue.persistence.ack_latency is None


def test_purging_a_queue_teaches_nothing() -> None:
    kept = Kept()
    queue = kept.queue()
    kept.send(queue, b"a")
    backlog = queue.backlogs.by_priority[4]
    assert backlog is not None
    entry = backlog.first()
    assert entry is not None
    kept.clock.advance(50)
    queue.withdraw(entry, kept.batch)
    assert queue.persistence.ack_latency is not None
    assert queue.persistence.ack_latency.lag_us == 4 * HOLD_US
    assert kept.batch.consumed == [], "its sender is told with the commit"


# -- how far producers may be ahead


def test_who_comes_late_has_producers_that_are_less_far_ahead_and_nobody_has_free_ones() -> None:
    kept = Kept()
    queue = kept.queue()
    consumer = kept.consumer(queue, credit=10)
    for _ in range(3):
        kept.send(queue, b"a")
        kept.clock.advance(HOLD_US // 1000 + 1)
        kept.next_batch()
    assert queue.producer_window() < UNLIMITED
    kept.leave(queue, consumer, Disposal.RELEASE)
    for _ in range(3):
        kept.send(queue, b"a")
        kept.clock.advance(HOLD_US // 1000 + 1)
        kept.next_batch()
    assert queue.producer_window() == UNLIMITED
