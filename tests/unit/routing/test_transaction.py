"""Transactions: all of their work takes effect at one moment, or none of it."""

from collections.abc import Callable

import pytest

from broker.amqp.errors import LinkFault
from broker.routing.addresses.policy import BLOCK, REJECT, AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import LimitReached, NoSuchNode, QueueFull
from broker.routing.queues.queue import Queue
from broker.routing.transaction import Retirement, Transaction
from tests.support.parties import RecordingConsumer, RecordingProducer
from tests.support.retirements import Recording
from tests.support.routing import Routing, counts, new_message

pytestmark = pytest.mark.requirement("RCV-06")


def begun(routing: Routing, *, operations: int = 0, size: int = 0) -> Transaction:
    return Transaction(routing.router, operations_max=operations, bytes_max=size)


def taken(routing: Routing, queue: Queue, number: int = 1) -> RecordingConsumer:
    """Return a consumer that has acquired `number` messages of the queue."""
    consumer = routing.consumer(queue, credit=number)
    assert len(consumer.entries) == number
    return consumer


def post(transaction: Transaction, queue: Queue, *bodies: bytes, durable: bool = False) -> None:
    for body in bodies:
        transaction.post(queue, new_message(body, durable=durable), len(body))


def is_doomed(transaction: Transaction) -> bool:
    return transaction.doomed_by is not None


def rest(routing: Routing, queue: Queue) -> list[bytes]:
    """Return the bodies of all ready messages, in order."""
    consumer = routing.consumer(queue, credit=100)
    return consumer.taken


# -- messages that are posted


def test_what_was_posted_is_there_after_the_commit_in_its_order() -> None:
    routing = Routing()
    one, other = routing.queue("one"), routing.queue("other")
    transaction = begun(routing)
    post(transaction, one, b"1", b"2")
    post(transaction, other, b"3")
    post(transaction, one, b"4")
    assert (one.backlogs.waiting, other.backlogs.waiting) == (0, 0)
    transaction.commit(routing.batch)
    assert rest(routing, one) == [b"1", b"2", b"4"]
    assert rest(routing, other) == [b"3"]
    assert (routing.stats.published, routing.stats.published_bytes) == (4, 4)


def test_what_was_posted_is_gone_after_a_rollback() -> None:
    routing = Routing()
    queue = routing.queue()
    transaction = begun(routing)
    post(transaction, queue, b"1", durable=True)
    transaction.roll_back(routing.batch)
    transaction.commit(routing.batch)
    assert counts(queue) == (0, 0, 0)
    assert routing.stored() == []
    assert routing.stats.published == 0


def test_a_commit_is_one_batch() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"old", durable=True), routing.batch)
    routing.commit()
    consumer = taken(routing, queue)
    transaction = begun(routing)
    post(transaction, queue, b"1", b"2", durable=True)
    transaction.retire(Retirement(consumer.entries[0], Disposal.REMOVE))
    assert routing.batch.is_empty()
    transaction.commit(routing.batch)
    assert [each.encoded for each in routing.stored()] == [b"1", b"2"]


@pytest.mark.requirement("DLY-03")
def test_a_topic_is_met_with_the_subscribers_of_the_commit() -> None:
    routing = Routing()
    topic = routing.topic()
    early, late = RecordingConsumer(), RecordingConsumer()
    leaving = routing.subscribe(topic, early)
    transaction = begun(routing)
    transaction.post(topic, new_message(b"1"), 1)
    routing.unsubscribe(leaving, early)
    joined = routing.subscribe(topic, late)
    transaction.commit(routing.batch)
    routing.give(joined, late, 5)
    routing.pump()
    assert (early.taken, late.taken) == ([], [b"1"])


# -- deliveries that are retired

COMMITTED = [
    pytest.param(Disposal.REMOVE, True, id="accepted"),
    pytest.param(Disposal.DEAD_LETTER, True, id="rejected"),
    pytest.param(Disposal.FAIL, False, id="failed"),
    pytest.param(Disposal.FAIL_ELSEWHERE, False, id="failed, and not here again"),
    pytest.param(Disposal.RELEASE, False, id="released"),
    pytest.param(Disposal.ELSEWHERE, False, id="not here again"),
]


@pytest.mark.parametrize(("outcome", "gone"), COMMITTED)
def test_an_outcome_counts_once_it_is_committed(outcome: Disposal, gone: bool) -> None:
    routing = Routing(policy=AddressPolicy(dead_letter=""))
    queue = routing.queue()
    routing.put(queue, b"1")
    consumer = taken(routing, queue)
    transaction = begun(routing)
    transaction.retire(Retirement(consumer.entries[0], outcome))
    assert counts(queue) == (0, 1, 1)
    transaction.commit(routing.batch)
    assert counts(queue) == ((0, 0, 0) if gone else (1, 0, 1))


