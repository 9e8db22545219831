"""Connections and links as an operator sees them, and closing a connection."""

import pytest

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import Close
from broker.security.identity import Identity
from tests.support.broker import Broker, log_in
from tests.support.frames import Disposition, attach_receiver
from tests.support.management import Manager
from tests.support.subscriptions import subscribe


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


def test_connections_by_name_and_those_of_one_name_by_number(
    broker: Broker, manager: Manager
) -> None:
    first = broker.session("twin")
    second = broker.session("twin")
    broker.session("alone")
    rows = manager.query("connection", attributeNames=["name", "identity", "links"]).rows
    assert [row["name"] for row in rows] == ["alone", "manager", "twin", "twin"]
    assert [row["identity"] for row in rows[2:]] == [str(first.peer.id), str(second.peer.id)]
    assert [row["links"] for row in rows] == [0, 2, 0, 0]


def test_who_a_connection_is(broker: Broker, manager: Manager) -> None:
    client = broker.session("client")
    log_in(client, "alice")
    told = manager.ask("READ", "connection", str(client.peer.id)).map
    assert (told["name"], told["user"], told["address"]) == ("client", "alice", "127.0.0.1:1")
    assert told["claimed_user"] == ""


def test_the_name_that_an_anonymous_client_claims_is_shown(
    broker: Broker, manager: Manager
) -> None:
    client = broker.session("client")
    client.peer.identity = Identity("", roles=frozenset(), claimed_user="guest")
    told = manager.ask("READ", "connection", str(client.peer.id)).map
    assert (told["user"], told["claimed_user"]) == ("", "guest")


def test_the_host_that_a_client_connected_to_is_shown(broker: Broker, manager: Manager) -> None:
    client = broker.session("client", hostname="mq.example")
    told = manager.ask("READ", "connection", str(client.peer.id)).map
    assert told["hostname"] == "mq.example"
    other = manager.ask("READ", "connection", str(broker.session("other").peer.id)).map
    assert other["hostname"] == ""


def test_links_of_one_connection_as_their_client_sees_them(
    broker: Broker, manager: Manager
) -> None:
    client = broker.session("client")
    client.attach_sender("b")
    client.attach_sender(None, name="relay", handle=1)
    client.attach(attach_receiver("a", handle=2))
    client.flow(handle=2, credit=7, delivery_count=0)
    broker.session("other").attach_sender("a")
    rows = manager.query("link", connection=str(client.peer.id)).rows
    assert [(row["address"], row["role"], row["credit"]) for row in rows] == [
        ("", "sender", 100),
        ("a", "receiver", 7),
        ("b", "sender", 100),
    ]
    assert rows[0]["identity"] == f"{client.peer.id}/0/1"
    assert len(manager.query("link").rows) == 6
    assert len(manager.query("link", filter="a").rows) == 2


def test_a_consumer_that_does_not_settle_is_seen(broker: Broker, manager: Manager) -> None:
    broker.fill("a", 3)
    client = broker.session("client")
    client.attach(attach_receiver("b", name="idle", handle=1))
    client.attach(attach_receiver("a"))
    client.flow(handle=0, credit=2, delivery_count=0)
    broker.advance(5_000)
    client.flow(handle=0, credit=10, delivery_count=2)
    broker.advance(1_000)
    told = manager.ask("READ", "connection", str(client.peer.id)).map
    assert (told["unsettled"], told["oldest_unsettled_ms"]) == (3, 6_000)
    names = ["address", "unsettled", "oldest_unsettled_ms", "delivery_count"]
    rows = manager.query("link", connection=str(client.peer.id), attributeNames=names).rows
    assert [tuple(row.values()) for row in rows] == [("a", 3, 6_000, 3), ("b", 0, 0, 0)]
    client.send(Disposition(first=0, last=1, settled=True, state=Accepted()))
    told = manager.ask("READ", "connection", str(client.peer.id)).map
    assert (told["unsettled"], told["oldest_unsettled_ms"]) == (1, 1_000)


def test_a_client_that_does_not_read_is_seen(broker: Broker, manager: Manager) -> None:
    client = broker.session("client")
    client.peer.output_blocked()
    broker.advance(3_000)
    told = manager.ask("READ", "connection", str(client.peer.id)).map
    assert told["output_blocked_ms"] == 3_000
    client.peer.output_drained()
    told = manager.ask("READ", "connection", str(client.peer.id)).map
    assert told["output_blocked_ms"] == 0


def test_a_connection_is_closed_with_a_reason(broker: Broker, manager: Manager) -> None:
    client = broker.session("client")
    assert manager.ask("DELETE", "connection", str(client.peer.id), reason="go").status == 204
    close = client.expect_last(Close)
    assert close.error is not None
    assert (close.error.condition, close.error.description) == ("amqp:connection:forced", "go")


REFUSED = [
    pytest.param("READ", "99", 404, "no connection 99", id="to show a stranger"),
    pytest.param("DELETE", "99", 404, "no connection 99", id="to close a stranger"),
    pytest.param("READ", "manager", 404, "a number names it", id="by its name"),
]


@pytest.mark.parametrize(("operation", "name", "status", "told"), REFUSED)
def test_what_is_refused(
    manager: Manager, operation: str, name: str, status: int, told: str
) -> None:
    reply = manager.ask(operation, "connection", name)
    assert reply.status == status
    assert told in reply.description


def test_nobody_closes_their_own_connection(manager: Manager) -> None:
    reply = manager.ask("DELETE", "connection", str(manager.client.peer.id))
    assert (reply.status, reply.description) == (409, "this is the connection that asks")
    assert manager.client.peer.is_live()


def test_a_link_names_the_subscription_that_it_receives_from(
    broker: Broker, manager: Manager
) -> None:
    client = broker.session("client")
    subscribe(client, "durable", "s", address="t")
    subscribe(client, "", "other", address="t", handle=1)
    client.attach(attach_receiver("q", name="q", handle=2))
    names = ["name", "subscription"]
    rows = manager.query("link", connection=str(client.peer.id), attributeNames=names).rows
    assert sorted((row["name"], row["subscription"]) for row in rows) == [
        ("other", None),
        ("q", None),
        ("s", "durable/client/s"),
    ]
