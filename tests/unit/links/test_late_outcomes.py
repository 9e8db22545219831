"""Outcomes of deliveries whose link is detached, and whose source and session go on (2.6.13)."""

from __future__ import annotations

import pytest

from broker.amqp.outcomes import ACCEPTED, RELEASED, DeliveryState, Modified, Received, Rejected
from broker.amqp.performatives import End
from broker.amqp.terminus import CONNECTION_CLOSE, Source
from tests.support.broker import Client
from tests.support.endings import Ending, end, hang_up
from tests.support.frames import Disposition
from tests.support.resuming import (
    FAILED,
    come_back,
    counts,
    holding,
    resting,
    suspended,
    tags_of,
)
from tests.support.transactions import Controller
from tests.support.unsettled_maps import told

pytestmark = pytest.mark.requirement("RCV-08")

OUTCOMES = [
    pytest.param(ACCEPTED, (0, 0), id="accepted"),
    pytest.param(RELEASED, (1, 0), id="released"),
    pytest.param(FAILED, (1, 0), id="failed"),
    pytest.param(Rejected(), (0, 0), id="rejected"),
    pytest.param(None, (1, 0), id="none"),
    pytest.param(Received(section_number=0, section_offset=0), (1, 0), id="received"),
]


@pytest.mark.parametrize(("state", "left"), OUTCOMES)
def test_an_outcome_counts_after_the_detach(
    state: DeliveryState | None, left: tuple[int, int]
) -> None:
    client = holding(1)
    resting(client)
    client.send(Disposition(first=0, state=state))
    client.expect_nothing()
    assert counts(client) == left
    assert told(come_back(client, {}, credit=0)) == {}


def test_a_range_counts_for_those_that_are_kept() -> None:
    client = holding(3)
    client.send(Disposition(first=1))
    resting(client)
    client.send(Disposition(first=0, last=2))
    assert counts(client) == (0, 0)


def test_without_an_outcome_the_default_outcome_counts() -> None:
    source = Source(address="q", expiry_policy=CONNECTION_CLOSE, default_outcome=ACCEPTED)
    client = holding(1, source=source)
    resting(client)
    client.send(Disposition(first=0, state=None))
    assert counts(client) == (0, 0)


def test_malformed_annotations_end_the_session() -> None:
    client = holding(1)
    resting(client)
    client.send(Disposition(first=0, state=Modified(message_annotations=b"\xc1\x03\x02\x54\x01")))
    assert client.expect_last(End).error is not None
    assert counts(client) == (1, 0)


def test_the_ids_mean_nothing_once_the_link_is_back() -> None:
    client = holding(1)
    resting(client)
    come_back(client, {tags_of(1)[0]: None}, credit=0)
    client.send(Disposition(first=0))
    assert counts(client) == (0, 1)


def test_the_ids_mean_nothing_once_the_time_is_over() -> None:
    client = holding(1, source=Source(address="q", expiry_policy="link-detach", timeout=1))
    resting(client)
    client.broker.advance(1000)
    client.send(Disposition(first=0))
    assert (counts(client), suspended(client)) == ((1, 0), 0)


def test_the_end_of_the_session_leaves_the_deliveries() -> None:
    client = holding(1)
    resting(client)
    client.send(End())
    client.expect_last(End)
    assert (counts(client), suspended(client)) == ((0, 1), 1)
    assert client.peer.late_outcomes == {}


@pytest.mark.parametrize("ending", [end, hang_up], ids=["session", "connection"])
def test_nothing_of_a_session_that_has_ended_is_kept(ending: Ending) -> None:
    client = holding(2)
    resting(client)
    ending(client)
    (terminus,) = client.broker.router.termini.all()
    assert terminus.deliveries is not None
    entries = [each.entry for each in terminus.deliveries.all()]
    assert [entry is not None and entry.sent_to is None for entry in entries] == [True, True]


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "not settled"])
@pytest.mark.parametrize("fails", [True, False], ids=["rollback", "commit"])
def test_an_outcome_within_a_transaction_counts_after_the_detach(
    settled: bool, fails: bool
) -> None:
    client = holding(1)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    client.frames()
    resting(client)
    controller.retire(txn_id, 0, ACCEPTED, settled=settled)
    assert counts(client) == (0, 1)
    if fails:
        controller.roll_back(txn_id)
    else:
        controller.commit(txn_id)
    # a rollback leaves a delivery that is not settled to its receiver (4.4.2)
    assert counts(client) == ((int(settled), int(not settled)) if fails else (0, 0))
    listed = told(come_back(client, {}, credit=0))
    expected: dict[bytes, str | None] = {}
    if not settled:
        expected = {tags_of(1)[0]: None if fails else "accepted"}
    assert listed == expected


def accepted_within() -> tuple[Client, Controller, bytes]:
    """Return a client whose link is detached; its delivery is accepted within a transaction."""
    client = holding(1)
    controller = Controller(client.broker, client=client)
    txn_id = controller.declare()
    controller.retire(txn_id, 0, ACCEPTED, settled=False)
    client.frames()
    resting(client)
    return client, controller, txn_id


def test_an_outcome_outside_of_the_transaction_replaces_that_within() -> None:
    client, controller, txn_id = accepted_within()
    client.send(Disposition(first=0, state=RELEASED))
    assert counts(client) == (1, 0)
    controller.commit(txn_id)
    assert counts(client) == (1, 0)


def test_a_settlement_leaves_the_outcome_to_the_transaction() -> None:
    client, controller, txn_id = accepted_within()
    client.send(Disposition(first=0, state=None))
    assert counts(client) == (0, 1)
    controller.commit(txn_id)
    assert counts(client) == (0, 0)


def test_an_outcome_within_an_unknown_transaction_ends_the_session() -> None:
    client = holding(1)
    controller = Controller(client.broker, client=client)
    client.frames()
    resting(client)
    controller.retire(b"unknown", 0, ACCEPTED)
    client.expect_end("amqp:transaction:unknown-id")
    assert counts(client) == (1, 0)
