"""Leases, durable subscribers and suspended links beside each other on one queue."""

from __future__ import annotations

import pytest

from broker.amqp.terminus import NEVER, UNSETTLED_STATE, Source
from broker.routing.batches.lease import Wanted
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker, Client
from tests.support.endings import hang_up
from tests.support.frames import Disposition, Transfer
from tests.support.leases import HOUR_MS, RecordingAcquirer
from tests.support.resuming import LASTING, come_back, counts, resting, tags_of
from tests.support.routing import bodies
from tests.support.unsettled_maps import EMPTY

pytestmark = pytest.mark.requirement("RCV-08")


def test_a_lease_takes_what_no_suspended_link_holds() -> None:
    broker = Broker()
    broker.fill(count=3)
    client = broker.session()
    client.attach_receiver(source=LASTING, credit=2)
    client.expect_deliveries(b"0", b"1")
    resting(client)
    batch = broker.journal.batch
    leases = broker.router.leases
    lease = leases.open("l", broker.queue(), ttl_ms=HOUR_MS, batch=batch)
    acquirer = RecordingAcquirer()
    leases.acquire("l", lease.fencing_token, 1, wanted=Wanted(), acquirer=acquirer)
    broker.container.run_round()
    (taken,) = acquirer.batches
    assert taken is not None
    assert [each[-1:] for each in bodies(taken.entries)] == [b"2"]
    come_back(client, dict.fromkeys(tags_of(2)))
    first, last = client.expect_deliveries(b"0", b"1")
    client.send(Disposition(first=first.delivery_id or 0, last=last.delivery_id))
    leases.settle("l", lease.fencing_token, 1, batch=batch)
    assert counts(client) == (0, 0)


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
