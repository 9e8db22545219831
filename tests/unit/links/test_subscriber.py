"""Subscribers, by frames: the answers to them, who may join, and where their messages go."""

import pytest

from broker.amqp.errors import STOLEN
from broker.amqp.outcomes import RELEASED
from broker.amqp.performatives import Detach, End, Open
from broker.amqp.terminus import CONFIGURATION, COPY, LINK_DETACH, MOVE, NEVER, NOT_DURABLE, Source
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Disposition,
    Header,
    Transfer,
    attach_receiver,
    message,
    opening,
)
from tests.support.notices import notice_texts
from tests.support.routing import new_message
from tests.support.subscriptions import leave, names, subscribe, subscribing
from tests.support.unsettled_maps import EMPTY

LOCKED = "amqp:resource-locked"
DYNAMIC_TOPIC = Source(
    dynamic=True, expiry_policy=LINK_DETACH, capabilities=["temporary-topic", "shared"]
)
BOTH = ["SHARED-SUBS", "SHARED-SUB"]


def publish(broker: Broker, *bodies: bytes, address: str = "t", durable: bool = False) -> None:
    sender = broker.session("publisher")
    sender.attach_sender(address, kind="topic")
    for number, body in enumerate(bodies):
        payload = message(body, durable=durable)
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
    sender.hang_up()


def refused(client: Client, words: str = "", name: str = "n", **fields: object) -> None:
    """Check that the attach of a subscriber is refused because the subscription is locked."""
    client.send(subscribing(words, name, **fields))  # type: ignore[arg-type]
    client.expect_refusal(LOCKED)
    client.expect_nothing()
    handle = fields.get("handle", 0)
    assert isinstance(handle, int)
    client.send(Detach(handle=handle, closed=True))


@pytest.mark.requirement("RCV-04")
@pytest.mark.parametrize("words", ["", "durable", "shared", "shared durable"])
def test_a_subscriber_that_asks_for_copies_consumes(words: str) -> None:
    """JMS clients attach so to durable subscriptions."""
    broker = Broker()
    subscriber = broker.session()
    answer = subscribe(subscriber, words, distribution_mode=COPY, credit=9)
    assert answer.source is not None
    assert answer.source.distribution_mode == MOVE
    publish(broker, b"a")
    subscriber.expect_deliveries(b"a")


# -- the answer

ROWS = [
    pytest.param("", ["topic"], id="SUB-01"),
    pytest.param("durable", ["topic"], id="SUB-02"),
    pytest.param("global", ["topic"], id="SUB-03"),
    pytest.param("global durable", ["topic", "global"], id="SUB-04"),
    pytest.param("shared", ["topic", "shared"], id="SUB-05"),
    pytest.param("shared durable", ["topic", "shared"], id="SUB-06"),
    pytest.param("shared global", ["topic", "shared", "global"], id="SUB-07"),
    pytest.param("shared global durable", ["topic", "shared", "global"], id="SUB-08"),
]


@pytest.mark.requirement(*(f"SUB-{number:02}" for number in range(1, 9)), "SUB-20")
@pytest.mark.parametrize(("words", "capabilities"), ROWS)
def test_the_answer_has_the_real_source(words: str, capabilities: list[str]) -> None:
    broker = Broker()
    client = broker.session()
    answer = subscribe(client, words, "n|2", credit=9)
    assert answer.offered_capabilities == BOTH
    source = answer.source
    assert source is not None
    assert (source.address, source.distribution_mode) == ("t", MOVE)
    durable = "durable" in words
    assert source.durable == (CONFIGURATION if durable else NOT_DURABLE)
    assert source.expiry_policy == (NEVER if durable else LINK_DETACH)
    assert source.capabilities == capabilities
    publish(broker, b"a", b"b")
    client.expect_deliveries(b"a", b"b")


@pytest.mark.requirement("SUB-20")
def test_a_queue_offers_no_sharing() -> None:
    answer = Broker().session().attach(attach_receiver("q"))
    assert answer.offered_capabilities == []


@pytest.mark.requirement("CON-07", "SUB-20")
def test_the_open_offers_sharing() -> None:
    client = Broker().dial()
    client.send_bytes(opening())
    client.expect(Header)
    assert set(BOTH) < set(client.expect(Open).offered_capabilities)


