"""The registry of subscriptions: how they begin and end, and what is stored of them."""

import asyncio

import pytest

from broker.amqp.terminus import NEVER
from broker.routing.addresses.address import Address
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import HeldExclusively, InvalidAddress, LimitReached, NoSuchNode
from broker.routing.selector import parse_selector
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.subscription import (
    AttachRule,
    ConsumerDetach,
    Subscription,
    SubscriptionExpiry,
    SubscriptionSpec,
    SubscriptionTraits,
    row_of,
)
from broker.routing.topics.topic import Topic
from storage.records import StoredSubscription
from tests.support.notices import notice_texts
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, begin_subscription, new_message

DURABLE = SubscriptionTraits(is_durable=True)
SHARED = SubscriptionTraits(is_shared=True)
SHARED_DURABLE = SubscriptionTraits(is_shared=True, is_durable=True)


def row(facts: SubscriptionTraits, name: str = "n", container_id: str = "client") -> AttachRule:
    return row_of(facts, link_name=name, container_id=container_id)


def begin(
    routing: Routing, facts: SubscriptionTraits = DURABLE, name: str = "n", *, address: str = "t"
) -> Subscription:
    """Begin a subscription with these traits; a durable one never expires."""
    return begin_subscription(
        routing.router,
        row(facts, name),
        SubscriptionSpec(Address(address)),
        SubscriptionExpiry(durability=2, expiry_policy=NEVER)
        if facts.is_durable
        else SubscriptionExpiry(),
        routing.batch,
    )


def join(subscription: Subscription) -> RecordingConsumer:
    consumer = RecordingConsumer()
    subscription.queue.attach_consumer(consumer)
    return consumer


def stored_subscriptions(routing: Routing) -> list[StoredSubscription]:
    routing.commit()
    return asyncio.run(routing.store.subscriptions())


def assert_nothing_is_left(routing: Routing) -> None:
    assert not routing.router.subscriptions.named
    assert not routing.router.subscriptions.of
    assert all(not topic.subscriptions for topic in routing.router.topics.values())
    assert not stored_subscriptions(routing)


# -- beginnings


@pytest.mark.requirement("SUB-02", "DST-14")
def test_a_durable_subscription_is_kept_with_its_durable_messages() -> None:
    routing = Routing()
    subscription = begin(routing)
    topic = routing.topic()
    topic.put(new_message(b"kept", durable=True), routing.batch)
    topic.put(new_message(b"not kept"), routing.batch)
    (stored,) = stored_subscriptions(routing)
    assert (stored.container_id, stored.name, stored.address) == ("client", "n", "t")
    assert (stored.is_shared, stored.durability) == (False, 2)
    assert [each.encoded for each in routing.stored(stored.queue)] == [b"kept"]
    assert subscription.queue.backlogs.waiting == 2
    assert routing.stored("t") == [], "nothing under the topic's name"


@pytest.mark.requirement("SUB-04", "DST-14")
@pytest.mark.parametrize(
    ("wanted", "excluded"),
    [
        (None, ""),
        (ConsumerFilter(parse_selector("a = 1"), ""), ""),
        (ConsumerFilter(None, "client"), "client"),
    ],
    ids=["everything", "a selector", "no-local"],
)
def test_whom_no_local_leaves_out_is_stored(wanted: ConsumerFilter | None, excluded: str) -> None:
    routing = Routing()
    facts = SubscriptionTraits(is_durable=True, is_global=True)
    spec = SubscriptionSpec(Address("t"), wanted)
    begin_subscription(routing.router, row(facts), spec, SubscriptionExpiry(), routing.batch)
    (stored,) = stored_subscriptions(routing)
    assert (stored.container_id, stored.excluded_publisher) == (None, excluded)


def test_volatile_subscriptions_are_not_stored() -> None:
    routing = Routing()
    begin(routing, SHARED)
    begin(routing, SubscriptionTraits(), "m")
    routing.topic().put(new_message(durable=True), routing.batch)
    assert stored_subscriptions(routing) == []


