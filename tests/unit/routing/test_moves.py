"""Moves to dead-letter and expiry nodes: the message is moved, or held until it can be."""

import asyncio

import pytest

from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.restore import restore
from broker.routing.addresses.policy import BLOCK, DROP_OLDEST, REJECT, AddressPolicy
from broker.routing.credit.disk_guard import DiskGuard
from broker.routing.entries.redelivery import Disposal
from broker.routing.moves import RETRIED_AT_MOST, RETRY_EVERY_MS
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import purge
from broker.routing.transaction import Retirement, Transaction
from tests.support.clock import WALL_START_MS
from tests.support.frames import message
from tests.support.notices import notice_texts
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, bodies, counts, encoded, new_message
from tests.unit.routing.credit.test_disk_guard import LEAST, Disk

pytestmark = pytest.mark.requirement("RCV-02")

NO_QUEUE = AddressPolicy(dead_letter="/topic/durable/dead", expiry="/topic/durable/late")
"""Nodes to which no message can be moved: a class of topics."""

CONSUMED_SOON = WALL_START_MS + 10


def reject(routing: Routing, queue: Queue, *names: bytes, durable: bool = True) -> None:
    """Send messages to `queue`, and let a consumer reject them."""
    for name in names:
        queue.put(new_message(name, durable=durable), routing.batch)
    consumer = routing.consumer(queue, len(names))
    assert consumer.taken == list(names)
    while consumer.entries:
        consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    queue.detach_consumer(consumer, queue, routing.batch)
    routing.pump()


def full_nodes() -> tuple[Routing, Queue]:
    """Return a broker with all nodes it may have: this queue, and `other`, which can be deleted."""
    routing = Routing(nodes_max=2)
    routing.queue("other")
    return routing, routing.queue()


def make_room(routing: Routing) -> None:
    """Delete the node `other`, and let the next attempt to move messages run."""
    routing.router.delete(routing.queue("other"), routing.batch)
    routing.advance(RETRY_EVERY_MS)


# -- the limits of the node are not those of moves

LIMITS = {
    "by messages": {"max_messages": 1},
    "by bytes": {"max_bytes": 2},
}


@pytest.mark.parametrize("full", [BLOCK, REJECT, DROP_OLDEST])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS.keys())
def test_a_full_dead_letter_node_takes_what_is_moved(limit: dict[str, int], full: str) -> None:
    policy = AddressPolicy(
        max_messages=limit.get("max_messages", 0), max_bytes=limit.get("max_bytes", 0), full=full
    )
    routing = Routing(patterns=[("DLQ", policy)])
    reject(routing, routing.queue(), b"one", b"two", b"three")
    assert routing.consumer(routing.queue("DLQ"), 9).taken == [b"one", b"two", b"three"]
    stats = routing.stats
    over = 2 if policy.max_messages else 3
    assert (stats.dead_lettered, stats.moved_over_limit, stats.dropped) == (3, over, 0)
    (notice,) = notice_texts(routing.router.notices)
    assert notice.startswith("DLQ is beyond its max_messages or max_bytes")


def test_a_full_expiry_node_takes_what_expires() -> None:
    late = AddressPolicy(max_messages=1, full=REJECT)
    routing = Routing(policy=AddressPolicy(expiry="late"), patterns=[("late", late)])
    queue = routing.queue()
    for name in (b"one", b"two"):
        queue.put(new_message(name, expires_at_ms=CONSUMED_SOON), routing.batch)
    routing.advance(1000)
    assert routing.queue("late").backlogs.waiting == 2
    assert (routing.stats.expired, routing.stats.moved_over_limit) == (2, 1)


# -- messages that are held


def test_what_cannot_be_moved_stays_and_is_delivered_to_nobody() -> None:
    routing, queue = full_nodes()
    reject(routing, queue, b"bad", b"worse")
    routing.put(queue, b"good")
    assert routing.consumer(queue, 9).taken == [b"good"]
    assert routing.browser(queue, 9).copies == []
    assert bodies(queue.state.held_for_move()) == [b"bad", b"worse"]
    assert (queue.backlogs.waiting, queue.state.held(), queue.contents(), queue.state.bytes) == (
        0,
        2,
        3,
        12,
    )
    assert len(routing.stored()) == 2
    stats = routing.stats
    assert (stats.held_back, stats.dead_lettered, stats.dropped) == (2, 0, 0)


def test_the_log_says_what_could_not_be_moved_where_to_and_why() -> None:
    routing, queue = full_nodes()
    reject(routing, queue, b"bad", b"worse")
    (notice,) = notice_texts(routing.router.notices)
    assert notice.startswith(
        "a message of q could not be moved to DLQ (rejected): the broker has its 2 queues and"
    )
    assert "message list --held" in notice


