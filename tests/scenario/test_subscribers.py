"""Subscribers of a topic: each has a queue of its own, for as long as its link lives."""

import pytest

from broker.amqp.outcomes import RELEASED
from broker.amqp.performatives import Detach
from tests.support.broker import Broker
from tests.support.frames import Disposition


@pytest.mark.requirement("SUB-01")
def test_every_subscriber_of_a_topic_has_its_own_copy() -> None:
    broker = Broker()
    one, two = broker.session("one"), broker.session("two")
    one.attach_receiver("t", kind="topic", credit=9)
    two.attach_receiver("t", kind="topic")
    broker.fill("t", 2, kind="topic")
    one.expect_deliveries(b"0", b"1")
    two.expect_nothing()
    two.flow(handle=0, credit=9, delivery_count=0)
    two.expect_deliveries(b"0", b"1")
    one.send(Disposition(first=0, state=RELEASED))
    one.expect_deliveries(b"0")
    two.expect_nothing()


@pytest.mark.requirement("SUB-01")
def test_a_subscription_ends_with_its_link_and_misses_what_comes_between() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver("t", kind="topic", credit=1)
    broker.fill("t", 2, kind="topic")
    client.expect_deliveries(b"0")
    client.send(Detach(handle=0, closed=True))
    client.expect_last(Detach)
    assert broker.router.topics["t"].subscriptions == []
    broker.fill("t", 1, kind="topic")
    client.attach_receiver("t", kind="topic", credit=9)
    client.expect_nothing()
    assert broker.stats.dead_lettered == 0
