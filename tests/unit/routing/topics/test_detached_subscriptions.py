"""Unnamed subscriptions whose subscribers may return: which are kept, how many, how long."""

from __future__ import annotations

import pytest

from broker.amqp.terminus import LINK_DETACH, NEVER, SESSION_END
from broker.routing.addresses.address import Address
from broker.routing.addresses.identity import SubscriptionIdentity
from broker.routing.topics.detached_subscriptions import KeptSubscriptions, has_grace
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.subscription import (
    AttachRule,
    ConsumerDetach,
    Subscription,
    SubscriptionExpiry,
    SubscriptionKind,
    SubscriptionSpec,
)
from broker.routing.topics.subscriptions import Subscriptions
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing

SHARED: SubscriptionIdentity = ("client", "name", False)
DURABLE: SubscriptionIdentity = ("client", "name", True)

GRACE = [
    pytest.param("/topic/durable/t", True, id="of a durable topic"),
    pytest.param("/topic/transient/t", True, id="of a transient topic"),
    pytest.param("/topic/transient/#", True, id="of every transient topic"),
    pytest.param("t", False, id="of a plain topic"),
    pytest.param("#", False, id="of every plain topic"),
]


@pytest.mark.requirement("DST-11", "DST-12")
@pytest.mark.parametrize(("address", "expected"), GRACE)
def test_a_lost_subscriber_has_grace(address: str, expected: bool) -> None:
    assert has_grace(Address(address)) is expected


NAMED = {
    "shared with others, who go on": AttachRule(5, SubscriptionKind.SHARED, SHARED),
    "durable anyway": AttachRule(2, SubscriptionKind.SOLE, DURABLE),
    "private": AttachRule(1, SubscriptionKind.PRIVATE, None),
}


@pytest.mark.requirement("DST-11", "DST-12")
@pytest.mark.parametrize("row", NAMED.values(), ids=NAMED)
def test_only_a_private_subscription_has_grace(row: AttachRule) -> None:
    routing = Routing()
    topic = routing.topic("/topic/durable/t")
    subscription = Subscriptions(routing.router, grace_ms=1000).begin(
        row,
        SubscriptionSpec(Address(topic.address), None),
        SubscriptionExpiry(),
        topic=topic,
        batch=routing.batch,
    )
    assert subscription.expiry.terms.grace_ms == (1000 if row.identity is None else 0)


class Waiting:
    """At most two subscriptions that wait for their subscribers."""

    def __init__(self, grace_ms: int = 1000) -> None:
        self.routing = Routing()
        self.subscriptions = Subscriptions(
            self.routing.router, grace_ms=grace_ms, kept=KeptSubscriptions(2)
        )
        self.kept = self.subscriptions.kept

    def leave(
        self,
        link_name: str,
        ending: Ending = Ending.CONNECTION_LOST,
        policy: str = LINK_DETACH,
    ) -> Subscription:
        """Let a subscriber join and leave; its session goes on if `ending` allows that."""
        wanted = SubscriptionSpec(Address("/topic/transient/t"))
        subscription = self.subscriptions.begin(
            AttachRule(1, SubscriptionKind.PRIVATE, None),
            wanted,
            SubscriptionExpiry(expiry_policy=policy),
            topic=self.routing.router.topic_of(wanted.address, self.routing.batch),
            batch=self.routing.batch,
        )
        consumer = RecordingConsumer()
        self.subscriptions.join(subscription, consumer)
        how = ConsumerDetach(ending, connection=1, session=0, key=("client", link_name))
        self.subscriptions.leave(subscription, consumer, self.routing.batch, how=how)
        assert list(subscription.queue.consumers.attached) == []
        return subscription

    def find(self, link_name: str) -> Subscription | None:
        return self.kept.find(("client", link_name))


@pytest.mark.requirement("DST-12")
def test_what_is_kept_is_there_until_somebody_joins() -> None:
    waiting = Waiting()
    lost = waiting.leave("a")
    assert waiting.find("b") is None
    assert waiting.find("a") is lost
    waiting.subscriptions.join(lost, RecordingConsumer())
    assert waiting.find("a") is None
    waiting.routing.advance(5000)
    assert not lost.is_over


@pytest.mark.requirement("DST-12")
def test_each_waits_for_its_own_grace() -> None:
    waiting = Waiting()
    first = waiting.leave("a")
    waiting.routing.advance(600)
    second = waiting.leave("b")
    waiting.routing.advance(400)
    assert (first.is_over, second.is_over) == (True, False)
    waiting.routing.advance(600)
    assert second.is_over
    assert waiting.kept.count() == 0


@pytest.mark.requirement("DST-12", "SUB-25")
@pytest.mark.parametrize(
    ("ending", "policy"),
    [
        pytest.param(Ending.CONNECTION_LOST, LINK_DETACH, id="after a loss"),
        pytest.param(Ending.LINK_DETACHED, SESSION_END, id="while its session lives"),
        pytest.param(Ending.CONNECTION_LOST, NEVER, id="for good"),
    ],
)
def test_no_more_are_kept_than_there_is_room_for(ending: Ending, policy: str) -> None:
    waiting = Waiting()
    kept = [waiting.leave("a", ending, policy), waiting.leave("b", ending, policy)]
    assert waiting.leave("c", ending, policy).is_over
    again = waiting.leave("b", ending, policy)
    assert [each.is_over for each in (*kept, again)] == [False, True, False]
    assert waiting.kept.count() == 2


@pytest.mark.requirement("DST-12")
def test_without_a_grace_the_loss_is_the_end() -> None:
    waiting = Waiting(grace_ms=0)
    assert waiting.leave("a").is_over
    assert waiting.kept.count() == 0


@pytest.mark.requirement("DST-12")
@pytest.mark.parametrize(
    "ending", [each for each in Ending if each is not Ending.CONNECTION_LOST], ids=str
)
def test_no_other_ending_has_grace(ending: Ending) -> None:
    waiting = Waiting()
    assert waiting.leave("a", ending).is_over
    assert waiting.kept.count() == 0


@pytest.mark.requirement("DST-12")
def test_what_is_given_up_is_over() -> None:
    waiting = Waiting()
    lost = waiting.leave("a")
    for _ in range(2):
        waiting.subscriptions.give_up(("client", "a"), waiting.routing.batch)
        assert (lost.is_over, waiting.kept.count()) == (True, 0)
    assert waiting.routing.router.expiries.waiting() == 0
