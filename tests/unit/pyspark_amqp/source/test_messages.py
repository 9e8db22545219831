"""Facts that the broker adds to a message, and the messages of a queue that a part reads."""

from __future__ import annotations

from typing import Final

import pytest

from broker.amqp.types import Int, Map, Symbol, Timestamp
from pyspark_amqp.option_kinds import Position
from pyspark_amqp.source.messages import Place, Range, part_of_queue, slice_of_lease
from pyspark_amqp.wire.consuming import unwrapped
from tests.support.jms import DELIVERY_ANNOTATIONS, HEADER, VALUE, joined

OPEN: Final = Position()
TOLD: Final = Map(
    [
        (Symbol("x-opt-other"), [1, "x"]),
        (Symbol("x-opt-position"), 70),
        (Symbol("x-opt-enqueued-time"), Timestamp(1_700_000_000_000)),
    ]
)


@pytest.mark.parametrize("header", [[], [(HEADER, [True, None, None, None, Int(1)])]])
def test_what_the_broker_tells_is_taken_out_of_a_message(header: list[tuple[int, object]]) -> None:
    message = joined(*header, (VALUE, "hello"))
    told = unwrapped(joined(*header, (DELIVERY_ANNOTATIONS, TOLD), (VALUE, "hello")))
    assert told.data == message
    assert (told.position, told.enqueued_ms) == (70, 1_700_000_000_000)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\x00garbage",
        joined((VALUE, "x")),
        joined((HEADER, [])),
        b"\x00\x53\x71\xc1\xff",
    ],
)
def test_what_tells_nothing_or_is_no_message_stays_as_it_is(data: bytes) -> None:
    told = unwrapped(data)
    assert (told.data, told.position, told.enqueued_ms) == (data, None, None)


@pytest.mark.parametrize(
    ("span", "position", "time_us", "is_read"),
    [
        (Range(OPEN, OPEN), None, None, True),
        (Range(Position(number=5), OPEN), 5, 0, True),
        (Range(Position(number=5), OPEN), 4, 0, False),
        (Range(OPEN, Position(number=5)), 4, 0, True),
        (Range(OPEN, Position(number=5)), 5, 0, False),
        (Range(Position(time_ms=2), OPEN), 1, 1_999, False),
        (Range(Position(time_ms=2), OPEN), 1, 2_000, True),
        (Range(OPEN, Position(time_ms=2)), 1, 1_999, True),
        (Range(OPEN, Position(time_ms=2)), 1, 2_000, False),
        (Range(Position(number=5), Position(time_ms=2)), None, None, True),
    ],
)
def test_the_first_position_is_read_the_last_is_not(
    span: Range, position: int | None, time_us: int | None, is_read: bool
) -> None:
    assert span.takes(position, time_us) is is_read


def test_both_ways_are_told_the_same_of_a_part() -> None:
    queue, subscription = Place("q"), Place("t", "durable//s")
    part = part_of_queue(queue, 1, 4, selector="a = 1", until_ms=7)
    assert part.path == "/arrow/browse"
    assert part.arguments == {
        "address": "q",
        "slice": 1,
        "slices": 4,
        "arrived_until_ms": 7,
        "selector": "a = 1",
    }
    assert part.needed_filters == ["browse-slice", "selector"]
    assert set(part.filters()) == {"browse-slice", "selector"}
    whole = part_of_queue(subscription, 0, 1, selector=None, until_ms=0)
    assert whole.arguments["subscription"] == subscription.source == "durable//s"
    assert whole.needed_filters == []
    held = slice_of_lease("l", 2, 3, 1)
    assert held.arguments == {"lease": "l", "fencing_token": 2, "batch": 3, "slice": 1}
    assert held.needed_filters == list(held.filters()) == ["lease-slice"]