ROLLED_BACK = [
    # the disposal, then the delivery-count and failures of the returned message
    pytest.param(Disposal.REMOVE, (1, 1), id="accepted"),
    pytest.param(Disposal.DEAD_LETTER, (1, 1), id="rejected"),
    pytest.param(Disposal.FAIL, (1, 1), id="failed"),
    pytest.param(Disposal.FAIL_ELSEWHERE, (1, 1), id="failed, and not here again"),
    pytest.param(Disposal.RELEASE, (0, 0), id="released"),
    pytest.param(Disposal.ELSEWHERE, (0, 0), id="not here again"),
]


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(("outcome", "left"), ROLLED_BACK)
def test_a_rollback_returns_what_was_retired(outcome: Disposal, left: tuple[int, int]) -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1", b"2")
    consumer = taken(routing, queue)
    entry = consumer.entries[0]
    transaction = begun(routing)
    transaction.retire(Retirement(entry, outcome))
    transaction.roll_back(routing.batch)
    assert counts(queue) == (2, 0, 2)
    assert (int(entry.delivery_count), int(entry.failures)) == left
    routing.give(queue, consumer, 2)
    assert consumer.taken == [b"1", b"1", b"2"], "in its place, to the same consumer too"


@pytest.mark.requirement("RCV-08")
def test_rollbacks_are_held_against_the_redelivery_limit() -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=3))
    queue = routing.queue()
    routing.put(queue, b"1")
    consumer = routing.consumer(queue)
    for _ in range(3):
        routing.give(queue, consumer, 1)
        transaction = begun(routing)
        transaction.retire(Retirement(consumer.entries.pop(), Disposal.REMOVE))
        transaction.roll_back(routing.batch)
    assert queue.backlogs.waiting == 0
    assert routing.queue("DLQ").backlogs.waiting == 1


def test_an_outcome_outlives_its_consumer() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1", b"2")
    consumer = taken(routing, queue, 2)
    transaction = begun(routing)
    for entry in consumer.entries:
        transaction.retire(Retirement(entry, Disposal.REMOVE))
    queue.detach_consumer(consumer, queue, routing.batch)
    assert counts(queue) == (0, 2, 2)
    transaction.roll_back(routing.batch)
    assert rest(routing, queue) == [b"1", b"2"]


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "rolled back"])
@pytest.mark.parametrize("outcome", list(Disposal), ids=lambda outcome: outcome.name.lower())
def test_the_queue_may_go_before_the_transaction(outcome: Disposal, committed: bool) -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"1", durable=True), routing.batch)
    consumer = taken(routing, queue)
    transaction = begun(routing)
    transaction.retire(Retirement(consumer.entries[0], outcome))
    routing.router.delete(queue, routing.batch)
    if committed:
        transaction.commit(routing.batch)
    else:
        transaction.roll_back(routing.batch)
    assert counts(queue) == (0, 0, 0)
    assert routing.stored() == []


def test_annotations_are_added_by_the_commit() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"\x00\x53\x75\xa0\x00")
    entry = taken(routing, queue).entries[0]
    annotations = bytes.fromhex("c1 07 02 a3 01 78 a3 01 79")
    for committed in (False, True):
        transaction = begun(routing)
        transaction.retire(Retirement(entry, Disposal.RELEASE, annotations=annotations))
        assert transaction.bytes == len(annotations)
        if committed:
            transaction.commit(routing.batch)
        else:
            transaction.roll_back(routing.batch)
            entry = taken(routing, queue).entries[0]
        assert (b"x" in entry.message.encoded) is committed


def test_a_delivery_that_is_held_stays_where_it_is_after_a_rollback() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1", b"2", b"3")
    consumer = taken(routing, queue, 3)
    holder = Recording()
    transaction = begun(routing)
    for entry in consumer.entries:
        transaction.retire(Retirement(entry, Disposal.REMOVE, holder=holder))
    transaction.settled(consumer.entries[1])
    transaction.withdraw(consumer.entries[2])
    transaction.roll_back(routing.batch)
    assert holder.told == ["rolled back 1"]
    assert counts(queue) == (1, 2, 3)
    assert consumer.entries[0].delivery_count == 0


def test_a_delivery_that_is_held_is_over_after_a_commit() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1")
    holder = Recording()
    transaction = begun(routing)
    entry = taken(routing, queue).entries[0]
    transaction.retire(Retirement(entry, Disposal.REMOVE, holder=holder))
    transaction.commit(routing.batch)
    assert holder.told == ["committed 1"]
    assert counts(queue) == (0, 0, 0)


