"""Recovery after a restart: a second router, built from what the first one stored."""

import asyncio

import pytest
from librt.strings import BytesWriter

from broker.amqp.encode import put_descriptor, put_value
from broker.links.recovery import Recovery
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from storage.leases import StoredLeases
from storage.records import StoredSubscription
from tests.support.routing import Routing, bodies, new_message

DATA = b"\x00\x53\x75\xa0\x01"


def text(number: int) -> bytes:
    """Return the bytes of a message: a data section with one digit."""
    return DATA + b"%d" % number


def put(routing: Routing, *numbers: int, priority: int = 4, deliver_at_ms: int = 0) -> None:
    for number in numbers:
        message = new_message(
            text(number), durable=True, priority=priority, deliver_at_ms=deliver_at_ms
        )
        routing.queue().put(message, routing.batch)


def restarted(
    old: Routing,
    *,
    delivered: int | None = None,
    leases: StoredLeases | None = None,
    policy: AddressPolicy | None = None,
) -> Routing:
    """Return a router built from the store of `old`; its clock continues from the old one's.

    `delivered` is the stored delivered mark of the queue `q`, None if there is none. `leases`
    replace those of the store.
    """
    old.commit()
    new = Routing(store=old.store, policy=policy)
    new.clock.advance(old.clock.now_ms() - new.clock.now_ms())
    new.router.context.number_from(int(old.router.context.next_stored_number()))
    positions = {} if delivered is None else {"q": delivered}
    recovery = Recovery(new.router, new.batch)
    recovery.nodes(asyncio.run(old.store.nodes()), asyncio.run(old.store.leases()))
    for subscription in asyncio.run(old.store.subscriptions()):
        recovery.subscription(subscription)
    recovery.deliveries(positions)
    recovery.leases(leases or asyncio.run(old.store.leases()))
    for stored_id in asyncio.run(old.store.ids(0)):
        recovery.remembered_id(stored_id)
    recovery.places(asyncio.run(old.store.places(0)))
    for message in old.store.load_now(recovery.scheduled()):
        recovery.message(message)
    for message in old.store.load_now(recovery.leased()):
        recovery.leased_message(message)
    recovery.finish()
    return new


def taken(routing: Routing, queue: Queue, credit: int = 100) -> list[bytes]:
    return bodies(routing.consumer(queue, credit).entries)


@pytest.mark.requirement("DST-02", "PRD-03", "RCV-03")
def test_queues_have_their_messages_in_their_order() -> None:
    old = Routing()
    put(old, 1, 2)
    put(old, 3, priority=9)
    new = restarted(old)
    assert taken(new, new.queue()) == [text(3), text(1), text(2)]


def test_what_is_not_durable_is_gone() -> None:
    old = Routing()
    put(old, 1)
    old.put(old.queue(), text(2))
    new = restarted(old)
    assert new.queue().backlogs.waiting == 1


@pytest.mark.requirement("RCV-01")
def test_what_failed_is_counted_and_in_its_place() -> None:
    old = Routing()
    put(old, 1, 2)
    consumer = old.consumer(old.queue(), 1)
    consumer.dispose(Disposal.FAIL, old.batch)
    consumer.credit = 0
    new = restarted(old)
    entries = new.consumer(new.queue(), 2).entries
    assert [(entry.message.encoded, int(entry.delivery_count)) for entry in entries] == [
        (text(1), 1),
        (text(2), 0),
    ]


@pytest.mark.requirement("RCV-08")
def test_after_a_kill_whatever_may_have_been_delivered_says_so() -> None:
    old = Routing()
    put(old, 1, 2)
    consumer = old.consumer(old.queue(), 1)
    consumer.dispose(Disposal.FAIL, old.batch)
    old.consumer(old.queue(), 2)
    new = restarted(old, delivered=1 * 10 + 9)
    entries = new.consumer(new.queue(), 2).entries
    assert [(int(entry.delivery_count), int(entry.failures)) for entry in entries] == [
        (1, 0),
        (1, 0),
    ]


@pytest.mark.requirement("RCV-08")
def test_what_lies_behind_that_was_not_delivered() -> None:
    old = Routing()
    put(old, 1, 2, 3)
    put(old, 4, priority=9)
    new = restarted(old, delivered=1 * 10 + 9)
    entries = new.consumer(new.queue(), 10).entries
    told = {entry.message.encoded: int(entry.delivery_count) for entry in entries}
    assert told == {text(4): 1, text(1): 1, text(2): 1, text(3): 0}


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    ("left", "scheduled"),
    [
        pytest.param([], [], id="the queue is empty"),
        pytest.param([4], [], id="a message is left"),
        pytest.param([9], [], id="a message of another priority is left"),
        pytest.param([], [4], id="a message waits for its delivery time"),
        pytest.param([], [9], id="one of another priority waits for that"),
    ],
)
def test_what_comes_after_a_kill_was_not_delivered_before_the_next_one(
    left: list[int], scheduled: list[int]
) -> None:
    """Its position is behind the delivered mark, which the store keeps."""
    old = Routing()
    for priority in left:
        put(old, 1, priority=priority)
    for priority in scheduled:
        put(old, 2, priority=priority, deliver_at_ms=old.clock.wall_ms() + 1)
    old.queue()
    mark = 30_000 * 10 + 9
    new = restarted(old, delivered=mark)
    for priority in (4, 9):
        put(new, 3, priority=priority)
    new.advance(1)
    again = restarted(new, delivered=mark)
    entries = again.consumer(again.queue(), 10).entries
    counts = {(entry.message.encoded, int(entry.delivery_count)) for entry in entries}
    assert (text(3), 0) in counts
    assert (text(3), 1) not in counts
    assert ((text(1), 1) in counts) == bool(left)
    assert len(entries) == len(left) + len(scheduled) + 2


