"""Receipts: what becomes of a message that was taken without a link."""

from __future__ import annotations

import pytest

from broker.links.receipts import queue_to_receive
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import HeldExclusively, LimitReached, NoSuchNode, NotPermitted
from broker.security.access import AccessRules
from broker.security.identity import ADMIN
from tests.support.access import ADA, OWNER, RuledUsers, access_of, guarded
from tests.support.broker import Broker
from tests.support.frames import Transfer, message
from tests.support.linkless import LOCK_MS, Taker, linkless, send
from tests.unit.links.test_posting import free

pytestmark = pytest.mark.requirement("MAP-09")

DEAD = AddressPolicy(dead_letter="dead", max_delivery_count=2)


def holding(count: int = 1, *, policy: AddressPolicy | None = None) -> tuple[Broker, Taker]:
    """Return a broker whose queue has `count` messages, and a client that takes them."""
    broker = free(policy=policy)
    for _ in range(count):
        send(broker)
    return broker, Taker(broker)


@pytest.mark.parametrize(
    ("disposal", "left", "dead", "delivery_count"),
    [
        pytest.param(Disposal.REMOVE, 0, 0, 0, id="accepted"),
        pytest.param(Disposal.RELEASE, 1, 0, 0, id="released"),
        pytest.param(Disposal.DEAD_LETTER, 0, 1, 0, id="rejected"),
    ],
)
def test_a_receipt_is_settled(
    disposal: Disposal, left: int, dead: int, delivery_count: int
) -> None:
    broker, taker = holding(policy=DEAD)
    receipt = taker.take()
    taker.receipts.settle(receipt, disposal)
    broker.container.run_round()
    found = broker.router.queues.get("dead")
    assert broker.queue().contents() == left
    assert (0 if found is None else found.contents()) == dead
    if left:
        entry = taker.begin().entry
        assert entry is not None
        assert entry.delivery_count == delivery_count
    with pytest.raises(NoSuchNode):
        taker.receipts.find(taker.client, receipt.id)


def test_an_expired_receipt_returns_its_message_and_raises_the_delivery_count() -> None:
    broker, taker = holding(policy=DEAD)
    for count in range(4):  # more often than the redelivery limit, which counts failures alone
        receipt = taker.take()
        entry = receipt.taken.entry
        assert entry is not None
        assert (entry.delivery_count, entry.failures) == (count, 0)
        broker.advance(LOCK_MS - 1)
        assert receipt.taken.entry is entry
        broker.advance(1)
        assert receipt.is_settled
        with pytest.raises(NoSuchNode, match="it has expired"):
            taker.receipts.find(taker.client, receipt.id)


def test_a_renewed_receipt_lasts_longer() -> None:
    broker, taker = holding()
    receipt = taker.take()
    broker.advance(LOCK_MS - 1)
    taker.receipts.renew(receipt)
    broker.advance(LOCK_MS - 1)
    assert taker.receipts.find(taker.client, receipt.id) is receipt
    broker.advance(1)
    assert receipt.is_settled
    assert broker.queue().consumers.attached == []


def test_a_receipt_belongs_to_the_user_that_took_the_message() -> None:
    broker, taker = holding()
    receipt = taker.take()
    other, _ = linkless(broker, OWNER)
    with pytest.raises(NoSuchNode, match="no such receipt"):
        taker.receipts.find(other, receipt.id)
    again, _ = linkless(broker)
    assert taker.receipts.find(again, receipt.id) is receipt


@pytest.mark.requirement("OPS-08")
def test_a_receipt_is_of_no_use_without_the_right_to_receive() -> None:
    broker = guarded("send,create,receive queue:q")
    send(broker)
    taker = Taker(broker)
    receipt = taker.take()
    broker.container.adopt_access(access_of("send,create queue:q"))
    with pytest.raises(NotPermitted, match="not allowed to receive queue:q"):
        taker.receipts.find(taker.client, receipt.id)
    broker.advance(LOCK_MS)
    assert receipt.is_settled
    assert broker.queue().state.acquired == 0


