"""Unsettled deliveries of a receiver after a restart: resumed, given back, counted and ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from broker.amqp.errors import UNAUTHORIZED_ACCESS
from broker.amqp.outcomes import ACCEPTED, Modified, Rejected
from broker.amqp.performatives import RCV_SECOND
from broker.amqp.terminus import CONNECTION_CLOSE, UNSETTLED_STATE, Source
from broker.amqp.types import UInt
from broker.management.suspended_links import RECEIVER, record_of
from storage.memory import MemoryStore
from tests.support.broker import Broker, Client, log_in
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    body_of,
    header_of,
    message,
)
from tests.support.resuming import PART, counts, restarted, tags_of
from tests.support.routing import encoded
from tests.support.stored_sources import (
    SUBSCRIBED,
    attach,
    bodies_of,
    filled,
    holding_stored,
    leases_in,
    put,
)
from tests.support.transactions import COORDINATOR_HANDLE, Controller, discharge
from tests.support.unsettled_maps import told

pytestmark = pytest.mark.requirement("RCV-08")

STAYS = pytest.mark.parametrize("stops", [True, False], ids=["stopped", "killed"])

DURABLE = message(durable=True)[: -len(message())]
"""The header of a durable message."""


async def after_stop_or_kill(client: Client, store: MemoryStore, *, stops: bool) -> Broker:
    """Return the next broker of the store, once the one of `client` has been stopped or killed."""
    if stops:
        client.hang_up()
        client.broker.container.end_termini()
    return await restarted(store)


def count_of(transfer: Transfer) -> int:
    """Return the delivery-count in the header of a message."""
    count = header_of(transfer.payload)[4]
    return count.value if isinstance(count, UInt) else 0


@STAYS
async def test_deliveries_are_resumed_after_a_restart(stops: bool) -> None:
    store = MemoryStore()
    broker = await after_stop_or_kill(holding_stored(store), store, stops=stops)
    (terminus,) = broker.router.termini.all()
    assert (terminus.key, terminus.address, terminus.count()) == (
        ("client", "receiver", False),
        "q",
        3,
    )
    client = broker.session()
    assert counts(client) == (0, 3)
    one, two, three = tags_of(3)
    answer = attach(client, {one: None, two: ACCEPTED, three: PART}, rcv_settle_mode=RCV_SECOND)
    assert told(answer) == {one: None, two: None, three: None}
    resumed, settled, aborted, anew = [client.expect(Transfer) for _ in range(4)]
    assert (resumed.tag, resumed.resume, body_of(resumed.payload)) == (one, True, b"0")
    assert (settled.tag, settled.resume, settled.settled) == (two, True, True)
    assert (aborted.tag, aborted.resume, aborted.aborted) == (three, True, True)
    assert (anew.tag, anew.resume, body_of(anew.payload)) == (three, False, b"2")
    first = resumed.delivery_id or 0
    client.send(Disposition(first=first, settled=False, state=ACCEPTED))
    assert client.expect_last(Disposition).settled
    assert counts(client) == (0, 1)
    last = await restarted(store)
    assert counts(last.session()) == (0, 1)


@STAYS
async def test_what_the_map_lacks_returns_in_its_order(stops: bool) -> None:
    store = MemoryStore()
    broker = await after_stop_or_kill(holding_stored(store), store, stops=stops)
    client = broker.session()
    attach(client, {tags_of(3)[1]: None})
    assert bodies_of(client) == [b"1", b"0", b"2"]


async def test_an_incomplete_map_proves_nothing_after_a_restart() -> None:
    store = MemoryStore()
    holding_stored(store)
    broker = await restarted(store)
    client = broker.session()
    attach(client, {tags_of(3)[1]: None}, incomplete=True)
    assert bodies_of(client) == [b"1"]
    assert counts(client) == (0, 3)


async def test_a_client_without_a_map_gets_everything_anew() -> None:
    store = MemoryStore()
    holding_stored(store)
    broker = await restarted(store)
    client = broker.session()
    assert not attach(client, None).has_unsettled
    assert bodies_of(client) == [b"0", b"1", b"2"]
    assert await leases_in(store) == 0


@pytest.mark.parametrize(
    ("default", "count"),
    [(None, 0), (Modified(delivery_failed=True), 1)],
    ids=["released", "failed"],
)
async def test_the_time_begins_anew_and_its_end_returns_all_in_order(
    default: Modified | None, count: int
) -> None:
    store = MemoryStore()
    source = Source(
        address="q",
        durable=UNSETTLED_STATE,
        expiry_policy=CONNECTION_CLOSE,
        timeout=60,
        default_outcome=default,
    )
    holding_stored(store, source=source)
    broker = await restarted(store)
    broker.advance(59_999)
    other = broker.session("other")
    other.attach_receiver(credit=5)
    other.expect_nothing()
    broker.advance(1)
    broker.container.run_round()
    assert broker.router.termini.count() == 0
    assert await leases_in(store) == 0
    deliveries = other.expect_deliveries(b"0", b"1", b"2")
    assert [count_of(each) for each in deliveries] == [count] * 3
    assert all(header_of(each.payload)[3] is not True for each in deliveries), "no first acquirer"


async def test_a_message_keeps_its_delivery_count_over_a_restart() -> None:
    store = MemoryStore()
    client = holding_stored(store, 1)
    client.send(Disposition(first=0, last=0, state=Modified(delivery_failed=True)))
    (again,) = client.expect_deliveries(b"0")
    assert count_of(again) == 1
    broker = await restarted(store)
    back = broker.session()
    attach(back, {again.tag or b"": None})
    (resumed,) = back.expect_deliveries(b"0")
    assert (resumed.resume, count_of(resumed)) == (True, 1)


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "open"])
async def test_an_outcome_within_a_transaction_counts_once_that_is_committed(commits: bool) -> None:
    store = MemoryStore()
    client = holding_stored(store, 2)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, ACCEPTED, settled=False)
    if commits:
        controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)
    broker = await restarted(store)
    one, two = tags_of(2)
    listed = told(attach(broker.session(), {one: None, two: None}))
    assert listed == ({two: None} if commits else {one: None, two: None})


async def test_messages_that_a_transaction_acquires_return_with_the_restart() -> None:
    store = MemoryStore()
    client = filled(store, 2).session()
    attach(client, {}, credit=0)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    client.flow(handle=0, credit=2, delivery_count=0, properties={"txn-id": txn_id})
    assert bodies_of(client) == [b"0", b"1"]
    broker = await restarted(store)
    assert counts(broker.session()) == (2, 0)


async def test_new_messages_come_behind_those_that_are_resumed() -> None:
    store = MemoryStore()
    holding_stored(store, 2)
    broker = await restarted(store)
    put(broker, 1)
    client = broker.session()
    attach(client, dict.fromkeys(tags_of(2)))
    assert bodies_of(client) == [b"0", b"1", b"0"]


async def test_a_group_goes_on_with_the_link_that_resumes() -> None:
    store = MemoryStore()
    broker = Broker(store=store)
    sender = broker.session("filler")
    sender.attach_sender("q")
    for number in range(3):
        payload = DURABLE + encoded(b"%d" % number, group="g")
        sender.transfer(number, settled=True, payload=payload)
    client = broker.session()
    attach(client, {}, credit=2)
    client.expect_deliveries(b"0", b"1")
    again = await restarted(store)
    other = again.session("other")
    other.attach_receiver(credit=5)
    other.expect_nothing()
    back = again.session()
    attach(back, dict.fromkeys(tags_of(2)))
    assert bodies_of(back) == [b"0", b"1", b"2"]
    other.expect_nothing()


# -- limits and operators


async def test_restored_termini_count_and_can_be_ended() -> None:
    store = MemoryStore()
    holding_stored(store)
    broker = await restarted(store)
    termini = broker.router.termini
    (terminus,) = termini.all()
    assert termini.count_of(terminus.user) == 1
    assert broker.router.memory.termini > 0
    record = record_of(terminus, int(broker.clock.now_ms()))
    assert (record.name, record.role, record.unsettled) == ("receiver", RECEIVER, 3)
    assert record.remaining_ms == 60_000
    termini.end(terminus, broker.journal.batch)
    broker.container.run_round()
    assert await leases_in(store) == 0
    assert counts(broker.session()) == (3, 0)


async def test_those_beyond_the_room_end_at_the_start() -> None:
    store = MemoryStore()
    broker = filled(store, 5)
    for name in ("one", "two", "three", "four", "five"):
        client = broker.session()
        attach(client, {}, credit=1, name=name)
        client.expect(Transfer)
    again = await restarted(store, memory_max=8 * 6000)
    assert again.router.termini.dropped > 0
    assert again.router.termini.count() + counts(again.session())[0] == 5
    assert await leases_in(store) == again.router.termini.count()
    other = again.session("other")
    other.attach_receiver(credit=5)
    found = bodies_of(other)
    assert found == sorted(found)
    assert len(found) == counts(again.session())[1] - again.router.termini.count()


async def test_a_queue_that_is_deleted_takes_the_record_along() -> None:
    store = MemoryStore()
    client = holding_stored(store)
    client.broker.router.delete(client.broker.queue(), client.broker.journal.batch)
    client.broker.container.run_round()
    assert await leases_in(store) == 0
    broker = await restarted(store)
    assert broker.router.termini.count() == 0


@pytest.mark.attack("Z11")
async def test_another_user_does_not_end_the_terminus_after_a_restart() -> None:
    store = MemoryStore()
    client = filled(store, 3).session()
    log_in(client, "ada")
    attach(client, {})
    client.expect_deliveries(b"0", b"1", b"2")
    broker = await restarted(store)
    bob = broker.session()
    log_in(bob, "bob")
    bob.send(attach_receiver())
    bob.expect_refusal(UNAUTHORIZED_ACCESS)
    bob.hang_up()
    ada = broker.session()
    log_in(ada, "ada")
    tags = dict.fromkeys(tags_of(3))
    assert told(attach(ada, tags)) == tags


async def test_a_durable_subscriber_with_a_map_resumes_after_any_time() -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, {}, source=SUBSCRIBED)
    put(client.broker, 2, kind="topic")
    tags = [each.tag or b"" for each in client.expect_deliveries(b"0", b"1")]
    broker = await restarted(store)
    broker.advance(10_000_000)
    again = broker.session()
    assert told(attach(again, dict.fromkeys(tags), source=SUBSCRIBED)) == dict.fromkeys(tags)
    again.expect_deliveries(b"0", b"1")


TIMED: Final = Source(
    address="q",
    durable=UNSETTLED_STATE,
    expiry_policy=CONNECTION_CLOSE,
    timeout=60,
    capabilities=["topic"],
    default_outcome=Rejected(),
)


async def runs_out(client: Client, store: MemoryStore) -> Broker:
    del store
    client.hang_up()
    client.broker.advance(60_000)
    return client.broker


async def runs_out_after_a_restart(client: Client, store: MemoryStore) -> Broker:
    del client
    broker = await restarted(store)
    broker.advance(60_000)
    return broker


async def is_unsubscribed(client: Client, store: MemoryStore) -> Broker:
    del store
    client.hang_up()
    broker = client.broker
    (subscription,) = broker.router.subscriptions.named.values()
    broker.router.subscriptions.end(subscription, broker.journal.batch)
    return broker


@pytest.mark.parametrize("ends", [runs_out, runs_out_after_a_restart, is_unsubscribed])
async def test_the_default_outcome_counts_when_the_subscription_ends(
    ends: Callable[[Client, MemoryStore], Awaitable[Broker]],
) -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, {}, source=TIMED)
    put(client.broker, 1, kind="topic")
    client.expect_deliveries(b"0")
    broker = await ends(client, store)
    assert not broker.router.subscriptions.named
    reader = broker.session()
    reader.attach_receiver("DLQ", credit=1)
    reader.expect_deliveries(b"0")