def test_it_is_moved_once_that_is_possible_in_its_order_and_with_its_reason() -> None:
    routing, queue = full_nodes()
    reject(routing, queue, b"bad", b"worse")
    routing.advance(RETRY_EVERY_MS)
    assert queue.state.held() == 2
    make_room(routing)
    assert routing.consumer(routing.queue("DLQ"), 9).taken == [b"bad", b"worse"]
    assert counts(queue) == (0, 0, 0)
    assert queue.state.held() == 0
    assert routing.stored() == []
    assert [each.encoded for each in routing.stored("DLQ")] == [b"bad", b"worse"]
    assert routing.stats.dead_lettered == 2
    assert notice_texts(routing.router.notices)[-1] == "messages that q held back are moved to DLQ"
    consume_all(routing)


def test_nothing_is_tried_again_while_nothing_is_held() -> None:
    routing, queue = full_nodes()
    reject(routing, queue, b"bad")
    purge(queue, 9, routing.batch)
    held = queue.state.held_for_move()[0]
    queue.withdraw(held, routing.batch)
    assert (queue.contents(), queue.state.bytes, routing.stored()) == (0, 0, [])
    routing.advance(60_000)
    assert routing.router.timer_queue.next_deadline_ms() == -1


def test_what_failed_too_often_is_held_too() -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=1), nodes_max=1)
    queue = routing.queue()
    routing.put(queue, b"bad")
    routing.consumer(queue, 9).dispose(Disposal.FAIL, routing.batch)
    (entry,) = queue.state.held_for_move()
    cause = queue.state.cause_of(entry)
    assert cause is not None
    assert (cause.reason, entry.delivery_count) == ("delivery-limit", 1)


EXPIRING = {
    "while it waits": {},
    "before its delivery time": {"deliver_at_ms": CONSUMED_SOON + 1000},
}


@pytest.mark.parametrize("times", EXPIRING.values(), ids=EXPIRING.keys())
def test_an_expired_message_that_cannot_be_moved_is_held(times: dict[str, int]) -> None:
    routing = Routing(policy=AddressPolicy(expiry="late"), nodes_max=2)
    queue, _ = routing.queue(), routing.queue("other")
    deliver_at_ms = times.get("deliver_at_ms", 0)
    queue.put(
        new_message(b"a", durable=True, expires_at_ms=CONSUMED_SOON, deliver_at_ms=deliver_at_ms),
        routing.batch,
    )
    routing.advance(1000)
    assert routing.consumer(queue, 9).taken == []
    assert (bodies(queue.state.held_for_move()), routing.stats.expired) == ([b"a"], 0)
    make_room(routing)
    assert (routing.queue("late").backlogs.waiting, routing.stats.expired) == (1, 1)
    sweep = queue.state.sweep
    assert sweep is not None
    assert (queue.contents(), sweep.expiring) == (0, 0)


def test_a_paused_message_that_expires_is_held() -> None:
    policy = AddressPolicy(expiry="late", redelivery_delay_ms=50)
    routing = Routing(policy=policy, nodes_max=1)
    queue = routing.queue()
    queue.put(new_message(b"a", expires_at_ms=CONSUMED_SOON), routing.batch)
    routing.consumer(queue, 9).dispose(Disposal.FAIL, routing.batch)
    routing.advance(60)
    assert bodies(queue.state.held_for_move()) == [b"a"]


def test_a_group_goes_on_without_what_is_held() -> None:
    routing, queue = full_nodes()
    one, other = routing.consumer(queue, 1), routing.consumer(queue, 9)
    routing.put_grouped(queue, "a1", "a2", "a3")
    assert (one.taken, other.taken) == ([b"a1"], [])
    one.dispose(Disposal.DEAD_LETTER, routing.batch)
    routing.give(queue, one, 9)
    assert (one.taken, other.taken) == ([b"a1", b"a2", b"a3"], [])
    make_room(routing)
    assert routing.consumer(routing.queue("DLQ"), 9).taken == [b"a1"]
    assert (queue.backlogs.waiting, queue.state.held()) == (0, 0)


def test_what_is_held_takes_the_room_of_its_queue() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2, full=REJECT), nodes_max=1)
    queue = routing.queue()
    reject(routing, queue, b"bad")
    assert queue.room_for_more() > 0
    routing.put(queue, b"good")
    assert queue.contents() == 2


def test_a_rejection_within_a_transaction_is_held_at_its_commit() -> None:
    routing, queue = full_nodes()
    routing.put(queue, b"bad")
    entry = routing.consumer(queue, 1).entries[0]
    transaction = Transaction(routing.router, operations_max=0, bytes_max=0)
    transaction.retire(Retirement(entry, Disposal.DEAD_LETTER))
    assert queue.state.held_for_move() == []
    transaction.commit(routing.batch)
    assert (bodies(queue.state.held_for_move()), queue.state.acquired) == ([b"bad"], 0)