# -- causes for which a commit fails


def test_a_commit_that_finds_a_full_queue_changes_nothing() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2, full=REJECT))
    full, other, source = routing.queue("full"), routing.queue("other"), routing.queue("source")
    routing.put(source, b"request")
    routing.put(full, b"1")
    consumer = taken(routing, source)
    transaction = begun(routing)
    transaction.retire(Retirement(consumer.entries[0], Disposal.REMOVE))
    post(transaction, other, b"2")
    post(transaction, full, b"3", b"4")
    with pytest.raises(QueueFull):
        transaction.commit(routing.batch)
    assert (full.backlogs.waiting, other.backlogs.waiting, source.backlogs.waiting) == (1, 0, 1)
    assert consumer.entries[0].delivery_count == 1


@pytest.mark.parametrize("full", [BLOCK, REJECT])
def test_what_a_transaction_takes_makes_room_for_what_it_brings(full: str) -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1, full=full))
    queue = routing.queue()
    routing.put(queue, b"old")
    consumer = taken(routing, queue)
    transaction = begun(routing)
    transaction.retire(Retirement(consumer.entries[0], Disposal.REMOVE))
    post(transaction, queue, b"new")
    transaction.commit(routing.batch)
    assert rest(routing, queue) == [b"new"]


def test_a_release_makes_no_room() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1, full=REJECT))
    queue = routing.queue()
    routing.put(queue, b"old")
    consumer = taken(routing, queue)
    transaction = begun(routing)
    transaction.retire(Retirement(consumer.entries[0], Disposal.RELEASE))
    post(transaction, queue, b"new")
    with pytest.raises(QueueFull):
        transaction.commit(routing.batch)


def test_a_subscription_that_is_full_stands_against_a_commit() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1, full=REJECT))
    topic = routing.topic()
    slow, quick = RecordingConsumer(), RecordingConsumer(5, settles=routing.batch)
    routing.subscribe(topic, slow)
    queue = routing.subscribe(topic, quick)
    routing.put(topic, b"1")
    routing.give(queue, quick, 5)
    transaction = begun(routing)
    transaction.post(topic, new_message(b"2"), 1)
    with pytest.raises(QueueFull):
        transaction.commit(routing.batch)
    routing.pump()
    assert quick.taken == [b"1"]


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made anew"])
def test_a_node_that_was_deleted_stands_against_a_commit(again: bool) -> None:
    routing = Routing()
    queue, other = routing.queue(), routing.queue("other")
    transaction = begun(routing)
    post(transaction, other, b"1")
    post(transaction, queue, b"2")
    routing.router.delete(queue, routing.batch)
    if again:
        routing.queue()
    with pytest.raises(NoSuchNode):
        transaction.commit(routing.batch)
    assert other.backlogs.waiting == 0


def test_a_doomed_transaction_tells_the_first_cause() -> None:
    routing = Routing()
    queue = routing.queue()
    transaction = begun(routing)
    post(transaction, queue, b"1")
    transaction.doom(LinkFault("first"))
    transaction.doom(LinkFault("second"))
    post(transaction, queue, b"2")
    with pytest.raises(LinkFault, match="first"):
        transaction.commit(routing.batch)
    assert queue.backlogs.waiting == 0


# -- limits


def test_a_transaction_has_only_so_many_operations() -> None:
    """`transaction_operations_max`: posted messages are freed at once, retired ones are not."""
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"1", b"2")
    consumer = taken(routing, queue, 2)
    transaction = begun(routing, operations=3)
    post(transaction, queue, b"3", b"4")
    transaction.retire(Retirement(consumer.entries[0], Disposal.REMOVE))
    assert not is_doomed(transaction)
    transaction.retire(Retirement(consumer.entries[1], Disposal.REMOVE))
    assert is_doomed(transaction)
    assert counts(queue) == (0, 2, 2)
    with pytest.raises(LimitReached, match="3 operations"):
        transaction.commit(routing.batch)
    assert rest(routing, queue) == [b"1", b"2"]


def test_a_transaction_holds_only_so_many_bytes() -> None:
    """The limit is `transaction_bytes_max`."""
    routing = Routing()
    queue = routing.queue()
    transaction = begun(routing, size=5)
    post(transaction, queue, b"123", b"45")
    assert not is_doomed(transaction)
    post(transaction, queue, b"6")
    with pytest.raises(LimitReached, match="5 bytes"):
        transaction.commit(routing.batch)
    assert queue.backlogs.waiting == 0


