"""Volatile subscribers that were lost: which of them are waited for, how many, and how long."""

from __future__ import annotations

import pytest

from broker.routing.kept import KeptSubscriptions, has_grace
from broker.routing.lifetime import Ending
from broker.routing.subscription import Facts, Interest, Subscription, Terms, row_of
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing

VOLATILE = Facts()
SHARED = Facts(is_shared=True)
DURABLE = Facts(is_durable=True)


def begin(routing: Routing, address: str, facts: Facts = VOLATILE) -> Subscription:
    row = row_of(facts, link_name="name", container_id="client")
    interest = Interest(address)
    return routing.router.subscriptions.begin(row, interest, Terms(), batch=routing.batch)


GRACE = [
    pytest.param("/topic/durable/t", VOLATILE, True, id="of a durable topic"),
    pytest.param("/topic/transient/t", VOLATILE, True, id="of a transient topic"),
    pytest.param("/topic/transient/#", VOLATILE, True, id="of every transient topic"),
    pytest.param("t", VOLATILE, False, id="of a plain topic"),
    pytest.param("#", VOLATILE, False, id="of every plain topic"),
    pytest.param("/topic/durable/t", SHARED, False, id="with others, who go on"),
    pytest.param("/topic/durable/t", DURABLE, False, id="durable, which needs no grace"),
]


@pytest.mark.requirement("DST-11", "DST-12")
@pytest.mark.parametrize(("address", "facts", "expected"), GRACE)
def test_a_lost_subscriber_has_grace(address: str, facts: Facts, expected: bool) -> None:
    subscription = begin(Routing(), address, facts)
    assert has_grace(subscription, Ending.CONNECTION_LOST) is expected


@pytest.mark.requirement("DST-12")
@pytest.mark.parametrize(
    "ending", [each for each in Ending if each is not Ending.CONNECTION_LOST], ids=str
)
def test_no_other_ending_has_grace(ending: Ending) -> None:
    assert not has_grace(begin(Routing(), "/topic/transient/t"), ending)


class Waiting:
    """Subscriptions that wait for their subscribers, at most two of them, for a second."""

    def __init__(self, grace_ms: int = 1000) -> None:
        self.routing = Routing()
        self.kept = KeptSubscriptions(
            self.routing.router.subscriptions,
            self.routing.router.lifetimes,
            grace_ms=grace_ms,
            kept_max=2,
        )

    def lose(self, link_name: str) -> Subscription:
        """A subscriber is lost."""
        subscription = begin(self.routing, "/topic/transient/t")
        consumer = RecordingConsumer()
        subscription.queue.attach_consumer(consumer)
        self.kept.keep(subscription, consumer, self.routing.batch, key=("client", link_name))
        assert list(subscription.queue.consumers) == []
        return subscription

    def take(self, link_name: str, address: str = "/topic/transient/t") -> Subscription | None:
        return self.kept.take(("client", link_name), Interest(address), self.routing.batch)


@pytest.mark.requirement("DST-12")
def test_what_is_kept_may_be_taken_once() -> None:
    waiting = Waiting()
    lost = waiting.lose("a")
    assert waiting.take("b") is None
    assert waiting.take("a") is lost
    assert waiting.take("a") is None
    waiting.routing.advance(5000)
    assert not lost.is_over


@pytest.mark.requirement("DST-12")
def test_each_waits_for_its_own_grace() -> None:
    waiting = Waiting()
    first = waiting.lose("a")
    waiting.routing.advance(600)
    second = waiting.lose("b")
    waiting.routing.advance(400)
    assert (first.is_over, second.is_over) == (True, False)
    waiting.routing.advance(600)
    assert second.is_over
    assert waiting.kept.count() == 0


@pytest.mark.requirement("DST-12")
def test_no_more_are_kept_than_there_is_room_for() -> None:
    waiting = Waiting()
    kept = [waiting.lose("a"), waiting.lose("b")]
    assert waiting.lose("c").is_over
    again = waiting.lose("b")
    assert [each.is_over for each in (*kept, again)] == [False, True, False]
    assert waiting.kept.count() == 2


@pytest.mark.requirement("DST-12")
def test_without_a_grace_the_loss_is_the_end() -> None:
    assert Waiting(grace_ms=0).lose("a").is_over


@pytest.mark.requirement("DST-12")
def test_another_topic_is_no_return() -> None:
    waiting = Waiting()
    lost = waiting.lose("a")
    assert waiting.take("a", "/topic/transient/other") is None
    assert lost.is_over