def test_what_a_subscription_cannot_move_is_held_there_and_ends_with_it() -> None:
    routing = Routing(nodes_max=1)
    topic = routing.topic()
    consumer = RecordingConsumer(9)
    queue = routing.subscribe(topic, consumer)
    routing.give(queue, consumer, 9)
    routing.put(topic, b"bad")
    routing.pump()
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    assert bodies(queue.state.held_for_move()) == [b"bad"]
    routing.unsubscribe(queue, consumer)
    assert (queue.state.held(), queue.state.bytes) == (0, 0)
    routing.advance(RETRY_EVERY_MS)
    assert "DLQ" not in routing.router.queues


@pytest.mark.attack("Z6")
def test_a_topic_is_no_dead_letter_node() -> None:
    """A queue of that name is created, whatever topics exist: a topic may have no subscriber."""
    routing = Routing()
    routing.topic("DLQ")
    reject(routing, routing.queue(), b"bad")
    assert routing.queue("DLQ").backlogs.waiting == 1


def test_a_deleted_queue_takes_what_it_holds_along() -> None:
    routing, queue = full_nodes()
    reject(routing, queue, b"bad")
    routing.router.delete(queue, routing.batch)
    routing.advance(RETRY_EVERY_MS)
    assert (queue.state.bytes, routing.stored(), routing.stats.dead_lettered) == (0, [], 0)


def test_moves_wait_while_the_disk_is_nearly_full() -> None:
    routing = Routing()
    disk = Disk()
    guard = DiskGuard(routing.router.context.routing, disk, LEAST)
    routing.router.credit_policy.disk_guard = guard
    guard.begin()
    disk.free = 0
    routing.advance(1000)
    queue = routing.queue()
    reject(routing, queue, b"bad")
    assert (bodies(queue.state.held_for_move()), routing.stats.held_back) == ([b"bad"], 1)
    assert "disk_free_min" in notice_texts(routing.router.notices)[-1]
    disk.free = LEAST * 2
    routing.advance(1000)
    routing.advance(RETRY_EVERY_MS)
    assert (queue.state.held(), routing.queue("DLQ").backlogs.waiting) == (0, 1)


def test_so_many_are_moved_at_a_time() -> None:
    routing, queue = full_nodes()
    reject(routing, queue, *[b"%d" % number for number in range(RETRIED_AT_MOST + 1)])
    make_room(routing)
    assert queue.state.held() == 1
    routing.advance(0)
    assert queue.state.held() == 0


# -- messages that are dropped on purpose

DISCARDED = {
    "no dead-letter node": (AddressPolicy(dead_letter=""), "q", "dead_letter is not set for it"),
    "the node itself": (AddressPolicy(), "DLQ", "its messages are moved to itself"),
}


@pytest.mark.parametrize(("policy", "address", "why"), DISCARDED.values(), ids=DISCARDED.keys())
def test_what_is_dropped_on_purpose_is_counted_and_told(
    policy: AddressPolicy, address: str, why: str
) -> None:
    routing = Routing(policy=policy)
    reject(routing, routing.queue(address), b"bad")
    assert (routing.stats.dropped, routing.stats.held_back) == (1, 0)
    assert notice_texts(routing.router.notices) == [
        f"a message of {address} was discarded (rejected): {why}"
    ]


def test_what_temporary_nodes_drop_is_counted_and_told() -> None:
    routing = Routing()
    reject(routing, routing.temporary_queue(), b"bad", durable=False)
    assert routing.stats.dropped == 1
    assert notice_texts(routing.router.notices)[0].endswith(
        "messages of temporary nodes are not moved"
    )


def test_a_message_that_expires_without_an_expiry_node_is_counted_alone() -> None:
    routing = Routing()
    routing.queue().put(new_message(expires_at_ms=CONSUMED_SOON), routing.batch)
    routing.advance(1000)
    assert (routing.stats.expired, notice_texts(routing.router.notices)) == (1, [])


# -- a restart


def restarted(earlier: Routing, *, policy: AddressPolicy, nodes_max: int = 100_000) -> Routing:
    """Return another broker on the store of `earlier`."""
    earlier.commit()
    routing = Routing(policy=policy, nodes_max=nodes_max, store=earlier.store)
    asyncio.run(restore(routing.store, routing.router, routing.batch))
    routing.router.context.number_from(1000)  # a store in memory does not know the numbers in use
    return routing