def test_a_topic_that_may_not_be_made_is_refused_and_steals_nothing() -> None:
    broker = Broker(patterns=[("closed", AddressPolicy(auto_create=False))])
    client = broker.session()
    subscribe(client, "durable")
    other = broker.session()
    leave(client)
    subscribe(client, "durable", "m")
    other.send(subscribing("durable", "n", address="closed"))
    other.expect_refusal("amqp:not-found")
    client.expect_nothing()
    assert names(broker) == ["m", "n"]


# -- detach


@pytest.mark.requirement("SUB-30", "SUB-38", "SUB-36")
@pytest.mark.parametrize("words", ["durable", "global durable", "shared durable"])
@pytest.mark.parametrize("how", ["detach", "end", "loss"])
def test_a_durable_subscription_goes_on_collecting(words: str, how: str) -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, words, credit=1)
    publish(broker, b"a", b"b")
    client.expect_deliveries(b"a")
    if how == "detach":
        assert leave(client) is None
    elif how == "end":
        client.send(End())
    else:
        client.hang_up()
    publish(broker, b"c")
    back = broker.session()
    subscribe(back, words, credit=9)
    back.expect_deliveries(b"a", b"b", b"c")
    assert names(broker) == ["n"]


@pytest.mark.requirement("SUB-31")
@pytest.mark.parametrize("words", ["durable", "global durable", "shared durable"])
def test_a_closing_detach_ends_a_durable_subscription(words: str) -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, words)
    publish(broker, b"a")
    assert leave(client, closed=True) is None
    assert names(broker) == []
    assert broker.router.topics["t"].subscriptions == []
    subscribe(client, words, credit=9)
    publish(broker, b"b")
    client.expect_deliveries(b"b")


@pytest.mark.requirement("SUB-31")
def test_a_closing_detach_says_that_others_consume_and_loses_nothing() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "shared durable", credit=1)
    publish(broker, b"a", b"b")
    client.expect_deliveries(b"a")
    subscribe(client, "shared durable", "n|2", handle=1)
    assert leave(client, closed=True) == LOCKED
    client.flow(handle=1, credit=9, delivery_count=0)
    client.expect_deliveries(b"a", b"b")
    assert names(broker) == ["n"]
    assert leave(client, 1, closed=True) is None
    assert names(broker) == []


@pytest.mark.requirement("SUB-33")
@pytest.mark.parametrize("closed", [False, True])
def test_a_volatile_shared_subscription_ends_with_its_last_consumer(closed: bool) -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "shared", "n|volatile1")
    subscribe(client, "shared", "n|volatile2", handle=1)
    publish(broker, b"a")
    assert leave(client, closed=closed) is None
    assert names(broker) == ["n"]
    client.flow(handle=1, credit=9, delivery_count=0)
    client.expect_deliveries(b"a")
    assert leave(client, 1, closed=closed) is None
    assert names(broker) == []
    assert broker.router.topics["t"].subscriptions == []


# -- sharing


@pytest.mark.requirement("SUB-05", "SUB-06", "SUB-07", "SUB-08", "SUB-35")
@pytest.mark.parametrize("words", ["shared", "shared durable"])
@pytest.mark.parametrize("scope", ["", " global"])
def test_sharing_consumers_compete(words: str, scope: str) -> None:
    broker = Broker()
    one = broker.session("one")
    other = broker.session("other" if scope else "one")
    subscribe(one, words + scope, "n|global", credit=9)
    subscribe(other, words + scope, "n|global2", credit=9)
    publish(broker, b"a", b"b", b"c")
    one.expect_deliveries(b"a", b"c")
    other.expect_deliveries(b"b")
    one.send(Disposition(first=0, state=RELEASED))
    assert len(broker.router.subscriptions.named) == 1
    one.hang_up()
    assert len([each for each in other.bodies() if isinstance(each, Transfer)]) == 2


@pytest.mark.requirement("SUB-05", "SUB-06", "SUB-24")
def test_containers_do_not_share_what_is_not_global() -> None:
    broker = Broker()
    one, other = broker.session("one"), broker.session("other")
    subscribe(one, "shared", credit=9)
    subscribe(other, "shared", credit=9)
    publish(broker, b"a")
    one.expect_deliveries(b"a")
    other.expect_deliveries(b"a")


