"""Limits of users: each is reached, tells what it is, and is free again however things end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Open
from broker.amqp.terminus import Coordinator, Source, Target
from broker.amqp.types import UInt
from broker.restore import restore
from broker.routing.topics.subscriptions import as_stored_subscription
from broker.security.access import AccessRules
from broker.security.identity import ADMIN
from broker.security.limits import limit_of
from tests.support.access import ADA, RuledUsers, dial_as, session_as
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Header,
    Transfer,
    attach_receiver,
    attach_sender,
    message,
    opening,
)
from tests.support.subscriptions import leave, subscribe, subscribing, unsubscribe

pytestmark = [pytest.mark.requirement("SEC-05"), pytest.mark.attack("R1", "R2")]

BOB = "bob"
USERS = {ADA: [ADMIN], BOB: [ADMIN], "": [ADMIN]}


def limited(**amounts: int) -> Broker:
    """Return a broker in which every user has these limits, and every right."""
    return Broker(authenticator=RuledUsers(USERS), access=rules(**amounts))


def rules(**amounts: int) -> AccessRules:
    who = ["authenticated", "anonymous"]
    return AccessRules(limits=[limit_of({"who": who, **amounts}, 1)] if amounts else [])


def told(ending: Detach | End | Close) -> str:
    """Return the text of a refusal by a limit."""
    assert ending.error is not None
    assert ending.error.condition == RESOURCE_LIMIT_EXCEEDED, ending.error.description
    assert ending.error.description is not None
    return ending.error.description


def refused(client: Client, attach: Attach) -> str:
    """Attach a link that is refused by a limit; return the text of the refusal."""
    client.send(attach)
    answer = client.expect(Attach)
    assert (answer.target if answer.role else answer.source) is None
    text = told(client.expect_last(Detach))
    client.send(Detach(handle=attach.handle, closed=True))
    return text


def reports(broker: Broker) -> list[str]:
    """Return the refusals by limits that the operator was told."""
    return [event for event in broker.watcher.events if event.startswith("limited ")]


# -- connections


def refused_open(broker: Broker, user: str, container_id: str) -> str:
    client = dial_as(broker, user)
    client.send_bytes(opening(container_id))
    client.expect(Header)
    assert client.expect(Open).properties["amqp:connection-establishment-failed"] is True
    return told(client.expect_last(Close))


@pytest.mark.parametrize("user", [ADA, ""], ids=["a user", "clients without a login"])
def test_a_user_has_only_so_many_connections(user: str) -> None:
    broker = limited(connections=2)
    first, second = (session_as(broker, user, name) for name in ("a", "b"))
    name = user or "anonymous"
    text = f"user {name} has 2 connections, and a limit allows 2"
    assert refused_open(broker, user, "c") == text
    assert broker.stats.user_limits_reached == 1
    assert reports(broker) == [f"limited c: {text}"]
    session_as(broker, BOB, "d")
    first.hang_up()
    session_as(broker, user, "c")
    second.send(Close())
    session_as(broker, user, "e")
    assert refused_open(broker, user, "f") == text


def test_a_connection_that_replaces_another_is_within_the_limit() -> None:
    broker = limited(connections=1)
    session_as(broker, ADA, "a")
    close_existing = {
        "desired_capabilities": ["sole-connection-for-container"],
        "properties": {"sole-connection-enforcement-policy": UInt(1)},
    }
    session_as(broker, ADA, "a", **close_existing)
    assert refused_open(broker, ADA, "b").startswith("user ada has 1 connections")


def test_a_connection_that_the_broker_closes_counts_no_more() -> None:
    broker = limited(connections=1)
    first = session_as(broker, ADA, "a")
    first.send(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))  # channel in use
    assert first.expect(Close).error is not None
    session_as(broker, ADA, "b")


# -- sessions


def test_a_user_has_only_so_many_sessions() -> None:
    broker = limited(sessions=2)
    one, other = session_as(broker, ADA, "a"), session_as(broker, ADA, "b")
    one.send(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel=1)
    one.expect(Begin)
    text = "user ada has 2 sessions, and a limit allows 2"
    assert told(one.expect_last(End)) == text
    one.send(End(), channel=1)
    session_as(broker, BOB, "c")
    other.send(End())
    other.expect(End)
    one.begin(channel=1)
    one.expect_nothing()
    assert reports(broker) == [f"limited a: {text}"]


# -- links

LINKS = [
    pytest.param(attach_sender(name="x", handle=5), id="a producer"),
    pytest.param(attach_receiver(name="x", handle=5), id="a consumer"),
    pytest.param(attach_sender(name="x", handle=5, target=Coordinator()), id="a coordinator"),
    pytest.param(subscribing("durable", "x", handle=5), id="a subscriber"),
]


@pytest.mark.parametrize("attach", LINKS)
def test_a_user_has_only_so_many_links(attach: Attach) -> None:
    broker = limited(links=2)
    one, other = session_as(broker, ADA, "a"), session_as(broker, ADA, "b")
    one.attach_sender(name="s")
    other.attach_receiver(name="r")
    text = "user ada has 2 links, and a limit allows 2"
    assert refused(one, attach) == text
    assert list(broker.router.subscriptions.named) == []
    session_as(broker, BOB, "c").attach_sender(name="s")
    other.send(Detach(handle=0, closed=True))
    one.attach(attach)
    one.frames()
    assert refused(one, attach_sender(name="y", handle=6)) == text
    assert broker.stats.user_limits_reached == 2


def test_a_link_that_is_stolen_gives_its_place() -> None:
    broker = limited(links=1)
    first, second = session_as(broker, ADA, "a"), session_as(broker, ADA, "a")
    first.attach_sender(name="s")
    second.attach_sender(name="s")
    assert first.expect(Detach).error is not None
    assert refused(first, attach_sender(name="t", handle=1)).startswith("user ada has 1 links")


# -- durable subscriptions


def test_a_user_owns_only_so_many_durable_subscriptions() -> None:
    broker = limited(subscriptions=1)
    client = session_as(broker, ADA, "a")
    subscribe(client, "durable", "first")
    text = "user ada has 1 subscriptions, and a limit allows 1"
    more = subscribing("durable", "second", handle=1)
    assert refused(client, more) == text
    subscribe(client, "", "private", handle=2)
    subscribe(client, "shared", "volatile", handle=3)
    leave(client)
    assert refused(client, more) == text
    subscribe(client, "durable", "first")
    leave(client)
    assert unsubscribe(client, "", "first") is None
    subscribe(client, "durable", "second")
    assert broker.router.subscriptions.owned(ADA) == 1


def test_a_subscription_that_begins_anew_gives_its_place() -> None:
    broker = limited(subscriptions=1)
    client = session_as(broker, ADA, "a")
    subscribe(client, "durable", "n", address="t")
    leave(client)
    subscribe(client, "durable", "n", address="u")
    assert broker.router.subscriptions.owned(ADA) == 1


def test_stored_subscriptions_count_for_their_owner() -> None:
    before = limited()
    subscribe(session_as(before, ADA, "a"), "durable", "n")
    (there,) = before.router.subscriptions.named.values()
    after = limited(subscriptions=1)
    stored = as_stored_subscription(there)
    kept = after.router.subscriptions.bring_back(
        stored, there.spec, there.terms, batch=after.journal.batch
    )
    assert refused(session_as(after, ADA, "a"), subscribing("durable", "m")).startswith("user ada")
    after.router.subscriptions.end(kept, after.journal.batch)
    subscribe(session_as(after, ADA, "b"), "durable", "m")


def test_a_subscription_without_an_owner_counts_for_the_one_that_takes_it() -> None:
    broker = limited(subscriptions=1)
    subscribe(session_as(broker, "", "a"), "durable", "n")
    assert (broker.router.subscriptions.owned(""), broker.router.subscriptions.owned(ADA)) == (1, 0)
    for client in list(broker.container.peers()):
        client.lost()
    subscribe(session_as(broker, ADA, "a"), "durable", "n")
    assert (broker.router.subscriptions.owned(""), broker.router.subscriptions.owned(ADA)) == (0, 1)


# -- nodes

MORE_NODES = [
    pytest.param(attach_sender("new", name="x", handle=5), id="by a producer"),
    pytest.param(attach_receiver("new", name="x", handle=5), id="by a consumer"),
    pytest.param(subscribing("", "x", address="new", handle=5), id="by a subscriber"),
    pytest.param(
        attach_sender(name="x", handle=5, target=Target(dynamic=True)), id="for a producer"
    ),
    pytest.param(
        attach_receiver(name="x", handle=5, source=Source(dynamic=True)), id="for a consumer"
    ),
    pytest.param(attach_sender("/queue/tmp/new", name="x", handle=5), id="of the class tmp"),
]


@pytest.mark.parametrize("attach", MORE_NODES)
def test_a_user_creates_only_so_many_nodes(attach: Attach) -> None:
    broker = limited(nodes=1)
    client = session_as(broker, ADA, "a")
    client.attach_sender("first")
    text = "user ada has 1 nodes, and a limit allows 1"
    assert refused(client, attach) == text
    assert list(broker.router.queues) == ["first"]
    client.attach_sender("first", name="again", handle=1)
    session_as(broker, BOB, "b").attach_sender("of-bob")
    broker.router.delete(broker.queue("first"), broker.journal.batch)
    assert broker.router.population.created(ADA) == 0
    client.send(attach)
    assert broker.router.population.created(ADA) == 1


def test_stored_nodes_count_for_their_creator() -> None:
    before = limited()
    client = session_as(before, ADA, "a")
    client.attach_sender("first")
    client.attach_sender("/queue/tmp/x", name="x", handle=1)
    session_as(before, BOB, "b").attach_sender("of-bob")
    after = Broker(authenticator=RuledUsers(USERS), access=rules(nodes=1), store=before.store)
    asyncio.run(restore(after.store, after.router, after.journal.batch))
    client = session_as(after, ADA, "a")
    refusal = refused(client, attach_sender("second", name="x", handle=5))
    assert refusal == "user ada has 1 nodes, and a limit allows 1"
    after.router.delete(after.queue("first"), after.journal.batch)
    client.attach_sender("second", name="y", handle=6)
    assert sorted(after.router.queues) == ["of-bob", "second"]


def test_a_message_on_the_relay_creates_no_node_beyond_the_limit() -> None:
    broker = limited(nodes=1)
    client = session_as(broker, ADA, "a")
    client.attach_sender(None)
    for number, to in enumerate(("one", "two")):
        payload = message(b"hello", to=to)
        client.send(Transfer(delivery_id=number, tag=b"%d" % number, payload=payload))
    assert list(broker.router.queues) == ["one"]
    assert broker.stats.user_limits_reached == 1


def test_temporary_nodes_count_until_their_connection_ends() -> None:
    broker = limited(nodes=2)
    client = session_as(broker, ADA, "a")
    client.attach(attach_receiver(name="r", source=Source(dynamic=True)))
    client.attach_sender("/queue/tmp/mine", handle=1)
    assert broker.router.population.created(ADA) == 2
    client.hang_up()
    assert broker.router.population.created(ADA) == 0


# -- reload


def test_a_lower_limit_ends_nothing_and_refuses_what_is_new() -> None:
    broker = limited(links=3)
    client = session_as(broker, ADA, "a")
    for handle in range(3):
        client.attach_sender(name=f"s{handle}", handle=handle)
    broker.container.adopt_access(rules(links=1))
    broker.advance(10)
    client.expect_nothing()
    assert refused(client, attach_sender(name="x", handle=5)).endswith("a limit allows 1")
    broker.container.adopt_access(rules())
    client.attach_sender(name="x", handle=5)


# -- counts


class Walk:
    """Random steps of the clients of one user, with the sessions that must be open after each."""

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.broker = limited()
        self.clients: dict[Client, set[int]] = {}

    def step(self) -> None:
        steps: list[Callable[[Client], None]] = [
            self.begin,
            self.attach,
            self.attach,
            self.attach,
            self.detach,
            self.end,
            self.close,
            self.hang_up,
        ]
        if len(self.clients) < 3:
            name = self.chosen.choice("ab")  # the same name: links are stolen
            self.clients[session_as(self.broker, ADA, name)] = {0}
        client = self.chosen.choice(list(self.clients))
        self.chosen.choice(steps)(client)
        for each in self.clients:
            each.frames()

    def begin(self, client: Client) -> None:
        channel = self.chosen.randrange(4)
        if channel not in self.clients[client]:
            client.frames()
            client.begin(channel=channel)
            self.clients[client].add(channel)

    def attach(self, client: Client) -> None:
        handle = self.chosen.randrange(100_000)
        if handle >= 4096 or not self.clients[client]:
            return
        channel = self.chosen.choice(sorted(self.clients[client]))
        name = f"n{self.chosen.randrange(4)}"
        attaches = [
            attach_sender("q", name=name, handle=handle),
            attach_sender(name=name, handle=handle, target=Target(dynamic=True)),
            attach_receiver("q", name=name, handle=handle),
            subscribing("durable", name, handle=handle),
            attach_sender("$no", name=name, handle=handle),  # refused
        ]
        client.send(self.chosen.choice(attaches), channel=channel)

    def detach(self, client: Client) -> None:
        for session in client.peer.connection.channels.mapped():
            if session.attached and self.chosen.random() < 0.5:
                held = [
                    each.link
                    for each in self.broker.container.registrations()
                    if each.link.session is session
                ]
                if held:
                    detach = Detach(handle=held[0].handle, closed=self.chosen.random() < 0.5)
                    client.send(detach, channel=int(session.channel))

    def end(self, client: Client) -> None:
        if self.clients[client]:
            client.send(End(), channel=self.clients[client].pop())

    def close(self, client: Client) -> None:
        client.send(Close())
        del self.clients[client]

    def hang_up(self, client: Client) -> None:
        client.hang_up()
        del self.clients[client]

    def check(self) -> None:
        usage = self.broker.container.user_limits.usage(ADA)
        links = self.broker.container.link_count()
        expected = (len(self.clients), sum(map(len, self.clients.values())), links)
        if usage is None:
            assert expected == (0, 0, 0)
        else:
            assert (usage.connections(), usage.sessions(), usage.links()) == expected
        router = self.broker.router
        nodes = [*router.queues.values(), *router.topics.values()]
        assert router.population.created(ADA) == len(nodes)
        durable = [each for each in router.subscriptions.named.values() if each.owner == ADA]
        assert router.subscriptions.owned(ADA) == len(durable)


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_exact_after_each_step(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(200):
        walk.step()
        walk.check()
    for client in list(walk.clients):
        walk.hang_up(client)
    walk.check()
    assert walk.broker.container.user_limits.usage(ADA) is None
