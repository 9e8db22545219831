"""Addresses with a prefix: both spellings name one node; each client is answered in its own."""

from __future__ import annotations

import pytest

from broker.amqp.outcomes import Rejected
from broker.amqp.performatives import Attach, Flow
from broker.amqp.terminus import NEVER, Source, Target
from tests.support.broker import Broker
from tests.support.frames import Disposition, attach_receiver, attach_sender, message
from tests.support.management import Manager
from tests.support.subscriptions import looking_up

SPELLINGS = [
    pytest.param("topic://news", "topic", "news", "topic", id="a topic, with its capability"),
    pytest.param("topic://news", "", "news", "topic", id="a topic, by its prefix alone"),
    pytest.param("topic://news/sport", "", "news/sport", "topic", id="a topic with a key"),
    pytest.param("queue://q", "", "q", "queue", id="a queue"),
    pytest.param("queue:///durable/queue/q", "", "/queue/durable/q", "queue", id="a class"),
]


@pytest.mark.requirement("DST-01", "DST-05")
@pytest.mark.parametrize(("prefixed", "kind", "plain", "plain_kind"), SPELLINGS)
def test_both_spellings_meet_and_each_client_is_told_its_own(
    prefixed: str, kind: str, plain: str, plain_kind: str
) -> None:
    for sender, receiver in (
        ((plain, plain_kind), (prefixed, kind)),
        ((prefixed, kind), (plain, plain_kind)),
    ):
        client = Broker().session()
        answer = client.attach_receiver(receiver[0], kind=receiver[1], handle=1, credit=5)
        assert answer.source is not None
        assert answer.source.address == receiver[0]
        answer = client.attach_sender(sender[0], kind=sender[1])
        assert isinstance(answer.target, Target)
        assert answer.target.address == sender[0]
        client.transfer(0, b"hello", settled=True)
        client.expect_deliveries(b"hello")


@pytest.mark.parametrize("to", ["topic://news", "topic://news/sport"])
def test_the_relay_reads_prefixes_in_to(to: str) -> None:
    client = Broker().session()
    client.attach_receiver("news", kind="topic", handle=1, credit=5)
    client.attach_sender(None)
    client.transfer(0, settled=True, payload=message(b"hello", to=to))
    client.expect_deliveries(b"hello")


def test_the_relay_makes_nothing_reserved_or_temporary() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender(None)
    for number, to in enumerate(("$cbs", "temp-queue://a", "temp-topic://a", "queue://$cbs")):
        client.transfer(number, payload=message(b"x", to=to))
        state = client.expect(Disposition).state
        assert isinstance(state, Rejected)
        assert state.error is not None
        assert state.error.condition == "amqp:not-found"
    assert broker.router.names("queue") == broker.router.names("topic") == []


REFUSED = [
    pytest.param("topic://a", "queue", "amqp:invalid-field", id="a topic that is called a queue"),
    pytest.param("queue://a", "topic", "amqp:invalid-field", id="a queue that is called a topic"),
    pytest.param("$cbs", "", "amqp:not-found", id="a reserved name"),
    pytest.param("$x", "topic", "amqp:not-found", id="a reserved topic"),
    pytest.param("temp-queue://a", "", "amqp:not-found", id="a temporary queue"),
    pytest.param("temp-topic://a", "topic", "amqp:not-found", id="a temporary topic"),
]


@pytest.mark.parametrize(("address", "kind", "condition"), REFUSED)
def test_an_attach_is_refused_and_makes_nothing(address: str, kind: str, condition: str) -> None:
    broker = Broker()
    client = broker.session()
    client.send(attach_sender(address, kind=kind))
    client.expect_refusal(condition)
    client = broker.session("receiver")
    client.send(attach_receiver(address, kind=kind))
    client.expect_refusal(condition)
    assert broker.router.names("queue") == broker.router.names("topic") == []


def test_a_temporary_queue_may_be_called_by_its_prefix() -> None:
    broker = Broker()
    owner = broker.session("owner")
    answer = owner.attach(attach_receiver(None, source=Source(dynamic=True)))
    assert answer.source is not None
    owner.flow(handle=0, credit=1, delivery_count=0)
    client = broker.session("client")
    client.attach_sender(f"temp-queue://{answer.source.address}")
    client.transfer(0, b"hello", settled=True)
    owner.expect_deliveries(b"hello")


@pytest.mark.requirement("SUB-02", "SUB-09")
def test_a_durable_subscription_is_one_by_either_spelling() -> None:
    broker = Broker()
    client = broker.session("client")

    def source(address: str) -> Source:
        return Source(address=address, durable=2, expiry_policy=NEVER, capabilities=["topic"])

    for number, spelling in enumerate(("topic://t", "t")):
        client.send(attach_receiver(name="sub", handle=number, source=source(spelling)))
        if number:
            client.expect_detach("amqp:link:stolen")
        answer = client.expect_last(Attach)
        assert answer.source is not None
        assert answer.source.address == spelling
        client.frames()
    assert len(broker.router.subscriptions.named) == 1
    client.hang_up()
    again = broker.session("client")
    again.send(looking_up("", "sub"))
    found = again.expect_last(Attach).source
    assert found is not None
    assert found.address == "t"


def test_management_reads_prefixes() -> None:
    broker = Broker()
    manager = Manager(broker)
    assert manager.ask("CREATE", "queue", "queue://a").status == 201
    assert list(broker.router.queues) == ["a"]
    assert manager.ask("CREATE", "queue", "a").status == 409
    assert manager.ask("READ", "queue", "queue://a").status == 200
    assert manager.ask("READ", "topic", "queue://a").status == 404
    assert manager.ask("CREATE", "topic", "queue://b").status == 400
    assert manager.ask("CREATE", "queue", "$b").status == 404
    broker.fill("a", 2)
    assert manager.ask("READ", "message", "04", queue="queue://a").status == 200
    told = manager.ask("EXPLAIN", "attach", None, address="topic://t").body
    assert isinstance(told, dict)
    assert (told["kind"], told["node"]) == ("topic", "the topic t, which is created")
    assert manager.ask("DELETE", "queue", "queue://a").status == 204
    assert "a" not in broker.router.queues


def test_management_itself_may_be_called_by_a_prefix() -> None:
    client = Broker().session()
    answer = client.attach(attach_sender("queue://$management"))
    assert answer.target is not None
    client.expect(Flow)
