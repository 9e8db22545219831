"""The memory budget: which producers wait, what is rolled back, and which connection is closed."""

from __future__ import annotations

import pytest

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED
from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import RECEIVER, Close, Flow
from broker.amqp.terminus import Source
from broker.routing.credit.memory import ENTRY_BYTES, UNSETTLED_MAX
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    message,
)
from tests.support.transactions import Controller

MEMORY_MAX = 64_000
CREDIT = 10
BODY = bytes(1000)
PER_MESSAGE = int(ENTRY_BYTES) + len(message(BODY))


def granted(client: Client) -> int:
    """Return the credit last granted to the client's sender since the last call, 0 if none."""
    given = [body.link_credit or 0 for body in client.bodies() if isinstance(body, Flow)]
    return given[-1] if given else 0


def send_until_no_credit_comes(client: Client, credit: int) -> int:
    """Send while there is credit, at first `credit`; return the number of messages sent."""
    sent = 0
    while credit > 0:
        client.transfer(sent, payload=message(BODY))
        sent += 1
        credit = granted(client) or credit - 1
    return sent


def deliveries(client: Client) -> int:
    """Return the number of deliveries since the last call."""
    return sum(isinstance(body, Transfer) for body in client.bodies())


def small_broker(credit: int = CREDIT) -> Broker:
    broker = Broker(memory_max=MEMORY_MAX, credit=credit)
    broker.container.memory_guard.begin()
    return broker


# -- credit


def test_producers_wait_above_three_quarters_and_nothing_is_rejected() -> None:
    broker = small_broker()
    sender = broker.session("sender")
    sender.attach_sender()
    sent = send_until_no_credit_comes(sender, CREDIT)
    memory = broker.router.memory
    assert memory.is_short
    assert MEMORY_MAX * 3 // 4 < memory.total() < MEMORY_MAX
    assert broker.queue().backlogs.waiting == sent
    assert any("memory is short" in event for event in broker.watcher.events)
    assert broker.stats.memory_shortages == 1


def test_producers_go_on_when_consumers_have_made_room() -> None:
    broker = small_broker()
    sender = broker.session("sender")
    sender.attach_sender()
    sent = send_until_no_credit_comes(sender, CREDIT)
    receiver = broker.session("receiver")
    receiver.attach_receiver(credit=sent, snd_settle_mode=1)
    broker.container.run_round()
    assert broker.router.memory.total() == 0
    assert not broker.router.memory.is_short
    assert granted(sender) == CREDIT


def test_a_client_that_holds_a_delivery_may_send_one_message_at_a_time() -> None:
    """A client that settles its delivery only after it has sent a result must not be blocked."""
    broker = small_broker()
    broker.fill("work", 1)
    worker = broker.session("worker")
    worker.attach_receiver("work", credit=1)
    worker.expect(Transfer)
    filler = broker.session("filler")
    filler.attach_sender("q")
    send_until_no_credit_comes(filler, CREDIT)
    worker.attach(attach_sender("results", handle=1))
    assert granted(worker) == 1
    worker.send(Transfer(handle=1, delivery_id=0, tag=b"0", payload=message()))
    assert granted(worker) == 1


def test_a_waiting_client_may_send_one_message_soon_after_it_got_a_delivery() -> None:
    broker = small_broker()
    broker.fill("work", 1)
    filler = broker.session("filler")
    filler.attach_sender("q")
    send_until_no_credit_comes(filler, CREDIT)
    worker = broker.session("worker")
    worker.attach(attach_sender("results", handle=1))
    assert granted(worker) == 0
    worker.attach_receiver("work", name="in", handle=0, credit=1)
    worker.frames()
    broker.advance(50)
    assert granted(worker) == 1


def test_shortages_that_come_and_go_leave_one_timer() -> None:
    broker = small_broker()
    memory = broker.router.memory
    timer_queue = broker.router.timer_queue
    for _ in range(5):
        memory.output = MEMORY_MAX - 1
        broker.container.run_round()
        assert memory.is_short
        memory.output = 0
        broker.container.run_round()
        assert not memory.is_short
    broker.advance(2000)
    broker.advance(2000)
    assert len(timer_queue._heap) == 1


# -- transactions


@pytest.mark.attack("R5")
def test_the_largest_transaction_is_rolled_back_and_a_small_one_is_not() -> None:
    broker = small_broker(credit=100)
    hoarder, healthy = Controller(broker, "hoarder"), Controller(broker, "healthy")
    for each in (hoarder, healthy):
        each.client.attach_sender()
    small, large = healthy.declare(), hoarder.declare()
    healthy.post(small, BODY)
    while not broker.stats.transactions_given_up:
        hoarder.try_to_post(large, BODY)
    assert broker.router.memory.transactions <= MEMORY_MAX // 4
    healthy.post(small, BODY)
    healthy.commit(small)
    assert hoarder.fail_to_commit(large) == RESOURCE_LIMIT_EXCEEDED
    assert broker.queue().backlogs.waiting == 2
    assert broker.router.memory.transactions == 0
    assert any("largest transaction" in event for event in broker.watcher.events)


