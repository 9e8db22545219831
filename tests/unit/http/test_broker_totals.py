"""Sums over nodes, connections and links for one scrape."""

from __future__ import annotations

import pytest

from broker.http.broker_totals import BrokerTotals
from broker.http.stretches import Stretches
from broker.routing.batches.lease import Wanted
from tests.support.broker import Broker
from tests.support.frames import attach_sender
from tests.support.leases import HOUR_MS, RecordingAcquirer
from tests.support.metrics import page_of
from tests.support.subscriptions import subscribe
from tests.support.transactions import Controller
from tests.unit.links.test_user_limits_rates import Sender, limited, run

pytestmark = pytest.mark.requirement("OPS-04")


async def totals_of(broker: Broker) -> BrokerTotals:
    totals = BrokerTotals(broker.container)
    await totals.sum_up(Stretches(nodes=2))
    return totals


async def test_subscriptions_and_topics_by_their_kinds() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "", "a", address="news")
    subscribe(client, "durable", "b", address="news", handle=1)
    sender = broker.session("sender")
    sender.attach(attach_sender("news", kind="topic"))
    page = await page_of(broker)
    assert page.value("topics", kind="named") == 1
    assert page.value("subscriptions", kind="unshared", durable="false") == 1
    assert page.value("subscriptions", kind="unshared", durable="true") == 1
    assert page.value("subscriptions", kind="shared", durable="true") == 0
    assert page.value("links", role="sender") == 1


async def test_temporary_nodes_are_counted_apart() -> None:
    broker = Broker()
    broker.fill("q")
    broker.fill("t", kind="topic")
    for kind in ("queue", "queue", "topic"):
        broker.router.create_temporary(kind, 1)
    totals = await totals_of(broker)
    assert (totals.queues, totals.temporary_queues) == (3, 2)
    assert (totals.topics, totals.temporary_topics) == (2, 1)


async def test_sessions_links_and_transactions_of_all_connections() -> None:
    broker = Broker()
    controllers = [Controller(broker, f"client-{number}") for number in range(3)]
    for controller in (*controllers, controllers[0]):
        controller.declare()
    for controller in controllers:
        controller.client.begin(1)
    totals = await totals_of(broker)
    assert totals.connections == {"amqp": 3}
    assert (totals.sessions, totals.transactions) == (6, 4)
    assert (totals.senders, totals.receivers) == (3, 0)


async def test_links_of_a_client_that_does_not_read_are_stalled() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver("a", name="a")
    client.attach_receiver("b", name="b", handle=1)
    broker.session("other").attach_receiver("a")
    assert (await totals_of(broker)).stalled_links == 0
    client.peer.output_blocked()
    assert (await totals_of(broker)).stalled_links == 2
    client.peer.output_drained()
    assert (await totals_of(broker)).stalled_links == 0


async def test_senders_that_wait_for_the_rates_of_their_user_are_held() -> None:
    broker = limited(messages_per_s=10)
    held = [Sender(broker, f"c{number}") for number in range(3)]
    run(broker, *held, ms=2000)
    assert [each.credit for each in held] == [0, 0, 0]
    assert (await totals_of(broker)).held_links() == 3


async def test_leased_messages_are_not_counted_as_unsettled() -> None:
    broker = Broker()
    broker.fill("q", 5)
    router, batch = broker.router, broker.journal.batch
    lease = router.leases.open("l", broker.queue(), selector=None, ttl_ms=HOUR_MS, batch=batch)
    wanted, acquirer = Wanted(max_messages=3), RecordingAcquirer()
    router.leases.acquire("l", lease.fencing_token, 1, wanted=wanted, acquirer=acquirer)
    broker.container.run_round()
    broker.session().attach_receiver(credit=1)
    page = await page_of(broker)
    states = ("ready", "unsettled", "leased")
    assert [page.value("messages", state=state) for state in states] == [1, 1, 3]
    assert page.value("leases") == 1
