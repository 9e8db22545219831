"""The move of a dead letter, as its annotations tell it."""

from __future__ import annotations

import pytest

from broker.amqp.types import Symbol, Timestamp, UInt
from broker.management.dead_letter_move import DeadLetterMove, move_of
from broker.message import opaque_message
from tests.support.frames import message
from tests.support.routing import new_message

SOURCE = "x-opt-ORIG-ADDRESS"
REASON = "x-opt-dead-letter-reason"
TIME = "x-opt-dead-letter-time"
COUNT = "x-opt-dead-letter-delivery-count"


@pytest.mark.parametrize(
    ("annotations", "move"),
    [
        pytest.param(None, None, id="no annotations"),
        pytest.param({SOURCE: "orders"}, None, id="no reason: no dead letter"),
        pytest.param(
            {SOURCE: "orders", REASON: Symbol("rejected"), TIME: Timestamp(7), COUNT: UInt(3)},
            DeadLetterMove("orders", "rejected", 7, 3),
            id="a dead letter",
        ),
        pytest.param(
            {REASON: Symbol("expired")}, DeadLetterMove("", "expired", 0), id="only the reason"
        ),
        pytest.param(
            {SOURCE: 5, REASON: "rejected", TIME: "now", COUNT: "3"},
            DeadLetterMove("", "rejected", 0),
            id="values of other types",
        ),
        pytest.param({REASON: 5}, None, id="a reason that is no text"),
    ],
)
def test_a_move(annotations: dict[str, object] | None, move: DeadLetterMove | None) -> None:
    assert move_of(new_message(message(annotations=annotations))) == move


def test_a_message_of_another_format_tells_nothing() -> None:
    assert move_of(opaque_message(b"x", message_format=7)) is None
