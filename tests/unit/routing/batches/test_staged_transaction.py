"""One stage: its messages, the room it reserves for them, and its end."""

import pytest

from broker.message import Message, Origin
from broker.routing.addresses.address import Address
from broker.routing.addresses.policy import BLOCK, DROP_OLDEST, REJECT, AddressPolicy
from broker.routing.batches.staged_transaction import StagedTransaction
from broker.routing.batches.staging_area import StagingArea
from broker.routing.errors import LimitReached, NoSuchNode, NotAsSent, QueueFull
from broker.routing.queues.message_events import ENQUEUED
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.queues.queue import Queue
from broker.routing.topics.subscription import PRIVATE_ROW, SubscriptionExpiry, SubscriptionSpec
from storage.stages import PLACES, STAGED
from tests.support.frames import message
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing, begin_subscription, encoded, new_message
from tests.support.staging import Staging, body_of, depth, restarted, task


@pytest.mark.requirement("PIP-12")
@pytest.mark.parametrize("durable", [True, False])
def test_what_is_staged_is_stored_and_seen_by_nobody(durable: bool) -> None:
    staging = Staging()
    consumer = staging.routing.consumer(staging.routing.queue(), 10)
    staging.send(task(), b"a", b"b", durable=durable)
    staging.routing.pump()
    assert (consumer.taken, staging.waiting()) == ([], [])
    assert staging.routing.router.names("queue") == ["q"]
    stored = [each for each in staging.routing.batch.appended if each is not None]
    assert [(each.queue, int(each.position)) for each in stored] == [
        (STAGED, int(PLACES)),
        (STAGED, int(PLACES) + 1),
    ]
    assert staging.routing.batch.is_urgent
    staging.commit((0, 0))
    assert [body_of(each) for each in consumer.taken] == [b"a", b"b"]


def test_a_stage_that_is_over_takes_nothing_more_and_its_senders_are_told() -> None:
    staging = Staging()
    stage = staging.stage(task())
    sender = RecordingProducer()
    stage.join(sender)
    stage.put(new_message(encoded(b"a")), staging.routing.batch)
    staging.commit((0, 0), counts=[1])
    assert sender.lost_its_node
    with pytest.raises(NoSuchNode, match="attempt 0 of partition 0 in batch 0 of orders"):
        stage.put(new_message(encoded(b"b")), staging.routing.batch)
    assert staging.waiting() == [b"a"]


def test_nothing_comes_into_a_stage_that_is_being_committed() -> None:
    staging = Staging()
    stage = staging.send(task(), b"a")
    staging.stages.choose("orders", 0, [(0, 0, 1)])
    with pytest.raises(NoSuchNode):
        stage.put(new_message(encoded(b"b")), staging.routing.batch)


def test_a_message_keeps_what_it_said() -> None:
    staging = Staging()
    wall_ms = staging.routing.clock.wall_ms()
    staging.send(task(), b"low", priority=1)
    staging.send(task(), b"high", priority=9, expires_at_ms=int(wall_ms) + 1000)
    staging.commit((0, 0))
    consumer = staging.routing.consumer(staging.routing.queue(), 10)
    assert [body_of(each) for each in consumer.taken] == [b"high", b"low"]
    assert [each.message.expires_at_ms for each in consumer.entries] == [wall_ms + 1000, 0]
    assert [each.message.durable for each in consumer.entries] == [True, True]


def test_time_to_live_runs_while_a_message_is_staged() -> None:
    staging = Staging(Routing(policy=AddressPolicy(expiry="late")))
    wall_ms = int(staging.routing.clock.wall_ms())
    staging.send(task(), b"short", expires_at_ms=wall_ms + 1000)
    staging.send(task(), b"long", expires_at_ms=wall_ms + 3000)
    staging.routing.advance(2000)
    consumer = staging.routing.consumer(staging.routing.queue(), 10)
    staging.commit((0, 0))
    assert [body_of(each) for each in consumer.taken] == [b"long"]
    assert staging.routing.queue("late").backlogs.waiting == 1