def test_the_name_in_the_store_is_new_each_time_and_no_address() -> None:
    routing = Routing()
    names = {begin(routing, name=name).queue.persistence.stored_as for name in ("a", "b")}
    assert len(names) == 2
    for name in names:
        for kind in ("queue", ""):
            with pytest.raises(NoSuchNode):
                routing.router.resolve(routing.router.parse(name, kind), routing.batch)


@pytest.mark.requirement("SUB-24")
def test_subscriptions_of_one_name_coexist() -> None:
    routing = Routing()
    every = [
        begin(routing, SubscriptionTraits(is_shared=True, is_durable=durable, is_global=is_global))
        for durable in (False, True)
        for is_global in (False, True)
    ]
    assert len(routing.router.subscriptions.named) == 4
    routing.put(routing.topic(), b"a")
    assert [each.queue.backlogs.waiting for each in every] == [1, 1, 1, 1]


def test_a_private_subscription_is_known_to_nobody() -> None:
    routing = Routing()
    subscription = begin(routing, SubscriptionTraits())
    assert subscription.name() == ""
    assert routing.router.subscriptions.find(row(SubscriptionTraits())) is None
    routing.router.subscriptions.end(subscription, routing.batch)
    assert_nothing_is_left(routing)


def test_nothing_durable_begins_at_a_temporary_topic() -> None:
    routing = Routing()
    topic = routing.router.create_temporary("topic", 1)
    assert isinstance(topic, Topic)
    with pytest.raises(InvalidAddress):
        begin_subscription(
            routing.router,
            row(DURABLE),
            SubscriptionSpec(Address(topic.address)),
            SubscriptionExpiry(),
            routing.batch,
        )
    assert_nothing_is_left(routing)


def test_there_is_a_limit_to_named_subscriptions() -> None:
    routing = Routing(subscriptions_max=2)
    first = begin(routing, name="1")
    begin(routing, SHARED, "2")
    with pytest.raises(LimitReached):
        begin(routing, name="3")
    begin(routing, SubscriptionTraits(), "3")
    begin(routing, name="1", address="other")
    assert first.is_over, "in its own place a subscription may begin anew"
    assert len(routing.router.subscriptions.named) == 2


# -- subscriptions that begin anew


@pytest.mark.requirement("SUB-21")
def test_a_subscription_that_begins_anew_says_what_it_drops() -> None:
    routing = Routing()
    old = begin(routing)
    for number in range(3):
        routing.topic().put(new_message(b"%d" % number, durable=True), routing.batch)
    new = begin(routing, address="other")
    assert (old.is_over, new.queue.backlogs.waiting) == (True, 0)
    assert routing.stats.backlog_dropped == 3
    (notice,) = notice_texts(routing.router.notices)
    assert notice == "subscription n to t starts anew, to other: 3 messages dropped"
    (stored,) = stored_subscriptions(routing)
    assert (stored.queue, stored.address) == (new.queue.persistence.stored_as, "other")
    assert routing.stored(old.queue.persistence.stored_as) == []
    assert routing.topic().subscriptions == []


def test_nothing_is_said_of_an_empty_backlog() -> None:
    routing = Routing()
    begin(routing)
    begin(routing, address="other")
    assert (notice_texts(routing.router.notices), routing.stats.backlog_dropped) == ([], 0)


# -- ends


def leave(
    routing: Routing, subscription: Subscription, consumer: RecordingConsumer, *, closed: bool
) -> bool:
    """Let the consumer leave; return whether the subscription allows it."""
    try:
        routing.router.subscriptions.leave(
            subscription,
            consumer,
            routing.batch,
            how=ConsumerDetach(
                Ending.LINK_CLOSED if closed else Ending.LINK_DETACHED,
                connection=1,
                session=0,
                key=("client", "n"),
            ),
        )
    except HeldExclusively:
        return False
    return True