@pytest.mark.requirement("SUB-24")
def test_durable_and_volatile_global_and_own_coexist() -> None:
    broker = Broker()
    client = broker.session()
    kinds = ("shared", "shared durable", "shared global", "shared global durable")
    for handle, words in enumerate(kinds):
        subscribe(client, words, f"n|{handle}", handle=handle)
    publish(broker, b"a")
    queues = broker.router.topics["t"].subscriptions
    assert [queue.backlogs.waiting for queue in queues] == [1, 1, 1, 1]


@pytest.mark.requirement("SUB-39")
def test_two_clients_that_begin_one_subscription_at_once_get_one() -> None:
    broker = Broker()
    clients = [broker.session(str(number)) for number in range(2)]
    for client in clients:
        client.send(subscribing("shared global durable", "n|global"))
    publish(broker, b"a")
    assert names(broker) == ["n"]
    (queue,) = broker.router.topics["t"].subscriptions
    assert (len(queue.consumers.attached), queue.backlogs.waiting) == (2, 1)


# -- conflicts


@pytest.mark.requirement("SUB-02", "SUB-04", "SUB-40")
def test_an_unshared_subscription_has_one_consumer() -> None:
    broker = Broker()
    holder = broker.session("one")
    subscribe(holder, "global durable", credit=9)
    refused(broker.session("other"), "global durable")
    publish(broker, b"a")
    holder.expect_deliveries(b"a")
    assert broker.stats.links_stolen == 0


@pytest.mark.requirement("SUB-22")
@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize(
    ("first", "second"), [("durable", "shared durable"), ("shared durable", "durable")]
)
def test_a_name_is_shared_or_not(first: str, second: str, active: bool) -> None:
    broker = Broker()
    holder = broker.session()
    subscribe(holder, first)
    publish(broker, b"a")
    if not active:
        leave(holder)
    refused(broker.session(), second)
    holder.expect_nothing()
    assert broker.router.topics["t"].subscriptions[0].backlogs.waiting == 1


@pytest.mark.requirement("SUB-26", "SUB-40")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("shared durable", "shared global durable", id="own, then global"),
        pytest.param("shared global durable", "shared durable", id="global, then own"),
        pytest.param("shared", "shared durable", id="volatile, then durable"),
        pytest.param("durable", "", id="durable, then private"),
        pytest.param("shared", "", id="shared, then private"),
    ],
)
def test_a_live_link_is_not_stolen_for_another_subscription(first: str, second: str) -> None:
    broker = Broker()
    holder = broker.session()
    subscribe(holder, first, credit=1)
    newcomer = broker.session()
    refused(newcomer, second)
    publish(broker, b"a")
    holder.expect_deliveries(b"a")
    assert leave(holder) is None
    subscribe(newcomer, second)


@pytest.mark.requirement("SUB-26", "SUB-40")
def test_a_queues_link_does_not_steal_a_subscribers() -> None:
    broker = Broker()
    holder = broker.session()
    subscribe(holder, "durable")
    newcomer = broker.session()
    newcomer.send(attach_receiver("q", name="n"))
    newcomer.expect_refusal(LOCKED)
    holder.expect_nothing()
    assert broker.router.queues == {}


@pytest.mark.requirement("SUB-21")
@pytest.mark.parametrize("words", ["durable", "shared durable"])
def test_another_topic_drops_the_backlog_of_a_subscription_without_consumers(words: str) -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, words)
    publish(broker, b"a", b"b")
    leave(client)
    answer = subscribe(client, words, address="other", credit=9)
    assert answer.source is not None
    assert answer.source.address == "other"
    publish(broker, b"c")
    client.expect_nothing()
    publish(broker, b"d", address="other")
    client.expect_deliveries(b"d")
    assert broker.stats.backlog_dropped == 2
    (notice,) = [event for event in broker.watcher.events if event.startswith("noticed")]
    assert "2 messages dropped" in notice
    assert notice_texts(broker.router.notices) == []


@pytest.mark.requirement("SUB-21")
def test_deliveries_that_wait_for_their_link_are_dropped_and_counted_with_the_backlog() -> None:
    broker = Broker()
    client = broker.session()
    durable = Source(address="t", capabilities=["topic"], durable=2, expiry_policy=NEVER)
    client.attach_receiver(source=durable, name="n", unsettled=EMPTY, credit=3)
    publish(broker, b"a", b"b", b"c", b"d", b"e")
    client.expect_deliveries(b"a", b"b", b"c")
    leave(client)
    assert broker.router.termini.count() == 1
    subscribe(client, "durable", address="other")
    assert broker.stats.backlog_dropped == 5