@pytest.mark.parametrize(("passed_ms", "seen"), [(0, []), (2000, [b"a"])])
def test_a_delivery_time_counts_from_the_commit_on(passed_ms: int, seen: list[bytes]) -> None:
    staging = Staging()
    wall_ms = int(staging.routing.clock.wall_ms())
    staging.send(task(), b"a", deliver_at_ms=wall_ms + 1000)
    staging.routing.advance(passed_ms)
    assert staging.waiting() == []
    staging.commit((0, 0))
    assert staging.waiting() == seen
    staging.routing.advance(2000)
    assert staging.waiting() == [b"a"]


def test_repeats_are_found_at_the_commit() -> None:
    staging = Staging(Routing(policy=AddressPolicy(duplicate_window=10)))
    routing = staging.routing
    stage = staging.stage(task())
    for _ in range(2):
        stage.put(_identified(), routing.batch)
    assert routing.queue().duplicates is not None
    assert routing.stats.duplicates == 0
    staging.commit((0, 0), counts=[2])
    assert (routing.queue().backlogs.waiting, routing.stats.duplicates) == (1, 1)


def _identified() -> Message:
    return Message(
        encoded=message(message_id="a"),
        durable=True,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
    )


@pytest.mark.requirement("PIP-13")
def test_topics_meet_the_subscribers_of_the_commit() -> None:
    staging = Staging()
    topic = staging.routing.topic()
    early = staging.routing.consumer(topic, 10)
    staging.send(task(), b"a", address="t", kind=TOPIC)
    late = staging.routing.consumer(topic, 10)
    assert (early.taken, late.taken) == ([], [])
    staging.commit((0, 0))
    assert [body_of(each) for each in early.taken] == [b"a"]
    assert [body_of(each) for each in late.taken] == [b"a"]


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after a restart"])
def test_the_key_of_an_address_counts_at_the_commit(again: bool) -> None:
    staging = Staging()
    stage = staging.stage(task(), "news/sport", kind=TOPIC, origin=Origin("spark", "sport"))
    stage.put(new_message(encoded(b"a"), durable=True), staging.routing.batch)
    if again:
        staging = restarted(staging)
    queues = [_subscribed(staging.routing, f"news/{key}") for key in ("sport", "money")]
    staging.commit((0, 0), counts=[1])
    assert [queue.backlogs.waiting for queue in queues] == [1, 0]


def _subscribed(routing: Routing, address: str) -> Queue:
    wanted = SubscriptionSpec(Address(address))
    begun = begin_subscription(
        routing.router, PRIVATE_ROW, wanted, SubscriptionExpiry(), routing.batch
    )
    return begun.queue


@pytest.mark.requirement("PIP-13")
def test_the_event_log_has_a_message_when_it_is_committed() -> None:
    staging = Staging(Routing(policy=AddressPolicy(event_log=True)))
    staging.send(task(), b"a")
    assert kinds(staging.routing) == []
    staging.commit((0, 0))
    assert kinds(staging.routing) == [ENQUEUED]


def kinds(routing: Routing) -> list[object]:
    """Return the kinds of the events logged since the last commit."""
    events = routing.batch.events
    return [] if events is None else [row[2] for row in events.rows]


# -- room


@pytest.mark.requirement("PIP-15")
@pytest.mark.parametrize("full", [REJECT, BLOCK])
def test_what_is_staged_takes_room(full: str) -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=3, full=full, dead_letter="")))
    queue = staging.routing.queue()
    staging.send(task(), b"a", b"b")
    staging.routing.put(queue, encoded(b"c"))
    with pytest.raises(QueueFull):
        staging.routing.put(queue, encoded(b"d"))
    with pytest.raises(QueueFull):
        staging.send(task(1), b"d")
    assert depth(queue) == (1, 2)
    staging.commit((0, 0))
    assert depth(queue) == (3, 0)
    with pytest.raises(QueueFull):
        staging.routing.put(queue, encoded(b"d"))


