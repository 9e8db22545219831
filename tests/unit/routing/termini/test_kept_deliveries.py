"""Deliveries without a link: their states, their memory, and the transactions they are in."""

from broker.amqp.outcomes import ACCEPTED
from broker.routing.credit.memory import ENTRY_BYTES
from broker.routing.entries.participants import Label
from broker.routing.entries.redelivery import Disposal
from broker.routing.termini.kept_deliveries import AbsentConsumer, KeptDelivery
from tests.support.resuming import counts, holding, resting, tags_of


def test_an_absent_consumer_gets_nothing() -> None:
    label = Label("client", "link", "1/0")
    absent = AbsentConsumer(7, 2, label)
    assert (absent.number, absent.failures, absent.label()) == (7, 2, label)
    assert not absent.has_room()
    assert not absent.has_credit()


def test_entries_are_held_by_an_absent_consumer_of_the_same_number() -> None:
    client = holding(2)
    (attached,) = client.broker.queue().consumers.attached
    client.hang_up()
    deliveries = client.broker.router.termini.all()[0].deliveries
    assert deliveries is not None
    for delivery in deliveries.all():
        entry = delivery.entry
        assert entry is not None
        assert isinstance(entry.consumer, AbsentConsumer)
        assert entry.consumer.number == attached.number
        assert entry.consumer.label().link == "receiver"
        assert entry.sent_to is None


def test_deliveries_count_what_they_take() -> None:
    client = holding(2)
    resting(client)
    terminus = client.broker.router.termini.all()[0]
    deliveries = terminus.deliveries
    assert deliveries is not None
    one, two = deliveries.all()
    assert one.entry is not None
    size = ENTRY_BYTES + len(one.entry.message.encoded)
    assert (deliveries.count(), deliveries.bytes) == (2, 2 * size)
    batch = client.broker.journal.batch
    deliveries.give_up_one(one, Disposal.RELEASE, batch, cause=terminus.cause)
    assert (deliveries.bytes, counts(client)) == (size, (1, 1))
    entry = two.entry
    assert entry is not None
    deliveries.end(two, ACCEPTED)
    entry.queue.accept(entry, batch)
    assert (deliveries.bytes, deliveries.states()) == (0, [(tags_of(2)[1], ACCEPTED)])


def test_a_delivery_begins_without_an_outcome() -> None:
    client = holding(1)
    resting(client)
    deliveries = client.broker.router.termini.all()[0].deliveries
    assert deliveries is not None
    (delivery,) = deliveries.all()
    assert isinstance(delivery, KeptDelivery)
    assert (delivery.outcome, delivery.within, delivery.wanted) == (None, None, None)
