"""Lifetimes of subscriptions without consumers, by policy, ending and timeout (SUB-25)."""

from __future__ import annotations

import pytest

from broker.routing.addresses.address import Address
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.subscription import (
    ConsumerDetach,
    Subscription,
    SubscriptionExpiry,
    SubscriptionSpec,
    SubscriptionTraits,
    row_of,
)
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, begin_subscription

PRIVATE = SubscriptionTraits()
SHARED = SubscriptionTraits(is_shared=True)
DURABLE = SubscriptionTraits(is_durable=True)

KINDS = [
    pytest.param(PRIVATE, id="private"),
    pytest.param(SHARED, id="shared"),
    pytest.param(DURABLE, id="durable"),
]

CLOSED = Ending.LINK_CLOSED
DETACHED = Ending.LINK_DETACHED
ENDED = Ending.SESSION_ENDED
GONE = Ending.CONNECTION_CLOSED
LOST = Ending.CONNECTION_LOST

TABLE = [
    # policy, the endings that end the subscription, and those that do not
    ("link-detach", [CLOSED, DETACHED, ENDED, GONE, LOST], []),
    ("session-end", [CLOSED, ENDED, GONE, LOST], [DETACHED]),
    ("connection-close", [CLOSED, GONE, LOST], [DETACHED, ENDED]),
    ("never", [CLOSED], [DETACHED, ENDED, GONE, LOST]),
]
ROWS = [
    pytest.param(policy, ending, is_end, id=f"{policy}, {ending.value}")
    for policy, ends, stays in TABLE
    for is_end, endings in ((True, ends), (False, stays))
    for ending in endings
]


class World:
    """One subscription, and the link of its only consumer, in session 3 of connection 7."""

    def __init__(self, facts: SubscriptionTraits, policy: str, timeout_s: int = 0) -> None:
        self.routing = Routing()
        self.subscriptions = self.routing.router.subscriptions
        self.subscription: Subscription = begin_subscription(
            self.routing.router,
            row_of(facts, link_name="n", container_id="client"),
            SubscriptionSpec(Address("t")),
            SubscriptionExpiry(expiry_policy=policy, timeout_s=timeout_s),
            self.routing.batch,
        )
        self.consumer = self.join()

    def join(self) -> RecordingConsumer:
        consumer = RecordingConsumer()
        self.subscriptions.join(self.subscription, consumer)
        return consumer

    def leave(self, consumer: RecordingConsumer, ending: Ending) -> None:
        """End the consumer's link, and with it the session or connection that `ending` names."""
        how = ConsumerDetach(ending, connection=7, session=3, key=("client", "n"))
        self.subscriptions.leave(self.subscription, consumer, self.routing.batch, how=how)
        if ending in (GONE, LOST):
            self.routing.router.connection_ended(7, ending, self.routing.batch)

    def assert_is_over(self, *, expected: bool = True) -> None:
        routing = self.routing
        assert self.subscription.is_over is expected
        assert (routing.topic().subscriptions == []) is expected
        if expected:
            assert not self.subscriptions.named
            assert not self.subscriptions.of
            assert self.subscriptions.kept.count() == 0
            assert routing.router.expiries.waiting() == 0


@pytest.mark.requirement("SUB-25", "SUB-30", "SUB-33")
@pytest.mark.parametrize("facts", KINDS)
@pytest.mark.parametrize(("policy", "ending", "is_end"), ROWS)
def test_what_ends_a_subscription(
    facts: SubscriptionTraits, policy: str, ending: Ending, is_end: bool
) -> None:
    world = World(facts, policy)
    world.leave(world.consumer, ending)
    world.assert_is_over(expected=is_end)


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize("facts", KINDS)
@pytest.mark.parametrize(("policy", "ending", "is_end"), ROWS)
def test_the_timeout_counts_from_there(
    facts: SubscriptionTraits, policy: str, ending: Ending, is_end: bool
) -> None:
    world = World(facts, policy, timeout_s=2)
    world.leave(world.consumer, ending)
    if ending is CLOSED:
        world.assert_is_over()
        return
    world.routing.advance(1999)
    world.assert_is_over(expected=False)
    world.routing.advance(1)
    world.assert_is_over(expected=is_end)
    world.routing.advance(100_000)
    world.assert_is_over(expected=is_end)


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize("facts", KINDS)
def test_the_end_of_the_session_may_come_later(facts: SubscriptionTraits) -> None:
    world = World(facts, "session-end", timeout_s=2)
    world.leave(world.consumer, DETACHED)
    world.routing.advance(5000)
    world.assert_is_over(expected=False)
    world.routing.router.expiries.session_ended(7, 4, world.routing.batch)
    world.routing.router.expiries.session_ended(7, 3, world.routing.batch)
    world.routing.advance(1999)
    world.assert_is_over(expected=False)
    world.routing.advance(1)
    world.assert_is_over()


@pytest.mark.requirement("SUB-25", "SUB-36")
@pytest.mark.parametrize("facts", KINDS)
def test_who_comes_back_in_time_stops_the_clock(facts: SubscriptionTraits) -> None:
    world = World(facts, "link-detach", timeout_s=2)
    world.leave(world.consumer, DETACHED)
    world.routing.advance(1999)
    again = world.join()
    world.routing.advance(10_000)
    world.assert_is_over(expected=False)
    world.leave(again, DETACHED)
    world.routing.advance(2000)
    world.assert_is_over()


@pytest.mark.requirement("SUB-25", "SUB-33")
def test_only_the_last_consumer_counts() -> None:
    world = World(SHARED, "link-detach")
    other = world.join()
    world.leave(world.consumer, LOST)
    world.assert_is_over(expected=False)
    world.leave(other, DETACHED)
    world.assert_is_over()


@pytest.mark.requirement("SUB-25", "SUB-31")
def test_one_that_waits_may_be_ended_otherwise() -> None:
    for facts in (PRIVATE, SHARED, DURABLE):
        world = World(facts, "link-detach", timeout_s=2)
        world.leave(world.consumer, DETACHED)
        world.subscriptions.end(world.subscription, world.routing.batch)
        world.assert_is_over()
        world.routing.advance(2000)