def test_a_transaction_that_was_given_up_takes_nothing_from_others() -> None:
    broker = small_broker(credit=100)
    hoarder, healthy = Controller(broker, "hoarder"), Controller(broker, "healthy")
    for each in (hoarder, healthy):
        each.client.attach_sender()
    large = hoarder.declare()
    while not broker.stats.transactions_given_up:
        hoarder.try_to_post(large, BODY)
    for _ in range(2 * MEMORY_MAX // 4 // PER_MESSAGE):
        hoarder.try_to_post(large, BODY)
    assert broker.router.memory.transactions == 0
    small = healthy.declare()
    healthy.post(small, BODY)
    healthy.commit(small)
    assert broker.stats.transactions_given_up == 1


# -- unfinished deliveries


@pytest.mark.attack("R10")
def test_the_connection_with_most_in_unfinished_deliveries_is_closed() -> None:
    broker = small_broker()
    hoarder, healthy = broker.session("hoarder"), broker.session("healthy")
    for each in (hoarder, healthy):
        each.attach_sender()
    healthy.send(Transfer(delivery_id=0, tag=b"0", more=True, payload=message(BODY)))
    for _ in range(MEMORY_MAX // 4 // 1000):
        hoarder.send(Transfer(delivery_id=0, tag=b"0", more=True, payload=BODY))
    hoarder.expect_close(RESOURCE_LIMIT_EXCEEDED)
    assert broker.router.memory.unfinished == len(message(BODY))
    healthy.send(Transfer(delivery_id=0, tag=b"0", payload=b""))
    healthy.expect(Disposition)
    assert broker.queue().backlogs.waiting == 1
    assert broker.stats.connections_closed_for_memory == 1


# -- deliveries that are held


@pytest.mark.attack("R3")
def test_consumers_that_hold_something_get_no_more_while_a_quarter_is_held() -> None:
    broker = small_broker()
    most = MEMORY_MAX // 4 // PER_MESSAGE + 1
    sender = broker.session("sender")
    sender.attach_sender("large")
    for number in range(most + 5):
        sender.transfer(number, payload=message(BODY))
    broker.fill("q", count=5)
    hoarder = broker.session("hoarder")
    hoarder.attach_receiver("large", credit=1000)
    assert deliveries(hoarder) == most
    healthy = broker.session("healthy")
    healthy.attach_receiver("q", credit=5)
    assert deliveries(healthy) == 1
    hoarder.send(Disposition(role=RECEIVER, first=0, last=most - 1, settled=True, state=ACCEPTED))
    assert deliveries(hoarder) == 5
    assert deliveries(healthy) == 4


@pytest.mark.attack("R3")
def test_a_consumer_may_hold_so_many_deliveries_and_gets_more_when_it_settles() -> None:
    broker = Broker()
    client = broker.session(
        "client",
    )
    client.attach_receiver(credit=UNSETTLED_MAX)
    owner = client.peer.connection.channels.session(0)
    assert owner is not None
    link = next(iter(broker.container.receivers())).link
    consumer = link.owner  # type: ignore[attr-defined]
    broker.fill(count=1)
    client.expect(Transfer)
    consumer.unsettled = UNSETTLED_MAX
    broker.fill(count=1)
    client.expect_nothing()
    client.send(Disposition(role=RECEIVER, first=0, settled=True, state=ACCEPTED))
    client.expect(Transfer)


# -- the whole budget


def test_above_the_budget_the_connection_that_holds_most_is_closed() -> None:
    broker = small_broker()
    memory = broker.router.memory
    healthy = broker.session("healthy")
    healthy.attach_sender()
    hoarder = broker.session("hoarder")
    dynamic = hoarder.attach(attach_receiver(source=Source(dynamic=True)))
    assert dynamic.source is not None
    healthy.attach(attach_sender(dynamic.source.address, name="to-hoarder", handle=1))
    healthy.frames()
    for number in range(10):
        healthy.send(Transfer(handle=1, delivery_id=number, tag=b"x", payload=message(BODY)))
    memory.output = MEMORY_MAX  # output that no open connection has
    broker.container.run_round()
    hoarder.expect_close(RESOURCE_LIMIT_EXCEEDED)
    assert not any(isinstance(body, Close) for body in healthy.bodies())
    assert any("connection hoarder" in event for event in broker.watcher.events)


def test_a_client_that_does_not_read_is_cut_off_when_it_is_closed_for_memory() -> None:
    broker = small_broker()
    hoarder = broker.session("hoarder")
    hoarder.attach_sender()
    hoarder.transport.unsent = 1000
    for _ in range(MEMORY_MAX // 4 // 1000 + 1):
        hoarder.send(Transfer(delivery_id=0, tag=b"0", more=True, payload=BODY))
        if hoarder.transport.aborted:
            break
    assert hoarder.transport.aborted


@pytest.mark.parametrize("unsent", [0, 5000], ids=["all is read", "5,000 bytes are not read"])
def test_output_counts(unsent: int) -> None:
    broker = small_broker()
    broker.session("client").transport.unsent = unsent
    broker.advance(1000)
    assert broker.router.memory.output == unsent
