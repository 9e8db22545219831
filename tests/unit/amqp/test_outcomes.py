"""Delivery states: which are read, which are refused, and which a fault becomes."""

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.errors import (
    DECODE_ERROR,
    INVALID_FIELD,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    ConnectionFault,
    LinkFault,
)
from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    Declared,
    Error,
    Modified,
    Received,
    Rejected,
    State,
    TransactionalState,
    error_of,
    put_state,
    read_outcome,
    read_state,
)
from broker.amqp.types import Symbol
from tests.support.encoded import EMPTY, FALSE, NULL, TRUE, listed, mapped, section, string, symbol

STATES = [
    pytest.param(ACCEPTED, section(0x24, EMPTY), id="accepted"),
    pytest.param(RELEASED, section(0x26, EMPTY), id="released"),
    pytest.param(Rejected(), section(0x25, EMPTY), id="rejected without an error"),
    pytest.param(
        Rejected(Error(condition="c", description="d", info={"k": None})),
        section(
            0x25,
            listed(section(0x1D, listed(symbol("c"), string("d"), mapped(symbol("k"), NULL)))),
        ),
        id="rejected with an error",
    ),
    pytest.param(Modified(), section(0x27, EMPTY), id="modified in nothing"),
    pytest.param(Modified(delivery_failed=True), section(0x27, listed(TRUE)), id="failed"),
    pytest.param(
        Modified(undeliverable_here=True, message_annotations=bytes.fromhex(mapped())),
        section(0x27, listed(FALSE, TRUE, mapped())),
        id="undeliverable here, with annotations",
    ),
    pytest.param(
        Received(section_number=0, section_offset=0),
        section(0x23, listed("43", "44")),
        id="received",
    ),
    pytest.param(Declared(b"t"), section(0x33, listed("a00174")), id="declared"),
    pytest.param(
        TransactionalState(txn_id=b"t"), section(0x34, listed("a00174")), id="in a transaction"
    ),
    pytest.param(
        TransactionalState(txn_id=b"t", outcome=ACCEPTED),
        section(0x34, listed("a00174", section(0x24, EMPTY))),
        id="accepted in a transaction",
    ),
]


def written(state: State) -> str:
    out = BytesWriter()
    put_state(out, state)
    return out.getvalue().hex()


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(("state", "encoded"), STATES)
def test_a_state_is_written_and_read_as_the_same(state: State, encoded: str) -> None:
    assert written(state) == encoded
    data = bytes.fromhex(encoded)
    again = read_state(data, 0, len(data))
    assert type(again) is type(state)
    assert written(again) == encoded


REFUSED = [
    pytest.param(section(0x99, EMPTY), NOT_IMPLEMENTED, id="a number that nobody knows"),
    pytest.param("00" + symbol("acme:x:list") + EMPTY, NOT_IMPLEMENTED, id="an unknown symbol"),
    pytest.param(EMPTY, DECODE_ERROR, id="not described"),
    pytest.param(section(0x24, NULL), DECODE_ERROR, id="not a list"),
    pytest.param(section(0x24, listed(NULL)), DECODE_ERROR, id="accepted with a field"),
    pytest.param(section(0x27, listed("43")), DECODE_ERROR, id="modified by a number"),
    pytest.param(section(0x25, listed(EMPTY)), DECODE_ERROR, id="an error that is a list"),
    pytest.param(
        section(0x25, listed(section(0x24, EMPTY))), DECODE_ERROR, id="an error that is an outcome"
    ),
    pytest.param(
        section(0x25, listed(section(0x1D, EMPTY))), INVALID_FIELD, id="an error without condition"
    ),
    pytest.param(section(0x23, listed("43")), INVALID_FIELD, id="received without an offset"),
    pytest.param(section(0x33, EMPTY), INVALID_FIELD, id="declared without txn-id"),
    pytest.param(
        section(0x34, listed("a00174", section(0x34, listed("a00174")))),
        NOT_IMPLEMENTED,
        id="a transaction within a transaction",
    ),
]


@pytest.mark.parametrize(("encoded", "condition"), REFUSED)
def test_a_state_that_cannot_be_read(encoded: str, condition: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(ConnectionFault) as caught:
        read_state(data, 0, len(data))
    assert caught.value.condition == condition


@pytest.mark.parametrize("encoded", [section(0x23, listed("43", "44")), section(0x33, listed())])
def test_not_every_state_is_an_outcome(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(ConnectionFault):
        read_outcome(data, 0, len(data))


def test_what_a_peer_is_told_of_a_fault() -> None:
    told = error_of(LinkFault(NOT_FOUND, "no q", {Symbol("k"): 1}))
    assert (told.condition, told.description, told.info) == (NOT_FOUND, "no q", {"k": 1})
    bare = error_of(LinkFault(NOT_FOUND))
    assert (bare.description, bare.info) == (None, {})