@pytest.mark.requirement("PIP-15")
def test_bytes_that_are_staged_take_room() -> None:
    size = len(encoded(b"a"))
    policy = AddressPolicy(max_bytes=2 * size, full=REJECT)
    staging = Staging(Routing(policy=policy))
    staging.send(task(), b"a")
    staging.send(task(), b"b")
    with pytest.raises(QueueFull):
        staging.routing.put(staging.routing.queue(), encoded(b"c"))
    staging.abort("orders", 0)
    staging.routing.put(staging.routing.queue(), encoded(b"c"))


@pytest.mark.requirement("PIP-15")
def test_a_queue_that_drops_the_oldest_does_so_at_the_commit() -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=2, full=DROP_OLDEST)))
    staging.routing.put(staging.routing.queue(), encoded(b"1"), encoded(b"2"))
    staging.send(task(), b"a")
    assert staging.waiting() == [b"1", b"2"]
    staging.commit((0, 0))
    assert staging.waiting() == [b"2", b"a"]
    assert staging.routing.stats.displaced == 1


@pytest.mark.requirement("PIP-15")
def test_what_is_staged_for_a_topic_takes_room_in_every_subscription() -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=2, full=REJECT)))
    topic = staging.routing.topic()
    reader = staging.routing.consumer(topic)
    staging.send(task(), b"a", address="t", kind=TOPIC)
    staging.routing.put(topic, encoded(b"b"))
    with pytest.raises(QueueFull):
        staging.send(task(), b"c", address="t", kind=TOPIC)
    staging.commit((0, 0))
    (queue,) = topic.subscriptions
    assert (queue.contents(), reader.taken) == (2, [])


@pytest.mark.requirement("PIP-15")
def test_a_commit_is_not_refused_by_a_subscription_that_began_behind_it() -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=1, full=REJECT)))
    topic = staging.routing.topic()
    staging.send(task(), b"a", b"b", address="t", kind=TOPIC)
    staging.routing.consumer(topic)
    staging.commit((0, 0))
    (queue,) = topic.subscriptions
    assert queue.contents() == 2


@pytest.mark.requirement("PIP-15")
def test_room_is_given_back_when_a_stage_goes() -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=2)))
    queue = staging.routing.queue()
    waiting = RecordingProducer()
    staging.send(task(), b"a", b"b")
    queue.producers.append(waiting)
    assert queue.credit_pool is not None
    queue.credit_pool.ask(waiting)
    assert waiting.credit == 0
    staging.abort("orders", 0)
    assert waiting.credit > 0
    assert depth(queue) == (0, 0)


@pytest.mark.requirement("PIP-15")
def test_a_commit_gives_no_room_away() -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=2)))
    queue = staging.routing.queue()
    waiting = RecordingProducer()
    staging.send(task(), b"a", b"b")
    queue.producers.append(waiting)
    assert queue.credit_pool is not None
    queue.credit_pool.ask(waiting)
    staging.commit((0, 0))
    assert (waiting.credit, depth(queue)) == (0, (2, 0))
    staging.routing.consumer(queue, 10, settles=True)
    staging.routing.pump()
    assert waiting.credit > 0


@pytest.mark.requirement("PIP-15")
def test_a_sender_to_a_stage_gets_the_credit_that_the_target_has_room_for() -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=4)))
    queue = staging.routing.queue()
    stage = staging.stage(task())
    sender = RecordingProducer()
    stage.join(sender)
    assert stage.credit_pool is queue.credit_pool
    assert stage.credit_pool is not None
    stage.credit_pool.ask(sender)
    assert 0 < sender.credit <= 4
    assert queue.credit_pool is not None
    assert queue.credit_pool.granted == sender.credit
    stage.leave(sender)
    assert (queue.credit_pool.granted, queue.producers) == (0, [])