@pytest.mark.requirement("SUB-21", "SUB-40")
@pytest.mark.parametrize(
    ("words", "name"),
    [
        pytest.param("shared durable", "n|2", id="a share"),
        pytest.param("shared durable", "n", id="the same share again"),
        pytest.param("durable", "n", id="the same link again"),
    ],
)
def test_another_topic_is_refused_while_there_are_consumers(words: str, name: str) -> None:
    broker = Broker()
    holder = broker.session()
    subscribe(holder, words, credit=9)
    refused(broker.session(), words, name, address="other")
    publish(broker, b"a")
    holder.expect_deliveries(b"a")
    assert "other" not in broker.router.topics, "a refused attach makes nothing"


@pytest.mark.requirement("SUB-23")
def test_the_life_of_a_subscription_is_what_the_first_said() -> None:
    broker = Broker()
    client = broker.session()
    first = client.attach(subscribing("shared durable", durable=1))
    second = client.attach(subscribing("shared durable", "n|2", handle=1, durable=2))
    for answer in (first, second):
        assert answer.source is not None
        assert (answer.source.durable, answer.source.expiry_policy) == (1, NEVER)


# -- stealing

MANY = 10_000


def assert_stolen(client: Client) -> None:
    stolen = client.expect_last(Detach)
    assert stolen.error is not None
    assert (stolen.error.condition, stolen.closed) == (STOLEN, True)


@pytest.mark.requirement("SUB-37")
@pytest.mark.parametrize("words", [case.values[0] for case in ROWS])
def test_a_steal_never_unsubscribes(words: str) -> None:
    broker = Broker()
    first = broker.session()
    subscribe(first, words, credit=2)
    topic = broker.router.topics["t"]
    (queue,) = topic.subscriptions
    for number in range(MANY):
        topic.put(new_message(message(b"%d" % number)), broker.journal.batch)
    broker.container.run_round()
    first.expect_deliveries(b"0", b"1")
    second = broker.session()
    subscribe(second, words, credit=3)
    assert_stolen(first)
    second.expect_deliveries(b"0", b"1", b"2")
    assert topic.subscriptions == [queue]
    assert queue.backlogs.waiting + queue.state.acquired == MANY
    assert len(queue.consumers.attached) == 1
    first.send(Disposition(first=0, last=1))
    assert queue.backlogs.waiting + queue.state.acquired == MANY


@pytest.mark.requirement("SUB-37")
def test_a_private_subscriber_that_wants_another_topic_begins_there() -> None:
    broker = Broker()
    first = broker.session()
    subscribe(first)
    publish(broker, b"a")
    second = broker.session()
    subscribe(second, address="other", credit=9)
    assert_stolen(first)
    publish(broker, b"b", address="other")
    second.expect_deliveries(b"b")
    assert broker.router.topics["t"].subscriptions == []


@pytest.mark.requirement("SUB-37", "TMP-03")
def test_a_subscriber_of_the_topic_that_the_stolen_link_had_made_is_refused() -> None:
    broker = Broker()
    client = broker.session()
    made = client.attach(attach_receiver(name="n", source=DYNAMIC_TOPIC))
    assert made.source is not None
    client.send(subscribing(name="n", address=made.source.address or "", handle=1))
    assert client.expect(Detach).handle == 0
    client.expect_refusal("amqp:not-found")
    assert broker.router.topics == {}
    assert broker.container.link_count() == 0


# -- temporary topics


@pytest.mark.requirement("TMP-02", "TMP-03")
def test_a_temporary_topic_ends_its_subscriptions() -> None:
    broker = Broker()
    client = broker.session()
    made = client.attach(attach_receiver(name="made", source=DYNAMIC_TOPIC))
    assert made.source is not None
    assert made.source.capabilities == ["temporary-topic"]
    address = made.source.address or ""
    subscribe(client, "shared", address=address, handle=1, credit=1)
    publish(broker, b"a", address=address)
    client.expect_deliveries(b"a")
    client.send(subscribing("durable", "d", address=address, handle=2))
    client.expect_refusal("amqp:invalid-field")
    client.send(Detach(handle=0, closed=True))
    client.expect_detach("amqp:resource-deleted", handle=1)
    assert client.expect_last(Detach).handle == 0
    assert names(broker) == []
    assert broker.router.topics == {}
