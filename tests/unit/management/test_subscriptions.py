"""Named subscriptions as an operator sees and ends them."""

import pytest

from broker.amqp.performatives import Detach
from broker.amqp.terminus import NEVER, UNSETTLED_STATE, Source
from broker.security.identity import Identity
from tests.support.access import ADA, access_of
from tests.support.broker import Broker, Client
from tests.support.frames import attach_receiver
from tests.support.management import Manager, request


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


def subscribe(
    broker: Broker, name: str = "sub", client: str = "client", *, capabilities: tuple[str, ...] = ()
) -> Client:
    """Return a client with a durable subscription to the topic t, on handle 0."""
    found = broker.session(client)
    source = Source(
        address="t",
        durable=UNSETTLED_STATE,
        expiry_policy=NEVER,
        capabilities=["topic", *capabilities],
    )
    found.attach(attach_receiver(name=name, source=source))
    return found


def test_what_a_subscription_holds(broker: Broker, manager: Manager) -> None:
    subscribe(broker)
    broker.fill("t", 3, kind="topic")
    (row,) = manager.query("subscription").rows
    assert (row["name"], row["identity"], row["container_id"]) == (
        "sub",
        "durable/client/sub",
        "client",
    )
    assert (row["durable"], row["shared"], row["address"]) == (True, False, "t")
    assert (row["messages"], row["consumers"]) == (3, 1)
    assert manager.ask("READ", "subscription", "sub").map == row


def test_subscriptions_by_name(broker: Broker, manager: Manager) -> None:
    for client in ("b", "a"):
        subscribe(broker, "x", client)
    subscribe(broker, "w")
    rows = manager.query("subscription").rows
    assert [row["identity"] for row in rows] == ["durable/client/w", "durable/a/x", "durable/b/x"]
    assert len(manager.query("subscription", filter="x").rows) == 2
    unsure = manager.ask("READ", "subscription", "x")
    assert (unsure.status, "2 subscriptions" in unsure.description) == (409, True)
    assert manager.ask("READ", "subscription", "durable/a/x").map["container_id"] == "a"


def test_an_operator_unsubscribes(broker: Broker, manager: Manager) -> None:
    subscribe(broker).hang_up()
    assert manager.ask("DELETE", "subscription", "durable/client/sub").status == 204
    assert not broker.router.subscriptions.named
    assert not broker.router.topics["t"].subscriptions


def test_while_somebody_consumes_it_takes_force(broker: Broker, manager: Manager) -> None:
    client = subscribe(broker)
    refused = manager.ask("DELETE", "subscription", "sub")
    assert (refused.status, "1 consumers" in refused.description) == (409, True)
    client.expect_nothing()
    assert manager.ask("DELETE", "subscription", "sub", force=True).status == 204
    detach = client.expect_last(Detach)
    assert detach.error is not None
    assert detach.error.condition == "amqp:resource-deleted"
    assert not broker.router.subscriptions.named


def test_a_subscription_is_purged(broker: Broker, manager: Manager) -> None:
    subscribe(broker).hang_up()
    broker.fill("t", 2, kind="topic")
    assert manager.ask("PURGE", "subscription", "sub").map == {"purged": 2, "left": 0}


def test_its_messages_are_seen_and_deleted(broker: Broker, manager: Manager) -> None:
    subscribe(broker).hang_up()
    broker.fill("t", 2, kind="topic")
    within = {"subscription": "durable/client/sub"}
    rows = manager.look("message", within).rows
    assert len(rows) == 2
    first = str(rows[0]["identity"])
    assert manager.ask("READ", "message", first, **within).map["body"] == b"0"  # type: ignore[arg-type]
    reply = manager.ask("DELETE", "message", subscription="durable/client/sub", identities=[first])
    assert reply.map["deleted"] == 1
    assert len(manager.look("message", within).rows) == 1
    assert manager.look("message", {"subscription": "sub"}).status == 404


@pytest.mark.parametrize("operation", ["READ", "DELETE", "PURGE"])
def test_what_is_not_there(manager: Manager, operation: str) -> None:
    reply = manager.ask(operation, "subscription", "none")
    assert (reply.status, reply.description) == (404, "no subscription none")


@pytest.mark.parametrize(
    ("name", "identity", "status"),
    [
        pytest.param("durable/ada/n", None, 200, id="by name"),
        pytest.param(None, "durable/ada/n", 200, id="by identity"),
        pytest.param("durable/bob/n", "durable/ada/n", 403, id="by the name of another"),
        pytest.param("durable/ada/n", "durable/bob/n", 200, id="by the identity of another"),
    ],
)
def test_a_right_on_a_subscription_is_for_the_one_that_is_purged(
    name: str | None, identity: str | None, status: int
) -> None:
    broker = Broker()
    for container_id in ("ada", "bob"):
        subscribe(broker, "n", container_id)
    broker.fill("t", 2, kind="topic")
    manager = Manager(broker)
    manager.client.peer.identity = Identity(ADA, roles=frozenset())
    broker.container.access = access_of("purge subscription:ada/n")
    reply = manager.ask_raw(request("PURGE", "subscription", name, identity=identity))
    assert reply.status == status
    named = broker.router.subscriptions.named
    left = {each[0]: found.queue.contents() for each, found in named.items()}
    assert left == {"ada": 0 if status == 200 else 2, "bob": 2}
