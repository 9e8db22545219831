"""Incomplete maps, and outcomes within transactions, of deliveries that outlive their link."""

from __future__ import annotations

from typing import Any

import pytest

from broker.amqp.outcomes import ACCEPTED, TransactionalState
from broker.amqp.performatives import SND_SETTLED, Flow
from broker.amqp.terminus import COPY, SESSION_END, Source
from broker.routing.addresses.policy import AddressPolicy
from tests.conformance.resuming import unsettled_map
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer
from tests.support.resuming import (
    LASTING,
    come_back,
    counts,
    holding,
    resting,
    suspended,
    tags_of,
)
from tests.support.transactions import COORDINATOR_HANDLE, Controller, discharge
from tests.support.unsettled_maps import EMPTY, told

pytestmark = pytest.mark.requirement("RCV-08")


# -- incomplete maps


def test_an_incomplete_map_of_the_peer_proves_nothing() -> None:
    client = holding()
    resting(client)
    one, two, three = tags_of(3)
    client.broker.fill(count=1)
    come_back(client, {two: ACCEPTED}, incomplete=True)
    assert client.expect_last(Transfer).tag == two  # settled; and nothing new comes
    assert counts(client) == (1, 2)
    resting(client)
    answer = come_back(client, {one: None, three: ACCEPTED})
    assert told(answer) == {one: None, three: None}
    assert [client.expect(Transfer).tag for _ in range(2)] == [one, three]
    client.expect_deliveries(b"0")


def test_with_an_incomplete_map_a_drain_ends_without_messages() -> None:
    client = Broker().session()
    client.broker.fill(count=1)
    client.attach_receiver(unsettled=EMPTY, incomplete_unsettled=True)
    client.flow(handle=0, credit=5, delivery_count=0, drain=True)
    assert client.expect_last(Flow).link_credit == 0
    resting(client)
    client.attach_receiver(credit=5)
    client.expect_deliveries(b"0")


@pytest.mark.parametrize("incomplete", [True, False], ids=["incomplete", "complete"])
def test_an_exclusive_queue_respects_an_incomplete_map(incomplete: bool) -> None:
    broker = Broker(policy=AddressPolicy(exclusive=True))
    first = broker.session("first")
    first.attach_receiver()
    client = broker.session()
    client.attach_receiver(unsettled=EMPTY, incomplete_unsettled=incomplete, credit=5)
    broker.fill(count=1)
    first.hang_up()
    if incomplete:
        client.expect_nothing()
    else:
        client.expect_deliveries(b"0")
    assert counts(client) == (int(incomplete), int(not incomplete))


def test_an_exclusive_queue_respects_a_map_that_its_frame_has_cut() -> None:
    broker = Broker(policy=AddressPolicy(exclusive=True))
    broker.fill(count=100)
    client = broker.session(max_frame_size=512)
    client.attach_receiver(source=LASTING, credit=100)
    client.frames()
    resting(client)
    first = broker.session("first")
    first.attach_receiver()
    answer = come_back(client, dict.fromkeys(tags_of(100), ACCEPTED), credit=0)
    assert answer.incomplete_unsettled
    broker.fill(count=1)
    client.flow(handle=0, credit=200, delivery_count=0)
    assert [client.expect(Transfer).tag for _ in range(100)] == tags_of(100)
    first.hang_up()
    client.expect_nothing()
    assert counts(client) == (1, 0)


def test_a_map_beyond_the_frame_of_the_peer_is_incomplete() -> None:
    broker = Broker()
    broker.fill(count=100)
    client = broker.session(max_frame_size=512)
    client.attach_receiver(source=LASTING, credit=100)
    client.frames()
    resting(client)
    tags = tags_of(100)
    answer = come_back(client, dict.fromkeys(tags[:40]), incomplete=True, credit=0)
    assert answer.incomplete_unsettled
    listed = told(answer)
    assert listed is not None
    assert list(listed) == tags[: len(listed)]
    assert 20 < len(listed) < 40
    client.flow(handle=0, credit=100, delivery_count=0)
    assert [client.expect(Transfer).tag for _ in range(40)] == tags[:40]
    client.expect_nothing()
    assert counts(client) == (0, 100)


KEEPS_NOTHING: dict[str, dict[str, Any]] = {
    "sends settled": {"source": LASTING, "snd_settle_mode": SND_SETTLED},
    "ends with its session": {"source": Source(address="q", expiry_policy=SESSION_END)},
    "browses": {"source": Source(address="q", distribution_mode=COPY)},
}


@pytest.mark.parametrize("fields", KEEPS_NOTHING.values(), ids=KEEPS_NOTHING.keys())
def test_a_link_that_keeps_nothing_resumes_nothing(fields: dict[str, Any]) -> None:
    client = holding(2)
    resting(client)
    states = unsettled_map(dict.fromkeys(tags_of(2)))
    answer = client.attach_receiver(unsettled=states, incomplete_unsettled=True, credit=5, **fields)
    assert not answer.has_unsettled
    client.expect_nothing()
    assert (counts(client), suspended(client)) == ((2, 0), 0)


# -- transactions


def test_an_outcome_within_a_transaction_outlives_a_detach() -> None:
    client = holding(3)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    for number in (0, 1):
        controller.retire(txn_id, number, ACCEPTED, settled=False)
    client.frames()
    resting(client)
    assert counts(client) == (0, 3)
    controller.commit(txn_id)
    assert counts(client) == (0, 1)
    one, two, three = tags_of(3)
    answer = come_back(client, {one: ACCEPTED, three: None})
    assert told(answer) == {one: "accepted", two: "accepted", three: None}
    settled, resumed = client.expect(Transfer), client.expect_last(Transfer)
    assert (settled.tag, settled.settled, resumed.tag, resumed.settled) == (one, True, three, False)


def test_a_rollback_leaves_a_detached_delivery_unsettled() -> None:
    client = holding(1)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, ACCEPTED, settled=False)
    client.frames()
    resting(client)
    controller.roll_back(txn_id)
    assert counts(client) == (0, 1)
    (tag,) = tags_of(1)
    assert told(come_back(client, {tag: None})) == {tag: None}
    client.expect_deliveries(b"0")


@pytest.mark.parametrize("fails", [False, True], ids=["commit", "rollback"])
def test_a_transaction_may_end_when_the_link_is_back(fails: bool) -> None:
    client = holding(1)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, ACCEPTED, settled=False)
    client.frames()
    resting(client)
    (tag,) = tags_of(1)
    come_back(client, {tag: TransactionalState(txn_id=txn_id, outcome=ACCEPTED)})
    client.expect_nothing()
    number = controller.transfer(discharge(txn_id, fail=fails), COORDINATOR_HANDLE)
    told_of = [each.body for each in client.frames()]
    transfers = [each for each in told_of if isinstance(each, Transfer)]
    assert any(isinstance(each, Disposition) and each.first == number for each in told_of)
    assert [(each.tag, each.resume, each.settled) for each in transfers] == [(tag, True, not fails)]
    assert counts(client) == (0, int(fails))


def test_a_transaction_decides_about_a_delivery_whose_source_is_gone() -> None:
    client = holding(1)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, ACCEPTED, settled=False)
    client.frames()
    resting(client)
    terminus = client.broker.router.termini.all()[0]
    client.broker.router.termini.end(terminus, client.broker.journal.batch)
    assert counts(client) == (0, 1)
    controller.roll_back(txn_id)
    assert counts(client) == (1, 0)