def test_a_user_has_only_so_many_receipts() -> None:
    _, taker = holding(2)
    taker = Taker(taker.broker, per_user=1)
    receipt = taker.take()
    with pytest.raises(LimitReached, match="has its 1 receipts"):
        taker.receipts.check_room(ADA)
    taker.receipts.check_room(OWNER)
    taker.receipts.settle(receipt, Disposal.REMOVE)
    taker.receipts.check_room(ADA)


def test_a_deleted_queue_ends_its_receipts() -> None:
    broker, taker = holding()
    receipt = taker.take()
    broker.router.delete(broker.queue(), broker.journal.batch)
    broker.container.run_round()
    with pytest.raises(NoSuchNode, match="was deleted"):
        taker.receipts.find(taker.client, receipt.id)
    broker.advance(LOCK_MS)
    memory = broker.router.memory
    assert (memory.held, memory.durable, memory.volatile) == (0, 0, 0)


def test_an_expired_receipt_of_a_deleted_queue_is_forgotten() -> None:
    broker, taker = holding()
    receipt = taker.take()
    broker.router.delete(broker.queue(), broker.journal.batch)
    broker.advance(LOCK_MS)
    assert receipt.is_settled
    taker.receipts.check_room(ADA)


def test_a_drain_ends_if_nothing_waits() -> None:
    broker, taker = holding(0)
    consumer = taker.begin()
    assert (consumer.entry, consumer.is_over, taker.notified) == (None, True, 1)
    consumer.leave()
    assert broker.queue().consumers.attached == []


def test_a_consumer_waits_for_a_message_and_takes_one_alone() -> None:
    broker, taker = holding(0)
    consumer = taker.begin(drain=False)
    assert taker.notified == 0
    send(broker)
    send(broker)
    assert consumer.entry is not None
    assert (taker.notified, broker.queue().contents()) == (1, 2)
    consumer.settle(Disposal.RELEASE)
    broker.container.run_round()
    assert broker.queue().state.acquired == 0


def test_the_next_consumer_gets_a_released_message_again() -> None:
    broker, taker = holding()
    consumer = taker.begin()
    consumer.settle(Disposal.RELEASE)
    broker.container.run_round()
    assert taker.begin().entry is not None


def test_an_amqp_receiver_gets_a_message_whose_receipt_has_expired() -> None:
    broker, taker = holding()
    taker.take()
    receiver = broker.session()
    receiver.attach_receiver("q", credit=1)
    assert receiver.bodies() == []
    broker.advance(LOCK_MS)
    assert receiver.expect(Transfer).payload is not None


def test_a_consumer_waits_while_all_consumers_hold_too_much() -> None:
    broker = free(memory_max=4000)
    send(broker, encoded=message(bytes(900)))
    send(broker, encoded=message(bytes(10)))
    taker = Taker(broker)
    receipt = taker.take()
    consumer = taker.begin(drain=False)
    assert consumer.entry is None
    taker.receipts.settle(receipt, Disposal.REMOVE)
    broker.container.run_round()
    broker.container.tick()
    assert consumer.entry is not None


@pytest.mark.requirement("OPS-08")
@pytest.mark.parametrize(
    ("rights", "copies", "missing"),
    [
        pytest.param(("receive queue:q",), False, "create queue:q", id="not to create it"),
        pytest.param(("browse,create queue:q",), False, "receive queue:q", id="to browse alone"),
        pytest.param(("receive,create queue:q",), True, "browse queue:q", id="not to browse"),
    ],
)
def test_receiving_needs_the_rights_of_a_link(
    rights: tuple[str, ...], copies: bool, missing: str
) -> None:
    client, _ = linkless(guarded(*rights))
    with pytest.raises(NotPermitted, match=f"not allowed to {missing}"):
        queue_to_receive(client, "q", copies=copies)


def test_a_browser_creates_no_queue() -> None:
    client, _ = linkless(free())
    with pytest.raises(NoSuchNode, match="no queue q"):
        queue_to_receive(client, "q", copies=True)


def test_a_temporary_queue_of_a_connection_is_its_own() -> None:
    users = RuledUsers({ADA: {ADMIN}, "": {ADMIN}})
    broker = Broker(authenticator=users, access=AccessRules())
    owner = broker.session("owner")
    made = broker.router.create_temporary("queue", owner.peer.id)
    client, _ = linkless(broker)
    with pytest.raises(HeldExclusively):
        queue_to_receive(client, made.address, copies=False)