def test_no_limit_is_none() -> None:
    routing = Routing()
    transaction = begun(routing)
    post(transaction, routing.queue(), *[b"x" * 100] * 100)
    assert not is_doomed(transaction)


# -- room in nodes that block


def test_a_message_has_its_room_from_the_moment_at_which_it_is_posted() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=3))
    queue = routing.queue()
    routing.put(queue, b"1")
    transaction, late = begun(routing), begun(routing)
    post(transaction, queue, b"2", b"3")
    with pytest.raises(QueueFull, match="3 messages, 2 of them staged"):
        routing.put(queue, b"other")
    with pytest.raises(QueueFull):
        post(late, queue, b"other")
    transaction.commit(routing.batch)
    assert rest(routing, queue) == [b"1", b"2", b"3"]
    assert (queue.posted, queue.posted_bytes) == (0, 0)


def test_bytes_have_their_room_too() -> None:
    """The bytes may reach twice the limit, as those of all messages sent with credit."""
    routing = Routing(policy=AddressPolicy(max_bytes=10))
    queue = routing.queue()
    transaction = begun(routing)
    post(transaction, queue, b"x" * 12)
    with pytest.raises(QueueFull, match="10 bytes"):
        routing.put(queue, b"x" * 9)
    routing.put(queue, b"x" * 8)
    transaction.commit(routing.batch)
    assert queue.state.bytes == 20


def roll_back(transaction: Transaction, routing: Routing) -> None:
    transaction.roll_back(routing.batch)


def doom(transaction: Transaction, routing: Routing) -> None:  # noqa: ARG001 - like roll_back
    transaction.doom(LinkFault("no"))


@pytest.mark.parametrize("end", [roll_back, doom])
def test_the_room_of_what_is_given_up_is_for_those_who_wait(
    end: Callable[[Transaction, Routing], None],
) -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2))
    queue = routing.queue()
    assert queue.credit_pool is not None
    producer = RecordingProducer()
    queue.producers.append(producer)
    transaction = begun(routing)
    post(transaction, queue, b"1", b"2")
    queue.give_credit(producer, queue.credit_pool)
    assert producer.granted == []
    end(transaction, routing)
    assert sum(producer.granted) > 0
    assert (queue.posted, queue.posted_bytes, int(queue.contents())) == (0, 0, 0)


def test_what_a_transaction_takes_makes_room_once() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1))
    queue = routing.queue()
    routing.put(queue, b"old")
    consumer = taken(routing, queue)
    transaction = begun(routing)
    transaction.retire(Retirement(consumer.entries[0], Disposal.REMOVE))
    post(transaction, queue, b"new")
    with pytest.raises(QueueFull):
        post(transaction, queue, b"more")


def test_what_is_posted_to_a_topic_takes_room_in_every_subscription() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1))
    topic = routing.topic()
    first = routing.subscribe(topic, RecordingConsumer())
    transaction = begun(routing)
    transaction.post(topic, new_message(b"1"), 1)
    with pytest.raises(QueueFull):
        routing.put(topic, b"2")
    late = routing.subscribe(topic, RecordingConsumer())
    transaction.commit(routing.batch)
    assert (first.backlogs.waiting, late.backlogs.waiting) == (1, 1)


REPEATED = b"\x00\x53\x73\xc0\x06\x01\xa1\x03one\x00\x53\x75\xa0\x01x"
"""A message with an id."""


def test_only_the_first_of_two_messages_with_one_id_needs_room() -> None:
    policy = AddressPolicy(max_messages=1, full=REJECT, duplicate_window=5)
    routing = Routing(policy=policy)
    queue = routing.queue()
    transaction = begun(routing)
    post(transaction, queue, REPEATED, REPEATED)
    transaction.commit(routing.batch)
    assert queue.backlogs.waiting == 1


def test_a_repeat_needs_no_room() -> None:
    policy = AddressPolicy(max_messages=1, duplicate_window=5)
    routing = Routing(policy=policy)
    queue = routing.queue()
    body = REPEATED
    assert queue.duplicates is not None
    queue.duplicates.put(new_message(body), routing.batch)
    transaction = begun(routing)
    post(transaction, queue, body)
    transaction.commit(routing.batch)
    assert queue.backlogs.waiting == 1


def test_a_node_that_transactions_have_sent_to_is_in_use() -> None:
    routing = Routing()
    queue = routing.queue()
    transaction = begun(routing)
    assert queue.is_unused()
    post(transaction, queue, b"1")
    assert not queue.is_unused()
    transaction.roll_back(routing.batch)
    assert queue.is_unused()