def rejected_in_vain() -> Routing:
    """Return routing with a queue of two messages, a held one that was rejected and a ready one."""
    routing = Routing(policy=NO_QUEUE)
    queue = routing.queue()
    consumer = routing.consumer(queue, 1)
    queue.put(new_message(encoded(b"bad"), durable=True), routing.batch)
    routing.pump()
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    queue.detach_consumer(consumer, queue, routing.batch)
    queue.put(new_message(encoded(b"good"), durable=True), routing.batch)
    return routing


def test_what_was_held_is_held_after_a_restart() -> None:
    earlier = rejected_in_vain()
    size = earlier.queue().state.bytes
    routing = restarted(earlier, policy=NO_QUEUE)
    queue = routing.queue()
    assert routing.consumer(queue, 9).taken == [encoded(b"good")]
    assert bodies(queue.state.held_for_move()) == [encoded(b"bad")]
    assert (queue.contents(), queue.state.bytes) == (2, size)
    assert len(routing.stored()) == 2


def test_a_restart_with_another_node_moves_it_there() -> None:
    routing = restarted(rejected_in_vain(), policy=AddressPolicy())
    assert routing.consumer(routing.queue(), 9).taken == [encoded(b"good")]
    routing.advance(RETRY_EVERY_MS)
    (entry,) = routing.consumer(routing.queue("DLQ"), 9).entries
    told = {str(key): str(value) for key, value in entry.message.annotations().pairs}
    assert told["x-opt-dead-letter-reason"] == "rejected"
    assert "x-opt-dead-letter-held" not in told
    assert entry.message.encoded.endswith(encoded(b"bad"))
    assert routing.stored("q") != routing.stored("DLQ")
    assert len(routing.stored("DLQ")) == 1
    consume_all(routing)


def consume_all(routing: Routing) -> None:
    """Consume all remaining messages; check that none counts in memory any more."""
    for queue in routing.router.queues.values():
        for consumer in list(queue.consumers.attached):
            assert isinstance(consumer, RecordingConsumer)
            while consumer.entries:
                consumer.dispose(Disposal.REMOVE, routing.batch)
    assert (routing.router.memory.total(), routing.router.memory.held) == (0, 0)


def test_what_expired_in_vain_is_held_after_a_restart() -> None:
    earlier = Routing(policy=NO_QUEUE)
    earlier.queue().put(
        new_message(encoded(b"late"), durable=True, expires_at_ms=CONSUMED_SOON), earlier.batch
    )
    earlier.advance(1000)
    assert len(earlier.queue().state.held_for_move()) == 1
    routing = restarted(earlier, policy=NO_QUEUE)
    queue = routing.queue()
    assert routing.consumer(queue, 9).taken == []
    assert bodies(queue.state.held_for_move()) == [encoded(b"late")]
    queue.put(new_message(encoded(b"next"), durable=True), routing.batch)
    assert len({each.position for each in routing.stored()}) == 2
    again = restarted(routing, policy=AddressPolicy(expiry="late"))
    again.advance(RETRY_EVERY_MS)
    assert again.queue("late").backlogs.waiting == 1
    state = again.queue().state
    assert state.sweep is not None
    assert (state.backlogs.waiting, state.held(), state.sweep.expiring) == (1, 0, 0)


NO_ROOM = {
    "that fill the room there is": message(
        b"bad", annotations={"x-own": bytes(SECTIONS_BEFORE_BODY_MAX - 100)}
    ),
    "that cannot be read": b"\x00\x53\x72\xc1\x04\x02\xa3\x01a" + encoded(b"bad"),
}


@pytest.mark.parametrize("content", NO_ROOM.values(), ids=NO_ROOM.keys())
def test_a_message_with_annotations_is_held_after_a_restart(content: bytes) -> None:
    """The reason for its rejection is lost, since its annotations have no room for it."""
    earlier = Routing(policy=NO_QUEUE)
    reject(earlier, earlier.queue(), content)
    (stored,) = earlier.stored()
    assert stored.encoded == content
    state = restarted(earlier, policy=NO_QUEUE).queue().state
    assert [each.reason for each in map(state.cause_of, state.held_for_move()) if each] == [
        "rejected"
    ]


@pytest.mark.attack("Z6")
def test_a_message_that_only_says_so_of_itself_is_delivered() -> None:
    """A client may send any annotation: it does not make the message a held one."""
    (_, stored) = rejected_in_vain().stored()
    assert b"x-opt-dead-letter-held" in stored.encoded
    other = Routing(policy=NO_QUEUE)
    other.queue().put(new_message(stored.encoded, durable=True), other.batch)
    routing = restarted(other, policy=NO_QUEUE)
    assert len(routing.consumer(routing.queue(), 9).taken) == 1
