"""Subscribers with routing keys and patterns, from their attach to the deliveries."""

import pytest

from broker.amqp.errors import INVALID_FIELD, NOT_FOUND
from broker.amqp.performatives import Detach
from broker.amqp.terminus import NEVER, Source
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import attach_receiver


def refused(client: Client, address: str, kind: str = "topic") -> str:
    """Return the condition with which a subscriber's link is refused."""
    assert client.attach(attach_receiver(address, kind=kind)).source is None
    detach = client.expect_last(Detach)
    assert detach.error is not None
    return detach.error.condition


@pytest.mark.requirement("DST-05")
def test_a_key_takes_its_messages_and_is_told_again() -> None:
    broker = Broker()
    client = broker.session("one")
    answer = client.attach_receiver("t/a.*", kind="topic", credit=9)
    assert answer.source is not None
    assert answer.source.address == "t/a.*"
    for address in ("t/a.b", "t", "t/b"):
        broker.fill(address, 1, kind="topic")
    client.expect_deliveries(b"0")
    assert list(broker.router.topics) == ["t"]


@pytest.mark.requirement("DST-06")
def test_a_pattern_meets_topics_that_come_later_and_ends_with_its_link() -> None:
    broker = Broker()
    client = broker.session("one")
    answer = client.attach_receiver("news.*", kind="topic", credit=9)
    assert answer.source is not None
    assert answer.source.address == "news.*"
    assert not broker.router.topics
    for address in ("news.eu", "olds.eu", "news.us"):
        broker.fill(address, 1, kind="topic")
    client.expect_deliveries(b"0", b"0")
    client.send(Detach(handle=0, closed=True))
    client.expect_last(Detach)
    assert (broker.router.bindings, broker.router.wildcards.count()) == (0, 0)
    assert broker.watcher.errors == []


@pytest.mark.requirement("DST-05")
@pytest.mark.parametrize("address", ["closed.t", "closed.t/k", "closed.t/#"])
def test_a_topic_that_may_not_be_made_is_not_found(address: str) -> None:
    broker = Broker(patterns=[("closed.*", AddressPolicy(auto_create=False))])
    assert refused(broker.session(), address) == NOT_FOUND


@pytest.mark.requirement("DST-06")
@pytest.mark.parametrize("address", ["#.a.#.b.#", "t/#.a.#.b.#", "." * 32, "/k"])
def test_what_is_no_pattern_is_refused(address: str) -> None:
    broker = Broker()
    assert refused(broker.session(), address) == INVALID_FIELD
    assert (broker.router.bindings, len(broker.router.topics)) == (0, 0)


@pytest.mark.requirement("DST-05", "DST-06")
def test_a_queue_may_have_any_name() -> None:
    broker = Broker()
    client = broker.session("one")
    for handle, address in enumerate(("a.*", "#", "t/k")):
        client.attach_receiver(address, kind="queue", name=address, handle=handle)
    assert list(broker.router.queues) == ["a.*", "#", "t/k"]


@pytest.mark.requirement("DST-05")
def test_without_a_capability_an_existing_topic_has_keys() -> None:
    broker = Broker()
    broker.fill("t", 1, kind="topic")
    client = broker.session("one")
    client.attach_receiver("t/k", kind="", credit=9)
    broker.fill("t/k", 1, kind="topic")
    client.expect_deliveries(b"0")


@pytest.mark.requirement("DST-06", "TMP-04")
def test_a_pattern_does_not_listen_to_temporary_topics_of_others() -> None:
    broker = Broker()
    listener = broker.session("one")
    listener.attach_receiver("#", kind="topic", credit=9)
    topic = broker.router.create_temporary("topic", 99)
    broker.fill(topic.address, 1, kind="topic")
    listener.expect_nothing()


def durable(address: str) -> Source:
    return Source(address=address, durable=2, expiry_policy=NEVER, capabilities=["topic"])


def leave(client: Client) -> None:
    """Detach without closing: a durable subscription continues to collect messages (SUB-30)."""
    client.send(Detach(handle=0))
    client.expect_last(Detach)


@pytest.mark.requirement("DST-06", "SUB-02")
def test_a_durable_subscription_to_a_pattern_collects_from_topics_that_come_and_go() -> None:
    broker = Broker()
    client = broker.session("one")
    client.attach_receiver(source=durable("news.*"))
    leave(client)
    broker.fill("news.eu", 1, kind="topic")
    broker.router.delete(broker.router.topics["news.eu"], broker.journal.batch)
    broker.fill("news.us", 1, kind="topic")
    client.attach_receiver(source=durable("news.*"), credit=9)
    client.expect_deliveries(b"0", b"0")


@pytest.mark.requirement("DST-05", "SUB-21")
def test_a_subscription_with_another_key_starts_anew() -> None:
    broker = Broker()
    client = broker.session("one")
    client.attach_receiver(source=durable("t/a"))
    leave(client)
    broker.fill("t/a", 1, kind="topic")
    client.attach_receiver(source=durable("t/b"), credit=9)
    client.expect_nothing()
    broker.fill("t/b", 1, kind="topic")
    client.expect_deliveries(b"0")
    assert broker.router.bindings == 1
    assert len(broker.router.topics["t"].subscriptions) == 1
