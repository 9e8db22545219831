"""Commit gates: no durable message is delivered before the store knows that it may be (RCV-08)."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.commit_gate import AHEAD, BLOCK
from broker.routing.queues.queue import Queue
from storage.batch import DISCHARGE, Batch
from tests.support.leases import acquire, ask, opened
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message

pytestmark = pytest.mark.requirement("RCV-08")


class Marked(Routing):
    """A queue on a store whose commits take time, and a consumer for it."""

    def __init__(self) -> None:
        super().__init__(commits_take_time=True)
        self.pages = 1
        self.batch = Batch(self.pages)
        self.numbers = 0
        self.durable_up_to = -1
        self.known: dict[str, int] = {}
        self.q = self.queue()
        self.reader = RecordingConsumer()

    def let_read(self, credit: int) -> None:
        if self.reader not in self.q.consumers.attached:
            self.q.attach_consumer(self.reader)
        self.give(self.q, self.reader, credit)

    def turn(self) -> Batch:
        """Begin a commit; return its batch."""
        begun = self.batch
        self.pages += 1
        self.batch = Batch(self.pages)
        return begun

    def written(self, batch: Batch) -> None:
        """End the commit of `batch`."""
        self.known.update(batch.delivered)
        self.durable_up_to = max(self.durable_up_to, int(batch.last_number()))
        self.router.context.gates.lift(self.durable_up_to, batch.page)
        self.pump()

    def commit_all(self) -> None:
        while not self.batch.is_empty():
            self.written(self.turn())

    def send(self, count: int = 1) -> None:
        for _ in range(count):
            self.q.put(new_message(b"%d" % self.numbers, durable=True), self.batch)
            self.numbers += 1
        self.pump()


def place(position: int) -> int:
    """Return the place in the store of a position with the highest priority."""
    return position * 10 + 9


def test_a_message_that_is_not_on_the_disk_either_need_not_wait() -> None:
    marked = Marked()
    marked.let_read(10)
    marked.send()
    assert marked.reader.taken == [b"0"]
    assert marked.batch.delivered == {"q": place(BLOCK)}, "in the batch of the message itself"


def test_a_message_on_the_disk_waits_until_the_store_knows() -> None:
    marked = Marked()
    marked.send()
    marked.commit_all()
    marked.let_read(10)
    assert (marked.reader.taken, marked.batch.delivered) == ([], {"q": place(BLOCK)})
    assert marked.batch.is_urgent
    marked.commit_all()
    assert marked.reader.taken == [b"0"]


def test_a_message_on_its_way_to_the_disk_waits_too() -> None:
    marked = Marked()
    marked.send()
    first = marked.turn()
    marked.let_read(10)
    assert marked.reader.taken == []
    marked.written(first)
    assert marked.reader.taken == []
    marked.commit_all()
    assert marked.reader.taken == [b"0"]


def test_messages_that_nobody_takes_raise_nothing() -> None:
    marked = Marked()
    marked.send(5)
    marked.commit_all()
    assert marked.known == {}


def test_what_is_not_durable_raises_nothing() -> None:
    marked = Marked()
    marked.let_read(10)
    marked.put(marked.q, b"a")
    marked.pump()
    assert (marked.reader.taken, marked.batch.delivered) == ([b"a"], {})


def test_it_is_raised_ahead_of_need_and_once_a_block() -> None:
    marked = Marked()
    marked.send(3 * int(BLOCK))
    marked.commit_all()
    marked.let_read(1)
    raised = list(raises(marked))
    assert raised[0] == place(BLOCK)
    steps = [(later - earlier) // 10 for earlier, later in pairwise(raised)]
    assert set(steps) == {int(BLOCK - AHEAD) + 1}
    assert len(marked.reader.taken) == 3 * int(BLOCK)


def raises(marked: Marked) -> Iterator[int]:
    """Yield the raised marks, while the reader takes 100 messages between commits."""
    while len(marked.reader.taken) < 3 * int(BLOCK):
        yield from marked.batch.delivered.values()
        marked.commit_all()
        before = len(marked.reader.taken)
        assert all(int(entry.position) * 10 <= marked.known["q"] for entry in marked.reader.entries)
        marked.reader.entries.clear()
        marked.let_read(100)
        left = 3 * int(BLOCK) - before
        assert len(marked.reader.taken) == before + min(100, left), "nobody had to wait"


def test_a_message_that_comes_back_is_known_already() -> None:
    marked = Marked()
    marked.let_read(1)
    marked.send()
    marked.commit_all()
    marked.reader.dispose(Disposal.COUNT, marked.batch)
    marked.commit_all()
    marked.let_read(1)
    assert marked.reader.taken == [b"0", b"0"]
    assert marked.batch.delivered == {}


def test_a_message_far_behind_the_others_waits_for_its_own_raise() -> None:
    marked = Marked()
    marked.let_read(1)
    marked.send(2 * int(BLOCK))
    marked.commit_all()
    last = entries(marked.q)[-1]
    assert not marked.q.persistence.admit(last, marked.batch, is_leased=False)
    marked.commit_all()
    assert marked.q.persistence.admit(last, marked.batch, is_leased=False)


def test_messages_that_only_leases_acquire_raise_nothing() -> None:
    """The store has their batches, so a kill leaves no doubt about the others."""
    marked = Marked()
    marked.send(3)
    marked.commit_all()
    lease = opened(marked, marked.q)
    assert acquire(marked, lease, max_messages=2) == [b"0", b"1"]
    marked.q.put(new_message(b"3", durable=True), marked.batch)
    marked.commit_all()
    assert marked.known == {}
    marked.let_read(10)
    assert (marked.reader.taken, marked.batch.delivered) == ([], {"q": place(BLOCK + 2)})
    marked.commit_all()
    assert marked.reader.taken == [b"2", b"3"]


def test_a_lease_waits_for_commits_as_any_consumer() -> None:
    marked = Marked()
    lease = opened(marked, marked.q)
    marked.batch.scope = DISCHARGE
    marked.send()
    asked = ask(marked, lease, wait_ms=1000)
    marked.pump()
    assert (asked.batches, marked.batch.delivered) == ([], {})
    marked.written(marked.turn())
    assert [None if found is None else len(found.entries) for found in asked.batches] == [1]


def holding_one() -> Marked:
    """Return a queue whose lease `l` holds its message `0`; the reader has had `1`."""
    marked = Marked()
    marked.send(2)
    marked.commit_all()
    lease = opened(marked, marked.q, ttl_ms=10)
    assert acquire(marked, lease, max_messages=1) == [b"0"]
    marked.let_read(1)
    marked.commit_all()
    assert marked.reader.taken == [b"1"], "the delivered mark is beyond all of them"
    marked.let_read(10)
    return marked


@pytest.mark.parametrize("expires", [False, True], ids=["released", "run out"])
@pytest.mark.parametrize("later", [False, True], ids=["", "with a message that comes later"])
def test_what_an_ended_lease_held_waits_until_its_end_is_durable(
    expires: bool, later: bool
) -> None:
    """After a kill the lease would have it again, as if nobody had received it since."""
    marked = holding_one()
    if expires:
        marked.advance(10)
    else:
        marked.router.leases.release("l", marked.batch)
        marked.pump()
    begun = marked.turn()
    assert begun.leases is not None
    if later:
        marked.send()
    assert marked.reader.taken == [b"1"]
    marked.written(begun)
    assert marked.reader.taken == ([b"1", b"0", b"2"] if later else [b"1", b"0"])


def test_the_end_of_a_lease_keeps_back_what_a_transaction_sent_no_less() -> None:
    marked = holding_one()
    marked.router.leases.release("l", marked.batch)
    ending = marked.turn()
    marked.batch.scope = DISCHARGE
    marked.send()
    assert marked.reader.taken == [b"1"]
    marked.written(ending)
    assert marked.reader.taken == [b"1", b"0"]
    marked.commit_all()
    assert marked.reader.taken == [b"1", b"0", b"2"]


def test_the_end_of_a_lease_without_messages_keeps_nothing_back() -> None:
    marked = Marked()
    marked.let_read(10)
    opened(marked, marked.q)
    marked.router.leases.release("l", marked.batch)
    marked.send()
    assert marked.reader.taken == [b"0"]


def entries(queue: Queue) -> list[QueueEntry]:
    backlog = queue.backlogs.by_priority[4]
    assert backlog is not None
    return backlog.after(-1, backlog.waiting)


def test_after_a_kill_what_the_store_knows_is_in_force() -> None:
    marked = Marked()
    marked.send()
    marked.commit_all()
    marked.q.persistence.restore(place(BLOCK))
    marked.let_read(10)
    assert (marked.reader.taken, marked.batch.delivered) == ([b"0"], {})


def test_what_comes_after_a_kill_is_not_known_yet() -> None:
    marked = Marked()
    marked.q.persistence.restore(place(BLOCK))
    marked.send()
    marked.commit_all()
    marked.let_read(10)
    assert (marked.reader.taken, marked.batch.delivered) == ([], {"q": place(2 * BLOCK + 1)})
    marked.commit_all()
    assert marked.reader.taken == [b"0"]


def test_a_store_that_commits_at_once_has_nothing_to_know() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"a", durable=True), routing.batch)
    routing.commit()
    consumer = routing.consumer(queue, 10)
    assert (consumer.taken, routing.batch.delivered) == ([b"a"], {})


def test_a_drain_does_not_end_while_a_message_waits_for_a_commit() -> None:
    """A consumer that asks once for what there is gets the message: it was accepted before."""
    marked = Marked()
    marked.send()
    marked.commit_all()
    marked.q.attach_consumer(marked.reader)
    marked.give(marked.q, marked.reader, 10, drain=True)
    assert (marked.reader.taken, marked.reader.drains) == ([], 0)
    marked.commit_all()
    assert (marked.reader.taken, marked.reader.drains) == ([b"0"], 1)
