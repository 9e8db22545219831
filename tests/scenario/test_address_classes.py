"""Addresses of the RFC012 classes as clients see them: answers, refusals, and lifetimes."""

from __future__ import annotations

import pytest

from broker.amqp.performatives import Attach, Close, Detach, End
from broker.amqp.terminus import COPY, LINK_DETACH, Source
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Body,
    Disposition,
    attach_receiver,
    attach_sender,
    header_of,
    message,
)
from tests.support.stores import GatedStore


@pytest.mark.requirement("DST-10")
@pytest.mark.parametrize("address", ["/queue/durable/a", "/transient/queue/a", "/tmp/queue/a"])
def test_a_client_may_write_either_order(address: str) -> None:
    client = Broker().session()
    client.attach_sender(address)
    client.transfer(0, b"hello", settled=True)
    turned = "/{1}/{0}/a".format(*address.split("/")[1:3])
    client.attach_receiver(turned, handle=1, credit=1)
    client.expect_deliveries(b"hello")


@pytest.mark.requirement("DST-10")
@pytest.mark.parametrize(
    ("address", "kind"),
    [("/queue/durable/a", "topic"), ("/topic/tmp/a", "queue"), ("/durable/topic/", "")],
)
def test_an_address_that_contradicts_itself_is_refused(address: str, kind: str) -> None:
    client = Broker().session()
    client.send(attach_sender(address, kind=kind))
    client.expect_refusal("amqp:invalid-field")
    client.send(Detach(handle=0, closed=True), attach_receiver(address, kind=kind))
    client.expect_refusal("amqp:invalid-field")


@pytest.mark.requirement("DST-11", "DST-12", "PRD-03")
@pytest.mark.parametrize(
    ("address", "durable", "waits"),
    [
        pytest.param("/queue/durable/a", False, True, id="durable"),
        pytest.param("/queue/durable/a", True, True, id="durable, and so is the message"),
        pytest.param("a", False, False, id="plain"),
        pytest.param("a", True, True, id="plain, but a durable message"),
        pytest.param("/queue/transient/a", False, False, id="transient"),
    ],
)
@pytest.mark.parametrize("relay", [False, True], ids=["to its target", "by the relay"])
def test_a_sender_is_told_once_it_is_stored(
    address: str, durable: bool, waits: bool, relay: bool
) -> None:
    broker = Broker(store=GatedStore())
    client = broker.session()
    client.attach_sender(None if relay else address)
    client.transfer(payload=message(durable=durable, to=address))
    told = [body for body in client.bodies() if isinstance(body, Disposition)]
    assert (told == []) is waits


@pytest.mark.requirement("DST-11")
def test_the_header_is_left_as_the_sender_wrote_it() -> None:
    broker = Broker()
    broker.fill("/queue/durable/a", count=1)
    client = broker.session()
    client.attach_receiver("/queue/durable/a", credit=1)
    (came,) = client.expect_deliveries(b"0")
    assert header_of(came.payload)[0] is False


def tmp(address: str = "/queue/tmp/mine") -> tuple[Broker, Client]:
    """Return a broker, and a connection that has created `address` by its sender's link."""
    broker = Broker()
    owner = broker.session("owner")
    owner.attach_sender(address)
    return broker, owner


@pytest.mark.requirement("DST-13", "TMP-04")
@pytest.mark.parametrize("address", ["/queue/tmp/mine", "/tmp/queue/mine"])
@pytest.mark.parametrize("mode", [None, COPY], ids=["consume", "browse"])
def test_a_tmp_queue_of_another_connection_is_locked(address: str, mode: str | None) -> None:
    broker, owner = tmp()
    other = broker.session("other")
    other.send(attach_receiver(source=Source(address=address, distribution_mode=mode)))
    other.expect_refusal("amqp:resource-locked")
    other.send(Detach(handle=0, closed=True))
    other.attach_sender(address)
    other.transfer(body=b"reply", settled=True)
    owner.attach_receiver(address, handle=1, credit=1)
    owner.expect_deliveries(b"reply")


@pytest.mark.requirement("DST-13", "TMP-04")
def test_a_tmp_topic_of_another_connection_is_locked() -> None:
    broker, _ = tmp("/topic/tmp/mine")
    other = broker.session("other")
    other.send(attach_receiver("/tmp/topic/mine"))
    other.expect_refusal("amqp:resource-locked")


@pytest.mark.requirement("DST-13")
def test_a_tmp_queue_is_gone_when_its_connection_comes_back() -> None:
    broker, owner = tmp()
    owner.transfer(settled=True)
    other = broker.session("other")
    other.attach_sender("/queue/tmp/mine")
    owner.hang_up()
    told = other.expect(Detach).error
    assert told is not None
    assert told.condition == "amqp:resource-deleted"
    again = broker.session("owner")
    again.attach_receiver("/queue/tmp/mine", credit=1)
    again.expect_nothing()
    assert broker.queue("/queue/tmp/mine").backlogs.waiting == 0


