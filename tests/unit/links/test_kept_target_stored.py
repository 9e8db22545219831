"""Outcomes that outlive the broker: stored with their messages, and resumed after a restart."""

from __future__ import annotations

import pytest

from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, SENDER, Attach, Detach
from broker.amqp.terminus import CONNECTION_CLOSE, NOT_DURABLE, UNSETTLED_STATE, Target
from storage.memory import MemoryStore
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, message
from tests.support.resuming import restarted
from tests.support.unsettled_maps import EMPTY, told

LASTING = Target(address="q", expiry_policy=CONNECTION_CLOSE, timeout=60, durable=UNSETTLED_STATE)

PASSING = Target(address="q", expiry_policy=CONNECTION_CLOSE, timeout=60)


def attach(client: Client, unsettled: bytes | None, *, target: Target = LASTING) -> Attach:
    return client.attach_sender(target=target, rcv_settle_mode=RCV_SECOND, unsettled=unsettled)


def send(client: Client, number: int, tag: bytes, *, durable: bool = True) -> None:
    client.transfer(number, tag=tag, payload=message(tag, durable=durable))
    assert not client.expect_last(Disposition).settled


def resting(client: Client) -> None:
    client.send(Detach(handle=0))
    assert not client.expect_last(Detach).closed


async def tags_in(store: MemoryStore) -> list[bytes]:
    return [each.tag for each in await store.unsettled()]


@pytest.mark.parametrize(
    ("durable", "timeout", "unsettled", "granted"),
    [
        (UNSETTLED_STATE, 60, EMPTY, UNSETTLED_STATE),
        (UNSETTLED_STATE, 60, None, NOT_DURABLE),
        (UNSETTLED_STATE, 0, EMPTY, NOT_DURABLE),
        (NOT_DURABLE, 60, EMPTY, NOT_DURABLE),
        (1, 60, EMPTY, NOT_DURABLE),
    ],
)
def test_the_broker_answers_with_the_durability_that_it_keeps(
    durable: int, timeout: int, unsettled: bytes | None, granted: int
) -> None:
    target = Target(address="q", expiry_policy=CONNECTION_CLOSE, timeout=timeout, durable=durable)
    answer = attach(Broker().session(), unsettled, target=target)
    assert isinstance(answer.target, Target)
    assert answer.target.durable == granted


async def test_an_outcome_is_stored_with_its_message_until_it_is_settled() -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, EMPTY)
    send(client, 0, b"one")
    send(client, 1, b"two")
    send(client, 2, b"lost", durable=False)
    assert await tags_in(store) == [b"one", b"two"]
    client.send(Disposition(role=SENDER, first=0))
    assert await tags_in(store) == [b"two"]
    client.send(Detach(handle=0, closed=True))
    assert await tags_in(store) == []


async def test_without_a_map_nothing_is_stored() -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, None)
    send(client, 0, b"one")
    assert await tags_in(store) == []


@pytest.mark.parametrize("stops", [True, False], ids=["stopped", "killed"])
async def test_a_delivery_is_resumed_after_a_restart(stops: bool) -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, EMPTY)
    send(client, 0, b"one")
    client.hang_up()
    if stops:
        client.broker.container.end_termini()
    broker = await restarted(store)
    (terminus,) = broker.router.termini.all()
    assert (terminus.key, terminus.address, terminus.count()) == (
        ("client", "sender", True),
        "q",
        1,
    )
    again = broker.session()
    assert told(attach(again, unsettled_map({b"one": None}))) == {b"one": "accepted"}
    again.transfer(0, tag=b"one", resume=True)
    assert again.expect_last(Disposition).first == 0
    assert int(broker.queue().backlogs.waiting) == 1
    again.send(Disposition(role=SENDER, first=0))
    assert await tags_in(store) == []


async def test_a_restart_begins_the_time_anew_and_its_end_empties_the_store() -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, EMPTY)
    send(client, 0, b"one")
    broker = await restarted(store)
    broker.advance(59_999)
    assert await tags_in(store) == [b"one"]
    broker.advance(1)
    broker.container.run_round()
    assert await tags_in(store) == []


@pytest.mark.parametrize("unsettled", [None, EMPTY], ids=["no map", "an empty map"])
async def test_what_the_sender_has_settled_leaves_the_store(unsettled: bytes | None) -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, EMPTY)
    send(client, 0, b"one")
    resting(client)
    attach(client, unsettled)
    assert await tags_in(store) == []


async def test_a_link_that_keeps_nothing_empties_the_store() -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, EMPTY)
    send(client, 0, b"one")
    resting(client)
    client.attach_sender(target=LASTING, rcv_settle_mode=RCV_FIRST, unsettled=EMPTY)
    assert await tags_in(store) == []
    resting(client)
    assert not attach(client, unsettled_map({b"one": None})).has_unsettled


async def test_a_target_that_becomes_durable_stores_what_it_has_kept() -> None:
    store = MemoryStore()
    client = Broker(store=store).session()
    attach(client, EMPTY, target=PASSING)
    send(client, 0, b"one")
    send(client, 1, b"two")
    resting(client)
    assert await tags_in(store) == []
    attach(client, unsettled_map({b"one": None}))
    assert await tags_in(store) == [b"one"]
    broker = await restarted(store)
    answer = attach(broker.session(), unsettled_map({b"one": None}))
    assert told(answer) == {b"one": "accepted"}


async def test_a_name_that_no_store_can_keep_is_answered_as_not_durable() -> None:
    client = Broker().session()
    answer = client.attach_sender(
        target=LASTING, rcv_settle_mode=RCV_SECOND, unsettled=EMPTY, name="n" * 256
    )
    assert isinstance(answer.target, Target)
    assert answer.target.durable == NOT_DURABLE
