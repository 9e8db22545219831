"""Leases, durable subscribers and suspended links beside each other on one queue."""

from __future__ import annotations

import pytest

from broker.amqp.terminus import NEVER, UNSETTLED_STATE, Source
from broker.routing.batches.lease import BatchLease, Wanted
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker, Client
from tests.support.endings import hang_up
from tests.support.frames import Disposition, Transfer
from tests.support.leases import HOUR_MS, RecordingAcquirer
from tests.support.resuming import LASTING, come_back, counts, resting, tags_of
from tests.support.routing import bodies
from tests.support.unsettled_maps import EMPTY

pytestmark = pytest.mark.requirement("RCV-08")


def suspended_of_three() -> Client:
    """Return a client that holds two of three messages unsettled, and has detached its link."""
    broker = Broker()
    broker.fill(count=3)
    client = broker.session()
    client.attach_receiver(source=LASTING, credit=2)
    client.expect_deliveries(b"0", b"1")
    resting(client)
    return client


def leased(broker: Broker, number: int = 1) -> tuple[BatchLease, list[bytes]]:
    """Return the lease of the queue, and the last byte of each message of its batch `number`."""
    leases, batch = broker.router.leases, broker.journal.batch
    lease = leases.open("l", broker.queue(), ttl_ms=HOUR_MS, batch=batch)
    acquirer = RecordingAcquirer()
    leases.acquire("l", lease.fencing_token, number, wanted=Wanted(), acquirer=acquirer)
    broker.container.run_round()
    (taken,) = acquirer.batches
    assert taken is not None
    return lease, [each[-1:] for each in bodies(taken.entries)]


def test_a_lease_takes_what_no_suspended_link_holds() -> None:
    client = suspended_of_three()
    leases, batch = client.broker.router.leases, client.broker.journal.batch
    lease, taken = leased(client.broker)
    assert taken == [b"2"]
    come_back(client, dict.fromkeys(tags_of(2)))
    first, last = client.expect_deliveries(b"0", b"1")
    client.send(Disposition(first=first.delivery_id or 0, last=last.delivery_id))
    leases.settle("l", lease.fencing_token, 1, batch=batch)
    assert counts(client) == (0, 0)


def test_what_a_lease_gives_back_comes_anew_to_the_link_that_resumes() -> None:
    client = suspended_of_three()
    leased(client.broker)
    come_back(client, dict.fromkeys(tags_of(2)))
    client.expect_deliveries(b"0", b"1")
    client.broker.router.leases.release("l", client.broker.journal.batch)
    client.broker.container.run_round()
    (anew,) = client.expect_deliveries(b"2")
    assert not anew.resume
    assert counts(client) == (0, 3)


def test_a_lease_takes_in_order_what_a_suspended_link_has_given_up() -> None:
    client = suspended_of_three()
    client.hang_up()
    client.broker.advance(60_000)
    _, taken = leased(client.broker)
    assert taken == [b"0", b"1", b"2"]
    other = client.broker.session()
    assert not come_back(other, dict.fromkeys(tags_of(2))).has_unsettled
    other.expect_nothing()
    assert counts(other) == (0, 3)


def subscriber(broker: Broker, unsettled: bytes | None, *, credit: int = 5) -> Client:
    """Return a client that attaches as JMS's durable subscribers do, perhaps with a map."""
    client = broker.session("subscriber")
    attach_again(client, unsettled, credit=credit)
    return client


def attach_again(client: Client, unsettled: bytes | None, *, credit: int = 5) -> bytes | None:
    source = Source(
        address="t", durable=UNSETTLED_STATE, expiry_policy=NEVER, capabilities=["topic"]
    )
    answer = client.attach_receiver(source=source, credit=credit, unsettled=unsettled)
    return answer.unsettled


@pytest.mark.requirement("SUB-21")
def test_a_durable_subscriber_of_jms_gets_everything_back_in_order() -> None:
    broker = Broker()
    client = subscriber(broker, None)
    broker.fill("t", 3, kind="topic")
    client.expect_deliveries(b"0", b"1", b"2")
    hang_up(client)
    (subscription,) = broker.router.subscriptions.named.values()
    assert (int(subscription.queue.backlogs.waiting), broker.router.termini.count()) == (3, 0)
    again = broker.session("subscriber")
    assert attach_again(again, None) is None
    again.expect_deliveries(b"0", b"1", b"2")


def test_a_durable_subscriber_that_sends_a_map_resumes() -> None:
    broker = Broker()
    client = subscriber(broker, EMPTY)
    broker.fill("t", 2, kind="topic")
    deliveries = client.expect_deliveries(b"0", b"1")
    hang_up(client)
    broker.advance(1_000_000)
    (subscription,) = broker.router.subscriptions.named.values()
    assert (int(subscription.queue.state.acquired), broker.router.termini.count()) == (2, 1)
    again = broker.session("subscriber")
    states = dict.fromkeys(each.tag or b"" for each in deliveries)
    attach_again(again, unsettled_map(states))
    frames = [each for each in again.bodies() if isinstance(each, Transfer)]
    assert [each.resume for each in frames] == [True, True]


def test_the_end_of_a_subscription_ends_its_suspended_link() -> None:
    broker = Broker()
    client = subscriber(broker, EMPTY)
    broker.fill("t", 2, kind="topic")
    client.expect_deliveries(b"0", b"1")
    hang_up(client)
    (subscription,) = broker.router.subscriptions.named.values()
    broker.router.subscriptions.end(subscription, broker.journal.batch)
    assert (broker.router.termini.count(), broker.router.memory.held) == (0, 0)
