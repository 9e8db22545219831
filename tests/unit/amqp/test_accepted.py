"""Ranges of accepted deliveries: which of them one disposition can report together."""

import pytest

from broker.amqp.accepted import NOTHING, AcceptedRange
from broker.amqp.outcomes import ACCEPTED, State, TransactionalState

LAST_ID = 0xFFFF_FFFF
WITHIN = TransactionalState(txn_id=b"t", outcome=ACCEPTED)
WITHIN_ANOTHER = TransactionalState(txn_id=b"t", outcome=ACCEPTED)


def range_of(delivery_id: int, *, settled: bool, state: State) -> AcceptedRange:
    accepted = AcceptedRange()
    accepted.begin(delivery_id, settled, state)
    return accepted


def takes(accepted: AcceptedRange, delivery_id: int, *, settled: bool, state: State) -> bool:
    if state is ACCEPTED:
        return accepted.takes(delivery_id, settled)
    return accepted.takes_posting(delivery_id, settled, state)


@pytest.mark.parametrize("state", [ACCEPTED, WITHIN], ids=["plain", "in a transaction"])
@pytest.mark.parametrize(("first", "following"), [(7, 8), (LAST_ID, 0)])
def test_the_next_delivery_continues_the_range(state: State, first: int, following: int) -> None:
    accepted = range_of(first, settled=True, state=state)
    assert takes(accepted, following, settled=True, state=state)
    assert (accepted.first, accepted.last) == (first, following)


@pytest.mark.parametrize(
    ("held", "following", "settled", "state"),
    [
        pytest.param(ACCEPTED, 9, True, ACCEPTED, id="a gap"),
        pytest.param(ACCEPTED, 7, True, ACCEPTED, id="the same again"),
        pytest.param(ACCEPTED, 8, False, ACCEPTED, id="not settled"),
        pytest.param(ACCEPTED, 8, True, WITHIN, id="in a transaction"),
        pytest.param(WITHIN, 8, True, ACCEPTED, id="outside of the transaction"),
        pytest.param(WITHIN, 8, True, WITHIN_ANOTHER, id="another transaction"),
        pytest.param(WITHIN, 9, True, WITHIN, id="a gap in a transaction"),
        pytest.param(WITHIN, 8, False, WITHIN, id="not settled in a transaction"),
    ],
)
def test_another_range_begins(held: State, following: int, settled: bool, state: State) -> None:
    accepted = range_of(7, settled=True, state=held)
    assert not takes(accepted, following, settled=settled, state=state)
    assert (accepted.first, accepted.last) == (7, 7)


@pytest.mark.parametrize("state", [ACCEPTED, WITHIN], ids=["plain", "in a transaction"])
def test_what_has_been_told_is_not_continued(state: State) -> None:
    accepted = range_of(7, settled=True, state=state)
    accepted.clear()
    assert accepted.first == NOTHING
    assert not takes(accepted, 8, settled=True, state=state)