@pytest.mark.requirement("DST-13")
def test_detaching_does_not_end_a_tmp_queue() -> None:
    broker, owner = tmp()
    owner.transfer(body=b"kept", settled=True)
    owner.send(Detach(handle=0, closed=True))
    owner.expect(Detach)
    owner.attach_receiver("/queue/tmp/mine", credit=1)
    owner.expect_deliveries(b"kept")
    assert broker.router.queues["/queue/tmp/mine"].is_temporary


@pytest.mark.requirement("DST-12")
def test_a_transient_queue_keeps_what_a_lost_consumer_had() -> None:
    broker = Broker()
    broker.fill("/queue/transient/a", count=2)
    first = broker.session("mine")
    first.attach_receiver("/queue/transient/a", credit=2)
    first.expect_deliveries(b"0", b"1")
    first.hang_up()
    again = broker.session("mine")
    again.send(attach_receiver("/queue/transient/a"))
    again.expect(Attach)
    again.flow(handle=0, credit=2, delivery_count=0)
    again.expect_deliveries(b"0", b"1")


# -- subscribers that attach again


CLASSES = pytest.mark.parametrize("topic", ["/topic/durable/t", "/transient/topic/t"])


def subscriber(
    broker: Broker, topic: str, *, container_id: str = "mine", credit: int = 0
) -> Client:
    """Return a connection with a volatile subscriber, whose link has the same name each time."""
    client = broker.session(container_id)
    source = Source(address=topic, expiry_policy=LINK_DETACH)
    client.attach(attach_receiver(name="subscriber", source=source))
    if credit:
        client.flow(handle=0, credit=credit, delivery_count=0)
    return client


@CLASSES
@pytest.mark.requirement("DST-11", "DST-12")
def test_a_volatile_subscriber_that_was_lost_misses_nothing(topic: str) -> None:
    broker = Broker()
    first = subscriber(broker, topic, credit=1)
    broker.fill(topic, count=2, kind="topic")
    first.expect_deliveries(b"0")
    first.hang_up()
    broker.fill(topic, count=1, kind="topic")
    broker.advance(59_999)
    again = subscriber(broker, topic, credit=9)
    again.expect_deliveries(b"0", b"1", b"0")
    assert broker.router.subscriptions.kept.count() == 0
    broker.advance(40_000)
    assert len(broker.router.subscriptions.of) == 1, "who is back has no deadline"


@CLASSES
@pytest.mark.requirement("DST-11", "DST-12")
def test_after_the_grace_a_volatile_subscription_is_over(topic: str) -> None:
    broker = Broker()
    subscriber(broker, topic).hang_up()
    assert len(broker.router.subscriptions.of) == 1
    broker.advance(60_000)
    assert len(broker.router.subscriptions.of) == 0
    assert broker.router.subscriptions.kept.count() == 0
    broker.fill(topic, count=1, kind="topic")
    subscriber(broker, topic, credit=9).expect_nothing()


@CLASSES
@pytest.mark.requirement("DST-11", "DST-12")
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Close(), id="closed"),
        pytest.param(End(), id="session ended"),
        pytest.param(Detach(handle=0, closed=True), id="link closed"),
        pytest.param(Detach(handle=0), id="link detached"),
    ],
)
def test_who_leaves_in_good_order_is_not_waited_for(topic: str, end: Body) -> None:
    broker = Broker()
    subscriber(broker, topic).send(end)
    assert len(broker.router.subscriptions.of) == 0


@pytest.mark.requirement("DST-12", "DST-14")
def test_a_plain_topic_waits_for_nobody() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver("t", kind="topic")
    client.hang_up()
    assert len(broker.router.subscriptions.of) == 0


@CLASSES
@pytest.mark.requirement("DST-11", "DST-12")
def test_only_the_same_link_of_the_same_client_comes_back(topic: str) -> None:
    broker = Broker()
    subscriber(broker, topic).hang_up()
    broker.fill(topic, count=1, kind="topic")
    subscriber(broker, topic, container_id="another", credit=9).expect_nothing()
    other = broker.session("mine")
    other.attach_receiver(topic, name="another", credit=9)
    other.expect_nothing()
    subscriber(broker, topic, credit=9).expect_deliveries(b"0")


@CLASSES
@pytest.mark.requirement("DST-11", "DST-12")
def test_a_link_that_wants_something_else_begins_anew(topic: str) -> None:
    broker = Broker()
    subscriber(broker, topic).hang_up()
    broker.fill(topic, count=1, kind="topic")
    subscriber(broker, topic + "2", credit=9).expect_nothing()
    assert len(broker.router.subscriptions.of) == 1
    assert broker.router.subscriptions.kept.count() == 0


@CLASSES
@pytest.mark.requirement("DST-11", "DST-12")
def test_a_topic_that_is_deleted_takes_along_what_was_kept(topic: str) -> None:
    broker = Broker()
    subscriber(broker, topic).hang_up()
    node = broker.router.find_named(topic, "topic")
    assert node is not None
    broker.router.delete(node, broker.journal.batch)
    assert len(broker.router.subscriptions.of) == 0
    broker.fill(topic, count=1, kind="topic")
    subscriber(broker, topic, credit=9).expect_nothing()
    assert broker.router.subscriptions.kept.count() == 0
