"""Duplicates of a message, as their sender sees them: on a link, by the relay, in a transaction."""

import asyncio

import pytest

from broker.amqp.outcomes import Accepted
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, message
from tests.support.management import Manager
from tests.support.stores import GatedStore
from tests.support.transactions import Controller

DETECTING = AddressPolicy(duplicate_window=100)


def outcomes(client: Client) -> list[int]:
    """Return the ids of the deliveries that were accepted since the last call."""
    numbers: list[int] = []
    for body in client.bodies():
        assert isinstance(body, Disposition)
        assert isinstance(body.state, Accepted)
        last = body.first if body.last is None else body.last
        numbers += range(body.first, last + 1)
    return numbers


def test_a_repeat_is_accepted_and_not_delivered_again() -> None:
    broker = Broker(policy=DETECTING)
    client = broker.session()
    client.attach_sender()
    for number, each in enumerate(["a", "b", "a"]):
        client.transfer(number, payload=message(message_id=each))
    assert outcomes(client) == [0, 1, 2]
    assert broker.queue().backlogs.waiting == 2
    assert broker.stats.duplicates == 1


def test_the_relay_finds_the_repeats_of_other_links() -> None:
    broker = Broker(policy=DETECTING)
    client = broker.session()
    client.attach_sender()
    client.attach_sender(None, name="relay", handle=1)
    client.transfer(0, payload=message(message_id="a"))
    client.transfer(1, handle=1, payload=message(message_id="a", to="q"))
    assert outcomes(client) == [0, 1]
    assert broker.queue().backlogs.waiting == 1


def test_a_repeat_that_comes_settled_is_dropped_in_silence() -> None:
    broker = Broker(policy=DETECTING)
    client = broker.session()
    client.attach_sender()
    for number in range(2):
        client.transfer(number, settled=True, payload=message(message_id="a"))
    client.expect_nothing()
    assert broker.queue().backlogs.waiting == 1


def test_a_detached_sender_comes_back_and_is_known() -> None:
    broker = Broker(policy=DETECTING)
    first = broker.session()
    first.attach_sender()
    first.transfer(0, payload=message(message_id="a"))
    first.hang_up()
    again = broker.session()
    again.attach_sender()
    again.transfer(0, payload=message(message_id="a"))
    assert outcomes(again) == [0]
    assert broker.queue().backlogs.waiting == 1


@pytest.mark.requirement("PRD-03")
async def test_a_repeat_is_accepted_no_earlier_than_the_first() -> None:
    store = GatedStore()
    broker = Broker(policy=DETECTING, store=store)
    journal = broker.journal
    committing = asyncio.get_running_loop().create_task(journal.run(broker.container.run_round))
    client = broker.session()
    client.attach_sender()
    await settle_down()
    while store.commits and store._gates:
        store.let_through()
        await settle_down()
    client.transfer(0, payload=message(message_id="a", durable=True))
    await settle_down()
    client.transfer(1, payload=message(message_id="a", durable=True))
    await settle_down()
    client.expect_nothing()
    store.let_through()
    await settle_down()
    assert outcomes(client) == [0, 1]
    assert len(await store.ids(0)) == 1
    committing.cancel()


async def settle_down() -> None:
    """Let the journal run until it waits for its store."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.requirement("RCV-06")
@pytest.mark.parametrize("fail", [True, False], ids=["rolled back", "committed"])
def test_a_transaction_counts_only_when_it_is_committed(fail: bool) -> None:
    broker = Broker(policy=DETECTING)
    controller = Controller(broker)
    controller.client.attach_sender()
    txn = controller.declare()
    controller.post(txn, message_id="a")
    if fail:
        controller.roll_back(txn)
    else:
        controller.commit(txn)
    again = controller.transfer(message(message_id="a"))
    assert isinstance(controller.answer(again), Accepted)
    assert broker.queue().backlogs.waiting == 1
    assert broker.stats.duplicates == (0 if fail else 1)


def test_an_operator_sees_the_window_and_its_repeats() -> None:
    broker = Broker(patterns=[("q", DETECTING)])
    client = broker.session()
    client.attach_sender()
    for number, each in enumerate("aab"):
        client.transfer(number, payload=message(message_id=each))
    record = Manager(broker).ask("READ", "queue", "q").map
    shown = {name: record[name] for name in ("duplicate_window", "duplicate_ids", "duplicates")}
    assert shown == {"duplicate_window": 100, "duplicate_ids": 2, "duplicates": 1}
    broker.fill("other")
    other = Manager(broker, "m2").ask("READ", "queue", "other").map
    assert (other["duplicate_window"], other["duplicate_ids"], other["duplicates"]) == (0, 0, 0)