@pytest.mark.requirement("PIP-15")
@pytest.mark.parametrize("kind", [QUEUE, TOPIC])
def test_a_batch_that_can_never_fit_is_refused_and_waits_for_nobody(kind: str) -> None:
    """No consumer can make room: all senders would wait for ever, and no commit would follow."""
    staging = Staging(Routing(policy=AddressPolicy(max_messages=8)))
    if kind == TOPIC:
        staging.routing.consumer(staging.routing.topic("q"))
    senders = [RecordingProducer(8), RecordingProducer(8)]
    stages = [staging.stage(task(number), kind=kind) for number in range(2)]
    for stage, sender in zip(stages, senders, strict=True):
        stage.join(sender)
        assert stage.credit_pool is not None
        stage.give_credit(sender, stage.credit_pool)
    for _ in range(8):
        number = 0 if senders[0].credit > 0 else 1
        _send_with_credit(staging, stages[number], senders[number])
    for stage, sender in zip(stages, senders, strict=True):
        with pytest.raises(QueueFull, match="8 messages, 8 of them staged"):
            _send_with_credit(staging, stage, sender)


def _send_with_credit(
    staging: Staging, stage: StagedTransaction, sender: RecordingProducer
) -> None:
    """Send one message as a link does that has credit, and ask for more credit."""
    assert stage.credit_pool is not None
    assert sender.credit > 0, "it waits for ever"
    sender.credit -= 1
    stage.credit_pool.used(sender)
    try:
        stage.put(new_message(encoded(b"a")), staging.routing.batch)
    finally:
        stage.give_credit(sender, stage.credit_pool)


@pytest.mark.requirement("PIP-15")
def test_a_sender_waits_for_consumers_while_these_can_make_room() -> None:
    staging = Staging(Routing(policy=AddressPolicy(max_messages=2)))
    queue = staging.routing.queue()
    staging.routing.put(queue, encoded(b"1"), encoded(b"2"))
    stage, sender = staging.stage(task()), RecordingProducer()
    stage.join(sender)
    assert stage.credit_pool is not None
    stage.give_credit(sender, stage.credit_pool)
    assert sender.credit == 0
    staging.routing.consumer(queue, 10, settles=True)
    staging.routing.pump()
    assert sender.credit > 0


@pytest.mark.requirement("PIP-15")
@pytest.mark.parametrize(
    ("messages_max", "bytes_max"),
    [pytest.param(2, 10_000, id="messages"), pytest.param(100, 20, id="bytes")],
)
def test_a_batch_has_a_largest_size(messages_max: int, bytes_max: int) -> None:
    routing = Routing()
    stages = StagingArea(routing.router, batch_messages_max=messages_max, batch_bytes_max=bytes_max)
    staging = Staging(routing, stages=stages)
    staging.send(task(0), b"1234")
    staging.send(task(1), b"1234")
    with pytest.raises(LimitReached, match="batch 0 of orders"):
        staging.send(task(2), b"1234")
    staging.send(task(2, batch=1), b"1234")
    staging.abort("orders", 0)
    staging.send(task(2), b"1234")


# -- the target


@pytest.mark.requirement("PIP-13")
def test_a_target_that_is_deleted_takes_what_is_staged_for_it_along() -> None:
    staging = Staging()
    staging.send(task(0), b"a")
    staging.send(task(1), b"b", address="other")
    staging.routing.commit()
    staging.routing.router.delete(staging.routing.queue(), staging.routing.batch)
    with pytest.raises(NotAsSent):
        staging.commit((0, 0), (1, 0))
    assert staging.waiting("other") == []
    staging.commit((1, 0))
    assert staging.waiting("other") == [b"b"]
    assert not staging.routing.store.load_now(list(range(1, 10)))[1:]


def test_a_link_of_a_stage_ends_with_its_target() -> None:
    staging = Staging()
    stage = staging.stage(task())
    sender = RecordingProducer()
    stage.join(sender)
    staging.routing.router.delete(staging.routing.queue(), staging.routing.batch)
    assert sender.lost_its_node
    stage.leave(sender)
    assert staging.stages.sinks == {}
