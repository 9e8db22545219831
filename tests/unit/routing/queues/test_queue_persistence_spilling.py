"""Records of messages that are not durable but leave memory: names and numbers in the store."""

import pytest

from broker.routing.addresses.address import SUBSCRIPTION_PREFIX
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.queues.queue import Queue
from tests.support.broker import Broker
from tests.support.routing import encoded, new_message


def spilled(broker: Broker, queue: Queue) -> QueueEntry:
    """Put a message into `queue`, spill it to the store, and return its entry."""
    queue.put(new_message(encoded(b"x")), broker.journal.batch)
    backlog = queue.backlogs.by_priority[4]
    assert backlog is not None
    (entry,) = backlog.loaded(-1, 1)
    queue.persistence.spill(entry, broker.journal.batch)
    return entry


def of_a_subscription(broker: Broker) -> Queue:
    policy = broker.router.policy_of("news")
    return Queue(address="news", policy=policy, context=broker.router.context, is_subscription=True)


def test_it_is_noted_as_volatile_under_a_number() -> None:
    broker = Broker()
    broker.fill()
    entry = spilled(broker, broker.queue())
    batch = broker.journal.batch
    (stored,) = batch.appended
    assert stored is not None
    assert (stored.volatile, stored.durable, stored.queue) == (True, False, "q")
    assert stored.number == entry.stored_number != NOT_STORED
    assert batch.is_urgent
    assert broker.stats.spilled == 1


def test_the_queue_of_a_volatile_subscription_has_a_name_from_then_on() -> None:
    broker = Broker()
    queue = of_a_subscription(broker)
    assert queue.persistence.stored_as == ""
    spilled(broker, queue)
    name = queue.persistence.stored_as
    assert name.startswith(SUBSCRIPTION_PREFIX)
    spilled(broker, queue)
    assert queue.persistence.stored_as == name
    assert not queue.persistence.is_stored


@pytest.mark.parametrize("has_spilled", [False, True])
def test_the_store_forgets_what_it_knows_of_a_queue_that_has_ended(has_spilled: bool) -> None:
    broker = Broker()
    queue = of_a_subscription(broker)
    if has_spilled:
        spilled(broker, queue)
    queue.persistence.close(broker.journal.batch)
    removed = broker.journal.batch.subscriptions_removed
    assert removed == ([queue.persistence.stored_as] if has_spilled else [])


def test_an_ordinary_queue_is_forgotten_as_a_node() -> None:
    broker = Broker()
    broker.fill()
    spilled(broker, broker.queue())
    broker.queue().persistence.close(broker.journal.batch)
    assert broker.journal.batch.subscriptions_removed == []