LEAVING = [
    # facts, closed, others, (whether it may leave, whether the subscription is over)
    pytest.param(SubscriptionTraits(), False, False, (True, True), id="private, detached"),
    pytest.param(SubscriptionTraits(), True, False, (True, True), id="private, closed"),
    pytest.param(DURABLE, False, False, (True, False), id="durable, detached"),
    pytest.param(DURABLE, True, False, (True, True), id="durable, closed"),
    pytest.param(SHARED, False, False, (True, True), id="the last of a volatile one, detached"),
    pytest.param(SHARED, True, False, (True, True), id="the last of a volatile one, closed"),
    pytest.param(SHARED, False, True, (True, False), id="one of a volatile one, detached"),
    pytest.param(SHARED, True, True, (True, False), id="one of a volatile one, closed"),
    pytest.param(
        SHARED_DURABLE, False, False, (True, False), id="the last of a durable one, detached"
    ),
    pytest.param(SHARED_DURABLE, True, False, (True, True), id="the last of a durable one, closed"),
    pytest.param(SHARED_DURABLE, False, True, (True, False), id="one of a durable one, detached"),
    pytest.param(SHARED_DURABLE, True, True, (False, False), id="one of a durable one, closed"),
]


@pytest.mark.requirement("SUB-30", "SUB-31", "SUB-33")
@pytest.mark.parametrize(("facts", "closed", "others", "expected"), LEAVING)
def test_a_consumer_leaves(
    facts: SubscriptionTraits, closed: bool, others: bool, expected: tuple[bool, bool]
) -> None:
    routing = Routing()
    subscription = begin(routing, facts)
    consumer = join(subscription)
    if others:
        join(subscription)
    routing.put(routing.topic(), b"a")
    peacefully = leave(routing, subscription, consumer, closed=closed)
    assert (peacefully, subscription.is_over) == expected
    assert consumer not in subscription.queue.consumers.attached
    if subscription.is_over:
        assert_nothing_is_left(routing)
        assert subscription.queue.backlogs.waiting == 0
    else:
        assert subscription.queue.backlogs.waiting == 1, "nothing is lost"
        assert routing.router.subscriptions.find(row(facts)) is subscription


@pytest.mark.requirement("SUB-31", "SUB-34")
def test_unsubscribing_ends_what_nobody_uses() -> None:
    routing = Routing()
    subscription = begin(routing)
    assert subscription.identity is not None
    consumer = join(subscription)
    routing.put(routing.topic(), b"a")
    with pytest.raises(HeldExclusively):
        routing.router.subscriptions.unsubscribe(subscription.identity, routing.batch)
    assert (subscription.is_over, subscription.queue.backlogs.waiting) == (False, 1)
    leave(routing, subscription, consumer, closed=False)
    routing.router.subscriptions.unsubscribe(subscription.identity, routing.batch)
    assert subscription.is_over
    routing.router.subscriptions.unsubscribe(subscription.identity, routing.batch)
    assert_nothing_is_left(routing)


def test_a_topic_does_not_take_subscriptions_to_a_pattern_with_it() -> None:
    routing = Routing()
    routing.topic("a.b")
    subscription = begin(routing, address="a.*")
    consumer = join(subscription)
    routing.put(routing.topic("a.b"), b"1")
    routing.router.delete(routing.topic("a.b"), routing.batch)
    routing.put(routing.topic("a.c"), b"2")
    assert (subscription.is_over, subscription.queue.backlogs.waiting) == (False, 2)
    leave(routing, subscription, consumer, closed=True)
    assert_nothing_is_left(routing)


def test_where_no_binding_is_left_the_old_subscription_stays() -> None:
    routing = Routing(bindings_max=1)
    old = begin(routing)
    with pytest.raises(LimitReached):
        begin(routing, address="other")
    assert not old.is_over
    assert routing.router.subscriptions.find(row(DURABLE)) is old


def test_a_topic_takes_its_subscriptions_with_it() -> None:
    routing = Routing()
    subscription = begin(routing)
    volatile = begin(routing, SHARED)
    elsewhere = begin(routing, name="other", address="other")
    consumer = join(subscription)
    routing.put(routing.topic(), b"a")
    routing.router.delete(routing.topic(), routing.batch)
    assert (subscription.is_over, volatile.is_over, elsewhere.is_over) == (True, True, False)
    assert consumer.lost_its_node
    assert [each.name for each in stored_subscriptions(routing)] == ["other"]
    leave(routing, subscription, consumer, closed=True)
    assert list(routing.router.subscriptions.named) == [("client", "other", True)]
