"""Lookups of subscriptions and unsubscribing, by frames."""

import pytest

from broker.amqp.performatives import Attach, Detach, Flow
from broker.amqp.terminus import CONFIGURATION, NEVER
from tests.support.broker import Broker
from tests.support.frames import attach_receiver
from tests.support.subscriptions import leave, looking_up, names, subscribe, unsubscribe

LOCKED = "amqp:resource-locked"
NOT_FOUND = "amqp:not-found"

FINDING = [
    # capabilities and link name of the subscriber, those of the lookup, whether it is found
    pytest.param("durable", "n", "", "n", True, id="SUB-09"),
    pytest.param("durable", "n|2", "", "n|2", True, id="SUB-09, a name with a bar"),
    pytest.param("shared durable", "n|2", "", "n", True, id="SUB-09, a shared one by its name"),
    pytest.param("shared durable", "n|2", "", "n|2", False, id="SUB-09 does not cut"),
    pytest.param("global durable", "n", "global", "n", True, id="SUB-10"),
    pytest.param("shared global durable", "n|global", "global", "n", True, id="SUB-10, shared"),
    pytest.param("shared durable", "n|2", "shared", "n|3", True, id="SUB-11"),
    pytest.param("durable", "n", "shared", "n|global", True, id="SUB-11, an unshared one"),
    pytest.param("durable", "n|2", "shared", "n|2", False, id="SUB-11 cuts"),
    pytest.param(
        "shared global durable", "n|global2", "shared global", "n|global", True, id="SUB-12"
    ),
    pytest.param("durable", "n", "global", "n", False, id="another name space"),
    pytest.param("global durable", "n", "", "n", False, id="the other name space"),
    pytest.param("durable", "n", "", "N", False, id="another name"),
    pytest.param("durable", "n", "", "", False, id="no name"),
]


@pytest.mark.requirement("SUB-09", "SUB-10", "SUB-11", "SUB-12", "SUB-35", "SUB-20")
@pytest.mark.parametrize(("words", "name", "lookup", "sought", "found"), FINDING)
def test_a_lookup_finds(words: str, name: str, lookup: str, sought: str, found: bool) -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, words, name)
    leave(client)
    client.send(looking_up(lookup, sought))
    if not found:
        client.expect_refusal(NOT_FOUND)
        return
    answer = client.expect_last(Attach)
    source = answer.source
    assert source is not None
    assert (source.address, source.durable, source.expiry_policy) == ("t", CONFIGURATION, NEVER)
    assert source.capabilities == ["topic", *(w for w in ("shared", "global") if w in words)]
    assert answer.initial_delivery_count == 0
    assert answer.offered_capabilities == ["SHARED-SUBS", "SHARED-SUB"]


@pytest.mark.requirement("SUB-09", "SUB-34")
@pytest.mark.parametrize("words", ["", "shared", "shared global"])
def test_a_lookup_finds_nothing_volatile_and_makes_nothing(words: str) -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, words, "n|1")
    client.send(looking_up(words, "n", handle=1))
    client.expect_refusal(NOT_FOUND)
    assert broker.router.queues == {}
    assert broker.container.link_count() == 1


@pytest.mark.requirement("SUB-34", "SUB-40")
def test_a_lookup_takes_no_messages() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable")
    leave(client)
    broker.fill("t", 3, kind="topic")
    client.attach(looking_up())
    client.flow(handle=0, credit=9, delivery_count=0)
    client.expect_nothing()
    client.flow(handle=0, credit=9, delivery_count=0, drain=True)
    drained = client.expect_last(Flow)
    assert (drained.link_credit, drained.delivery_count) == (0, 9)
    (queue,) = broker.router.topics["t"].subscriptions
    assert (queue.backlogs.waiting, queue.consumers.attached) == (3, [])
    assert leave(client) is None
    assert names(broker) == ["n"], "a detach that does not close changes nothing"
    subscribe(client, "durable", credit=9)
    client.expect_deliveries(b"0", b"1", b"2")


@pytest.mark.requirement("SUB-34", "SUB-31")
@pytest.mark.parametrize(
    ("words", "lookup"), [("durable", ""), ("shared global durable", "shared global")]
)
def test_unsubscribing_ends_a_subscription(words: str, lookup: str) -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, words)
    leave(client)
    assert unsubscribe(broker.session(), lookup) is None
    assert names(broker) == []
    assert unsubscribe(client, lookup) == NOT_FOUND
    assert broker.router.topics["t"].subscriptions == []


@pytest.mark.requirement("SUB-31", "SUB-40")
def test_a_subscription_in_use_is_found_but_not_ended() -> None:
    """Repeated attempts end nothing; Broker-J forgets it after the first."""
    broker = Broker()
    holder = broker.session("one")
    subscribe(holder, "shared global durable", "n|global2", credit=1)
    broker.fill("t", 2, kind="topic")
    holder.expect_deliveries(b"0")
    other = broker.session("other")
    for _ in range(3):
        assert unsubscribe(other, "shared global", "n|global") == LOCKED
    holder.expect_nothing()
    holder.flow(handle=0, credit=1, delivery_count=1)
    holder.expect_deliveries(b"1")
    holder.hang_up()
    assert names(broker) == ["n"]
    assert unsubscribe(other, "shared global", "n|global") is None
    assert names(broker) == []


@pytest.mark.requirement("SUB-40", "SUB-37")
def test_a_lookup_does_not_steal() -> None:
    broker = Broker()
    holder = broker.session()
    subscribe(holder, "durable", credit=1)
    other = broker.session()
    assert unsubscribe(other) == LOCKED
    holder.expect_nothing()
    broker.fill("t", 1, kind="topic")
    holder.expect_deliveries(b"0")
    assert names(broker) == ["n"]
    leave(holder)
    other.attach(looking_up(handle=1))
    assert unsubscribe(holder) == LOCKED, "the other lookup has the name"


@pytest.mark.requirement("SUB-40")
def test_a_consumer_may_take_the_name_from_a_lookup() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable")
    leave(client)
    client.attach(looking_up())
    other = broker.session()
    subscribe(other, "durable", credit=1)
    client.expect_detach("amqp:link:stolen")
    broker.fill("t", 1, kind="topic")
    other.expect_deliveries(b"0")


@pytest.mark.requirement("SUB-40")
def test_a_queues_link_does_not_take_the_name_from_a_lookup() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable")
    leave(client)
    client.attach(looking_up())
    other = broker.session()
    other.send(attach_receiver("q", name="n"))
    other.expect_refusal(LOCKED)


def test_what_ended_since_the_lookup_is_ended() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable")
    leave(client)
    client.attach(looking_up())
    other = broker.session()
    assert unsubscribe(other, "shared", "n|other") is None
    assert leave(client, closed=True) is None
    assert names(broker) == []


def test_a_lost_connection_ends_no_subscription_that_it_looked_up() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable")
    leave(client)
    client.attach(looking_up())
    client.hang_up()
    assert names(broker) == ["n"]
    assert broker.container.link_count() == 0


async def test_the_store_forgets_what_was_unsubscribed() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable")
    leave(client)
    (stored,) = await broker.store.subscriptions()
    assert (stored.name, stored.container_id, stored.address) == ("n", "client", "t")
    client.send(looking_up(), Detach(handle=0, closed=True))
    client.expect(Attach)
    client.expect_last(Detach)
    assert await broker.store.subscriptions() == []
    assert names(broker) == []