@pytest.mark.requirement("RCV-08")
def test_what_comes_after_a_kill_goes_behind_what_was_there() -> None:
    old = Routing()
    put(old, 1, 2)
    new = restarted(old, delivered=30_000 * 10 + 9)
    put(new, 3)
    new.page_out()
    put(new, 4)
    assert taken(new, new.queue()) == [text(number) for number in (1, 2, 3, 4)]
    again = restarted(new, delivered=30_000 * 10 + 9)
    assert taken(again, again.queue()) == [text(number) for number in (1, 2, 3, 4)]


def test_what_was_held_by_a_consumer_waits_again() -> None:
    old = Routing()
    put(old, 1, 2, 3)
    old.consumer(old.queue(), 2)
    new = restarted(old)
    assert taken(new, new.queue()) == [text(1), text(2), text(3)]


def test_what_comes_later_goes_behind() -> None:
    old = Routing()
    put(old, 1, 2)
    new = restarted(old)
    put(new, 3)
    assert taken(new, new.queue()) == [text(1), text(2), text(3)]


@pytest.mark.requirement("DLY-03")
def test_a_scheduled_message_is_scheduled_anew() -> None:
    old = Routing()
    put(old, 1, deliver_at_ms=old.clock.wall_ms() + 500)
    put(old, 2)
    new = restarted(old)
    queue = new.queue()
    consumer = new.consumer(queue, 10)
    assert bodies(consumer.entries) == [text(2)]
    new.advance(499)
    assert len(consumer.entries) == 1
    new.advance(1)
    assert bodies(consumer.entries) == [text(2), text(1)]


@pytest.mark.requirement("DLY-03")
def test_a_delivery_time_that_came_meanwhile_is_kept() -> None:
    old = Routing()
    put(old, 1, deliver_at_ms=old.clock.wall_ms() + 500)
    put(old, 2)
    old.commit()
    old.clock.advance(1000)
    new = restarted(old)
    consumer = new.consumer(new.queue(), 10)
    new.advance(0)
    assert bodies(consumer.entries) == [text(2), text(1)]


def selector(text: str) -> bytes:
    """Return the encoded value of a selector filter."""
    out = BytesWriter()
    put_descriptor(out, 0x468C00000004)
    put_value(out, text)
    return out.getvalue()


@pytest.mark.requirement("SUB-02", "SUB-08", "RCV-05")
@pytest.mark.parametrize("container_id", ["shop", None], ids=["of a container", "global"])
def test_a_durable_subscription_goes_on(container_id: str | None) -> None:
    old = Routing()
    old.topic("news")
    stored = StoredSubscription(
        queue="$sub/one",
        container_id=container_id,
        name="orders",
        is_shared=container_id is None,
        address="news",
        filters=[("jms-selector", selector("JMSPriority > 5"))],
        excluded_publisher="",
        durability=2,
        expiry_policy="never",
        timeout_s=0,
    )
    old.batch.add_subscription(stored)
    new = restarted(old)
    subscription = new.router.subscriptions.named[container_id, "orders", True]
    topic = new.topic("news")
    for number, priority in ((1, 4), (2, 9)):
        message = new_message(text(number), durable=True, priority=priority)
        topic.put(message, new.batch)
    new.commit()
    again = restarted(new)
    assert (subscription.is_shared, subscription.terms.durability) == (container_id is None, 2)
    assert subscription.queue.backlogs.waiting == 1
    assert [message.queue for message in asyncio.run(new.store.messages(0))] == ["$sub/one"]
    assert (
        again.router.subscriptions.named[container_id, "orders", True].queue.backlogs.waiting == 1
    )


@pytest.mark.requirement("SUB-25")
def test_a_subscription_that_was_to_end_with_its_connection_has_ended() -> None:
    old = Routing()
    old.batch.add_subscription(
        StoredSubscription(
            queue="$sub/one",
            container_id="shop",
            name="orders",
            is_shared=False,
            address="news",
            filters=[],
            excluded_publisher="",
            durability=2,
            expiry_policy="connection-close",
            timeout_s=5,
        )
    )
    new = restarted(old)
    assert list(new.router.subscriptions.named) == [("shop", "orders", True)]
    new.advance(4999)
    assert new.router.subscriptions.named
    new.advance(1)
    assert not new.router.subscriptions.named
