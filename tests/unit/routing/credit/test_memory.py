"""The bytes that queued messages count for in the memory budget, from arrival to end."""

from collections.abc import Callable
from typing import Final

import pytest

from broker.amqp.outcomes import ACCEPTED, RELEASED
from broker.amqp.performatives import RECEIVER
from broker.message import Message
from broker.routing.credit.memory import ENTRY_BYTES, MemoryBudget
from broker.routing.queues.node import TOPIC
from tests.support.broker import Broker
from tests.support.frames import Disposition, attach_receiver, attach_sender, message

BODY = bytes(1000)


@pytest.mark.parametrize("durable", [False, True], ids=["not durable", "durable"])
def test_a_message_counts_while_it_waits_and_while_it_is_held(durable: bool) -> None:
    broker = Broker()
    memory = broker.router.memory
    sender = broker.session("sender")
    sender.attach_sender()
    sender.transfer(0, payload=message(BODY, durable=durable))
    kept = ENTRY_BYTES + len(message(BODY))
    assert (memory.volatile, memory.durable) == ((0, kept) if durable else (kept, 0))
    assert memory.held == 0
    receiver = broker.session("receiver")
    receiver.attach_receiver(credit=1)
    assert (memory.total(), memory.held) == (kept, kept)
    receiver.send(Disposition(role=RECEIVER, first=0, settled=True, state=ACCEPTED))
    assert (memory.total(), memory.held) == (0, 0)


def test_a_message_that_returns_counts_as_waiting_again() -> None:
    broker = Broker()
    memory = broker.router.memory
    broker.fill(count=1)
    waiting = memory.total()
    receiver = broker.session("receiver")
    receiver.attach_receiver(credit=1)
    receiver.send(Disposition(role=RECEIVER, first=0, settled=True, state=RELEASED))
    receiver.hang_up()
    assert (memory.total(), memory.held) == (waiting, 0)


def test_a_message_of_a_topic_counts_once_and_its_entries_each() -> None:
    broker = Broker()
    memory = broker.router.memory
    subscribers = [broker.session(f"subscriber-{number}") for number in range(3)]
    for subscriber in subscribers:
        subscriber.attach(attach_receiver("news", kind=TOPIC))
    sender = broker.session("sender")
    sender.attach(attach_sender("news", kind=TOPIC))
    sender.transfer(0, payload=message(BODY))
    sections = len(message(BODY))
    assert memory.volatile == 3 * ENTRY_BYTES + sections
    subscribers[0].hang_up()
    subscribers[1].hang_up()
    assert memory.volatile == ENTRY_BYTES + sections
    subscribers[2].hang_up()
    assert memory.volatile == 0


def delete_queue(broker: Broker) -> None:
    broker.router.delete(broker.queue(), broker.journal.batch)


def let_expire(broker: Broker) -> None:
    broker.advance(60_000)


ENDS: Final[dict[str, Callable[[Broker], None]]] = {
    "its queue is deleted": delete_queue,
    "its time to live is over": let_expire,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_message_that_goes_otherwise_counts_no_more(end: Callable[[Broker], None]) -> None:
    broker = Broker()
    sender = broker.session("sender")
    sender.attach_sender()
    sender.transfer(0, payload=message(BODY, ttl=1000))
    assert broker.router.memory.total() > 0
    end(broker)
    broker.container.run_round()
    assert broker.router.memory.total() == 0


def test_annotations_that_an_outcome_adds_count_from_then_on() -> None:
    memory = MemoryBudget()
    old, new = (
        Message(
            encoded=bytes(size), durable=False, priority=4, ttl_ms=-1, arrived_ms=0, expires_at_ms=0
        )
        for size in (100, 300)
    )
    memory.enters(old)
    memory.delivered(len(old.encoded))
    memory.replaced(old, new)
    assert (memory.total(), memory.held) == (ENTRY_BYTES + 300, ENTRY_BYTES + 300)
    memory.settled(len(new.encoded))
    memory.leaves(new)
    assert (memory.total(), memory.held) == (0, 0)


def test_a_kind_has_a_quarter_at_most() -> None:
    assert MemoryBudget(1024).quarter() == 256
