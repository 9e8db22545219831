"""Unsettled deliveries of a receiver that outlive the broker: stored, resumed after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.amqp.outcomes import ACCEPTED, RELEASED, DeliveryState, Modified
from broker.amqp.performatives import RCV_SECOND, SND_SETTLED, Detach, Flow
from broker.amqp.terminus import (
    CONFIGURATION,
    CONNECTION_CLOSE,
    NEVER,
    NOT_DURABLE,
    UNSETTLED_STATE,
    Source,
)
from storage.memory import MemoryStore
from tests.support.broker import Broker
from tests.support.frames import Disposition
from tests.support.resuming import LASTING, STORED, counts, restarted, resting, tags_of
from tests.support.stored_sources import (
    SUBSCRIBED,
    attach,
    filled,
    held,
    holding_stored,
    leases_in,
    put,
)
from tests.support.stores import GatedStore
from tests.support.unsettled_maps import EMPTY, told

pytestmark = pytest.mark.requirement("RCV-08")

ATTACHES = {
    "a map": (STORED, EMPTY, UNSETTLED_STATE),
    "no map": (STORED, None, NOT_DURABLE),
    "less durability": (
        Source(address="q", durable=CONFIGURATION, expiry_policy=CONNECTION_CLOSE, timeout=60),
        EMPTY,
        NOT_DURABLE,
    ),
    "in memory": (LASTING, EMPTY, NOT_DURABLE),
    "no time": (
        Source(address="q", durable=UNSETTLED_STATE, expiry_policy=CONNECTION_CLOSE),
        EMPTY,
        NOT_DURABLE,
    ),
    "never": (
        Source(address="q", durable=UNSETTLED_STATE, expiry_policy=NEVER),
        EMPTY,
        UNSETTLED_STATE,
    ),
}


@pytest.mark.parametrize(("source", "unsettled", "granted"), ATTACHES.values(), ids=ATTACHES.keys())
def test_the_broker_answers_with_the_durability_that_it_keeps(
    source: Source, unsettled: bytes | None, granted: int
) -> None:
    answer = Broker().session().attach_receiver(source=source, unsettled=unsettled)
    assert answer.source is not None
    assert answer.source.durable == granted


@pytest.mark.parametrize(
    "fields",
    [{"snd_settle_mode": SND_SETTLED}, {"name": "n" * 256}],
    ids=["sends settled", "a name that no store can keep"],
)
def test_a_source_that_the_store_cannot_keep_is_not_durable(fields: dict[str, Any]) -> None:
    answer = attach(Broker().session(), {}, **fields)
    assert answer.source is not None
    assert answer.source.durable == NOT_DURABLE


@pytest.mark.requirement("SUB-23")
@pytest.mark.parametrize(
    ("unsettled", "granted"),
    [(None, CONFIGURATION), (EMPTY, UNSETTLED_STATE)],
    ids=["as JMS clients attach", "with a map"],
)
async def test_a_durable_subscriber_pays_for_what_it_asks_for(
    unsettled: bytes | None, granted: int
) -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    answer = client.attach_receiver(source=SUBSCRIBED, credit=5, unsettled=unsettled)
    assert answer.source is not None
    assert answer.source.durable == granted
    put(client.broker, 2, kind="topic")
    client.expect_deliveries(b"0", b"1")
    assert sum(map(len, await held(store))) == (2 if unsettled else 0)


# -- what is stored


async def test_the_deliveries_of_a_round_are_stored_together() -> None:
    store = MemoryStore()
    client = holding_stored(store)
    (numbers,) = await held(store)
    put(client.broker, 1)
    client.expect_deliveries(b"0")
    assert [len(each) for each in await held(store)] == [3, 1]
    assert await leases_in(store) == 1
    client.send(Disposition(first=0, last=1, state=ACCEPTED))
    first, _ = await held(store)
    assert first == numbers, "what is consumed leaves its batch without a write"
    client.send(Disposition(first=2, last=2, state=ACCEPTED))
    assert [len(each) for each in await held(store)] == [1]


@pytest.mark.parametrize("outcome", [RELEASED, Modified(delivery_failed=True)])
async def test_what_returns_to_the_queue_leaves_the_store(outcome: DeliveryState) -> None:
    store = MemoryStore()
    client = holding_stored(store)
    client.flow(handle=0, credit=0, delivery_count=3)
    (before,) = await held(store)
    client.send(Disposition(first=1, last=1, state=outcome))
    assert await held(store) == [[before[0], before[2]]]


async def test_messages_that_are_not_durable_end_with_the_broker() -> None:
    store = MemoryStore()
    client = filled(store, 2, durable=False).session()
    attach(client, {})
    client.expect_deliveries(b"0", b"1")
    assert await held(store) == []
    assert await leases_in(store) == 0
    resting(client)
    assert counts(client) == (0, 2)


@pytest.mark.parametrize("count", [0, 2], ids=["nothing unsettled", "unsettled deliveries"])
async def test_the_end_of_the_link_ends_the_record(count: int) -> None:
    store = MemoryStore()
    client = holding_stored(store, 2)
    if count == 0:
        client.send(Disposition(first=0, last=1, state=ACCEPTED))
    client.send(Detach(handle=0, closed=count > 0))
    assert await leases_in(store) == 0
    assert await held(store) == []
    assert counts(client) == (count, 0)
    assert client.broker.queue().state.observer is None


async def test_a_link_that_asks_for_less_keeps_in_memory_what_the_store_had() -> None:
    store = MemoryStore()
    client = holding_stored(store, 2)
    resting(client)
    assert len(await held(store)) == 1
    attach(client, dict.fromkeys(tags_of(2)), source=LASTING)
    client.expect_deliveries(b"0", b"1")
    assert await leases_in(store) == 0


async def test_a_link_that_asks_for_more_stores_what_was_in_memory() -> None:
    store = MemoryStore()
    client = holding_stored(store, 2, source=LASTING)
    resting(client)
    assert await held(store) == []
    attach(client, dict.fromkeys(tags_of(2)), credit=0)
    assert [len(each) for each in await held(store)] == [2]


async def test_a_stolen_link_leaves_its_record_to_the_other() -> None:
    store = MemoryStore()
    client = holding_stored(store, 2)
    thief = client.broker.session()
    attach(thief, dict.fromkeys(tags_of(2)))
    thief.expect_deliveries(b"0", b"1")
    assert await leases_in(store) == 1
    broker = await restarted(store)
    assert told(attach(broker.session(), dict.fromkeys(tags_of(2)))) == dict.fromkeys(tags_of(2))


async def until(happens: Callable[[], bool]) -> None:
    """Let the journal work until that has happened."""
    for _ in range(100):
        if happens():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not happen")


async def test_the_client_hears_of_nothing_before_its_commit() -> None:
    store = GatedStore()
    broker = Broker(store=store)
    running = asyncio.ensure_future(broker.journal.run(broker.container.run_round))

    async def settled() -> None:
        """Complete the commits that are noted now."""
        while not broker.journal.is_idle():
            store.let_all_through()
            await asyncio.sleep(0)

    put(broker, 2)
    client = broker.session()
    attach(client, {}, rcv_settle_mode=RCV_SECOND, credit=1)
    await settled()
    client.expect_deliveries(b"0")
    commits = len(store.commits)
    client.flow(handle=0, credit=5, delivery_count=1)  # the delivered mark is there by now
    await until(lambda: len(store.commits) > commits)
    client.expect_nothing()
    await settled()
    client.expect_deliveries(b"1")
    assert sum(map(len, await held(store))) == 2
    commits = len(store.commits)
    client.send(Disposition(first=0, last=1, settled=False, state=ACCEPTED))
    await until(lambda: len(store.commits) > commits)
    client.expect_nothing()
    await settled()
    assert client.expect_last(Disposition).settled
    assert await held(store) == []
    broker.journal.close()
    await running


async def test_credit_alone_writes_nothing() -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, {})
    client.flow(handle=0, credit=20, delivery_count=0, echo=True)
    client.expect(Flow)
    assert await leases_in(store) == 0
