"""Explanations: what an attach would meet. Asking for one changes nothing."""

import pytest

from broker.amqp.performatives import Detach
from broker.amqp.terminus import NEVER, UNSETTLED_STATE, Source
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.frames import attach_receiver
from tests.support.management import Manager, request


@pytest.fixture
def broker() -> Broker:
    """Return a broker with subscriptions of `client` to t: `sub` has a link, `away` has none.

    Both are durable.
    """
    broker = Broker(patterns=[("closed.*", AddressPolicy(auto_create=False))])
    broker.fill("q")
    client = broker.session("client")
    for handle, name in enumerate(("sub", "away")):
        source = Source(
            address="t", durable=UNSETTLED_STATE, expiry_policy=NEVER, capabilities=["topic"]
        )
        client.attach(attach_receiver(name=name, handle=handle, source=source))
    client.send(Detach(handle=1, closed=False))
    return broker


TOLD = [
    pytest.param({"address": "q"}, None, None, "the queue q, which is there", id="a queue"),
    pytest.param({"address": "new"}, None, None, "the queue new, which is created", id="a new one"),
    pytest.param({"address": "closed.a"}, None, "amqp:not-found", None, id="one nobody may make"),
    pytest.param({"address": "$tmp/queue/x"}, None, "amqp:not-found", None, id="a guess"),
    pytest.param({"address": "a\nb"}, None, "amqp:invalid-field", None, id="no address"),
    pytest.param(
        {"address": "t", "kind": "topic"}, "SUB-01", None, "the topic t, which is there", id="topic"
    ),
    pytest.param(
        {"address": "t.*", "kind": "topic"},
        "SUB-01",
        None,
        "every topic that t.* matches",
        id="a pattern",
    ),
    pytest.param(
        {"address": "t", "kind": "topic", "durable": True, "link_name": "other"},
        "SUB-02",
        None,
        "the topic t, which is there",
        id="a durable subscription that begins",
    ),
    pytest.param(
        {"address": "t", "kind": "topic", "shared": True, "durable": True, "link_name": "sub"},
        "SUB-06",
        "amqp:resource-locked",
        None,
        id="shared, by the name of one that is not",
    ),
    pytest.param(
        {"address": "u", "kind": "topic", "durable": True, "link_name": "away"},
        "SUB-02",
        None,
        "the topic u, which is created",
        id="another topic: it begins anew",
    ),
    pytest.param(
        {"address": "q", "selector": "a ="},
        None,
        "amqp:invalid-field",
        None,
        id="a queue: selector",
    ),
    pytest.param(
        {"address": "q", "link_name": "sub"},
        None,
        "amqp:resource-locked",
        None,
        id="a queue: the link name of a subscription",
    ),
    pytest.param({"lookup": True, "link_name": "away"}, "SUB-09", None, None, id="a lookup"),
    pytest.param(
        {"lookup": True, "link_name": "sub"},
        "SUB-09",
        "amqp:resource-locked",
        None,
        id="a lookup while the link is there",
    ),
    pytest.param(
        {"lookup": True, "link_name": "none"},
        "SUB-09",
        "amqp:not-found",
        None,
        id="a lookup of nothing",
    ),
    pytest.param(
        {"address": "t", "kind": "topic", "selector": "a ="},
        "SUB-01",
        "amqp:invalid-field",
        None,
        id="a bad selector",
    ),
]


@pytest.mark.parametrize(("facts", "row", "refusal", "node"), TOLD)
def test_what_is_told(
    broker: Broker,
    facts: dict[str, object],
    row: str | None,
    refusal: str | None,
    node: str | None,
) -> None:
    manager = Manager(broker)
    before = state(broker)
    body = {"container_id": "client", **facts}
    reply = manager.ask_raw(request("EXPLAIN", "attach", body=body))
    assert reply.status == 200, reply.description
    told = reply.map
    assert (told["row"], told["refusal"], told["node"]) == (row, refusal, node), told
    assert (told["description"] is None) is (refusal is None)
    assert state(broker) == before


def state(broker: Broker) -> object:
    """Return the facts that an explanation must not change."""
    router = broker.router
    return (
        sorted(router.queues),
        sorted(router.topics),
        sorted(map(str, router.subscriptions.named)),
        broker.container.link_count(),
    )


def test_the_verdict_in_words(broker: Broker) -> None:
    body = {
        "container_id": "client",
        "link_name": "away",
        "address": "u",
        "kind": "topic",
        "durable": True,
    }
    told = Manager(broker).ask_raw(request("EXPLAIN", "attach", body=body)).map
    assert told["verdict"] == "the one there is goes, with its backlog; begin one"
    assert told["subscription"] == "durable/client/away"


WRONG = [
    pytest.param({}, "either an address, or lookup", id="neither"),
    pytest.param({"address": "a", "lookup": True}, "either an address", id="both"),
    pytest.param({"address": "a", "kind": "heap"}, "kind must be one of", id="a kind nobody knows"),
    pytest.param({"address": "a", "colour": 1}, "no argument colour", id="an unknown fact"),
]


@pytest.mark.parametrize(("body", "told"), WRONG)
def test_what_cannot_be_asked(broker: Broker, body: dict[str, object], told: str) -> None:
    reply = Manager(broker).ask_raw(request("EXPLAIN", "attach", body=body))
    assert (reply.status, told in reply.description) == (400, True), reply.description


def test_the_verdict_on_a_queue_tells_of_other_consumers() -> None:
    broker = Broker(patterns=[("alone", AddressPolicy(exclusive=True))])
    manager = Manager(broker)

    def verdict(address: str) -> object:
        reply = manager.ask_raw(request("EXPLAIN", "attach", body={"address": address}))
        return reply.map["verdict"]

    assert verdict("new") == "create the queue, and consume from it"
    for name in ("shared", "alone"):
        broker.fill(name)
        assert verdict(name) == "consume from the queue there is, as its only consumer"
        broker.session(name).attach(attach_receiver(source=Source(address=name)))
    assert verdict("shared") == "consume from the queue there is, in turn with other consumers: 1"
    assert verdict("alone") == "stand by: another consumer is served alone"
