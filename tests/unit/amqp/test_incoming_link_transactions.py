"""Transfers within a transaction (core 4.4.1): what the engine reports to the link's owner."""

from typing import Final

import pytest

from broker.amqp.outcomes import State, TransactionalState
from broker.amqp.performatives import Detach
from tests.support.frames import Transfer
from tests.unit.amqp.test_incoming_link import PAYLOAD, detached_with, open_inbox

WITHIN: Final = TransactionalState(txn_id=b"one")


@pytest.mark.requirement("RCV-06")
def test_a_message_within_a_transaction_is_told_apart() -> None:
    engine, inbox = open_inbox()
    engine.send(
        Transfer(state=WITHIN, payload=PAYLOAD),
        Transfer(delivery_id=1, payload=PAYLOAD),
        Transfer(delivery_id=2, state=TransactionalState(txn_id=b"two"), payload=PAYLOAD),
    )
    assert inbox.delivered_ids == [0, 1, 2]
    assert inbox.posted_within == [b"one", b"two"]


@pytest.mark.requirement("RCV-06")
@pytest.mark.parametrize("state", [WITHIN, None], ids=["said again", "not said again"])
def test_the_pieces_of_a_message_are_of_one_transaction(state: TransactionalState | None) -> None:
    engine, inbox = open_inbox()
    engine.send(Transfer(state=WITHIN, more=True, payload=PAYLOAD))
    assert engine.connection.partial_postings == {b"one": 1}
    engine.send(Transfer(delivery_id=None, tag=None, state=state))
    assert engine.connection.partial_postings == {}
    assert inbox.posted_within == [b"one"]
    assert engine.failed_transactions == []


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(WITHIN, TransactionalState(txn_id=b"two"), id="another"),
        pytest.param(None, WITHIN, id="one that did not begin it"),
    ],
)
def test_a_transaction_may_not_change_within_a_message(
    first: State | None, then: TransactionalState
) -> None:
    engine, inbox = open_inbox()
    engine.send(Transfer(state=first, more=True, payload=PAYLOAD))
    answer = engine.send(Transfer(delivery_id=None, tag=None, state=then, payload=PAYLOAD))
    assert detached_with(answer) == "amqp:not-allowed"
    assert inbox.delivered_ids == []
    assert then.txn_id in {txn_id for txn_id, _ in engine.failed_transactions}
    assert engine.connection.partial_postings == {}


@pytest.mark.requirement("RCV-06")
def test_a_message_that_is_given_up_is_nobodys_failure() -> None:
    engine, inbox = open_inbox()
    engine.send(
        Transfer(state=WITHIN, more=True, payload=PAYLOAD),
        Transfer(delivery_id=None, tag=None, state=WITHIN, aborted=True),
    )
    assert inbox.delivered_ids == []
    assert engine.failed_transactions == []
    assert engine.connection.partial_postings == {}


@pytest.mark.requirement("RCV-06")
def test_a_message_without_credit_fails_its_transaction() -> None:
    engine, _ = open_inbox(credit=0)
    answer = engine.send(Transfer(state=WITHIN, payload=PAYLOAD))
    assert detached_with(answer) == "amqp:link:transfer-limit-exceeded"
    assert engine.failed_transactions == [(b"one", "amqp:link:transfer-limit-exceeded")]


@pytest.mark.requirement("RCV-06")
def test_half_a_message_fails_its_transaction_when_its_link_ends() -> None:
    engine, _ = open_inbox()
    engine.send(Transfer(state=WITHIN, more=True, payload=PAYLOAD))
    engine.send(Detach(handle=0, closed=True))
    assert engine.failed_transactions == [(b"one", "amqp:link:detach-forced")]
    assert engine.connection.partial_postings == {}


@pytest.mark.requirement("RCV-06")
def test_a_message_behind_our_detach_fails_its_transaction() -> None:
    engine, inbox = open_inbox()
    inbox.link.detach(None)
    engine.send(Transfer(state=WITHIN, payload=PAYLOAD), Transfer(delivery_id=1, payload=PAYLOAD))
    assert engine.failed_transactions == [(b"one", "amqp:link:detach-forced")]
