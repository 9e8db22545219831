"""Facts that the broker adds to a message, and the messages of a queue that a part reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import pytest

from broker import Broker
from broker.amqp.types import Int, Map, Symbol, Timestamp, UInt
from pyspark_amqp.option_kinds import Position
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS
from pyspark_amqp.rows.decoding import told_of
from pyspark_amqp.source import events
from pyspark_amqp.source.lease import Lease
from pyspark_amqp.source.messages import (
    BYTES_MAX,
    Part,
    Place,
    Range,
    YieldedPositions,
    complete,
    part_of_queue,
    rows,
    slice_of_lease,
)
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.consuming import unwrapped
from tests.support.jms import DELIVERY_ANNOTATIONS, HEADER, VALUE, joined
from tests.unit.pyspark_amqp.losing import losing
from tests.unit.pyspark_amqp.sending import message, send

OPEN: Final = Position()
TOLD: Final = Map(
    [
        (Symbol("x-opt-other"), [1, "x"]),
        (Symbol("x-opt-position"), 70),
        (Symbol("x-opt-enqueued-time"), Timestamp(1_700_000_000_000)),
        (Symbol("x-opt-ttl-end"), Timestamp(1_700_000_060_000)),
    ]
)


@pytest.mark.parametrize("header", [[], [(HEADER, [True, None, None, None, Int(1)])]])
def test_what_the_broker_tells_is_taken_out_of_a_message(header: list[tuple[int, object]]) -> None:
    message = joined(*header, (VALUE, "hello"))
    told = unwrapped(joined(*header, (DELIVERY_ANNOTATIONS, TOLD), (VALUE, "hello")))
    assert told.data == message
    assert (told.position, told.enqueued_ms) == (70, 1_700_000_000_000)
    assert told.ttl_ends_ms == 1_700_000_060_000


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


# -- over lost connections

COUNT: Final = 900
ORDERS: Final = Place("orders")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    address = [{"pattern": "orders", "event_log": True}]
    with Broker(http={"port": 0}, address=address) as running:
        send(running.url, "orders", [message(at) for at in range(COUNT)])
        yield running


@pytest.mark.requirement("PIP-30")
@pytest.mark.parametrize("option", ["url", "managementUrl"])
def test_a_ttl_counts_from_the_arrival_however_often_it_is_read(
    broker: Broker, option: str
) -> None:
    """The header has what is left of the ttl, so it says another time at each reading."""
    place = Place(f"dated by {option}")
    send(broker.url, place.address, [joined((HEADER, [True, None, UInt(600_000)]), (VALUE, "x"))])
    url = broker.url if option == "url" else broker.http_url
    asked = read_options({"url": broker.url, option: url, "address": place.address}, Use.STREAM)
    lease = Lease(asked, place.address, place)
    made = lease.acquire(1, max_messages=1, max_bytes=0, until_ms=0, wait_ms=0)
    part = slice_of_lease(lease.name, lease.fencing_token, 1, made.slices.index(1))
    for _ in range(2):
        [[row]] = [
            batch.to_pylist() for batch in rows(asked, ["enqueuedAt", "JMSExpiration"], place, part)
        ]
        assert row["JMSExpiration"] - row["enqueuedAt"] == timedelta(minutes=10)
    lease.close()


def test_a_broker_of_an_older_version_has_fewer_columns() -> None:
    older = told_of([b"x"], positions=[1], enqueued_us=[2]).drop_columns(["ttlEndsAt"])
    assert (
        complete(older).to_pylist() == told_of([b"x"], positions=[1], enqueued_us=[2]).to_pylist()
    )


def positions(options: Options, part: Part) -> list[int]:
    found = rows(options, ["position"], ORDERS, part)
    return [position for batch in found for position in batch.column("position").to_pylist()]


@pytest.mark.requirement("PIP-55")
@pytest.mark.parametrize("option", ["url", "managementUrl"])
@pytest.mark.parametrize("what", ["a queue", "a slice of a lease"])
def test_messages_that_were_read_are_not_read_again(broker: Broker, option: str, what: str) -> None:
    given = {"url": broker.url, "address": "orders"}
    asked = read_options(given, Use.STREAM)
    lease = Lease(asked, f"{option} {what}", ORDERS)
    part = part_of_queue(ORDERS, 0, 1, selector=None, until_ms=0)
    if what == "a slice of a lease":
        made = lease.acquire(1, max_messages=COUNT, max_bytes=0, until_ms=0, wait_ms=0)
        part = slice_of_lease(
            lease.name, lease.fencing_token, 1, made.slices.index(max(made.slices))
        )
    before = positions(asked, part)
    direct = broker.url if option == "url" else broker.http_url
    with losing(direct, 2, cut_at=3 * BYTES_MAX) as (url, proxy):
        found = positions(read_options({**given, option: url}, Use.STREAM), part)
        assert proxy.cuts == 0
    assert found == before
    assert len(found) == len(set(found)) > COUNT // 5
    with opened(asked) as management:
        management.ask("RELEASE", "lease", lease.name)
    lease.close()


@pytest.mark.requirement("PIP-55")
@pytest.mark.parametrize("option", ["url", "managementUrl"])
def test_rows_of_the_event_log_that_were_read_are_not_read_again(
    broker: Broker, option: str
) -> None:
    given = {"url": broker.url, "mode": "events"}
    direct = broker.url if option == "url" else broker.http_url
    with losing(direct, 2) as (url, proxy):
        asked = read_options({**given, option: url}, Use.STREAM)
        _, last = events.bounds(asked)
        found = [
            number
            for batch in events.rows(asked, list(EVENT_LOG_COLUMNS), 0, last)
            for number in batch.column("id").to_pylist()
        ]
        assert proxy.cuts == 0
    assert found == list(range(1, last + 1))
    assert last >= COUNT


@pytest.mark.requirement("PIP-55")
def test_messages_without_positions_are_not_read_twice() -> None:
    """Another broker tells no positions, so there is no way to know which ones were yielded."""
    told = told_of([b"", b""], positions=[1, None], enqueued_us=[None, None])
    yielded = YieldedPositions()
    yielded.add(told.slice(0, 1))
    assert not yielded.are_unknown
    yielded.is_repeating = True
    assert yielded.without(told).column("position").to_pylist() == [None]
    yielded.add(told)
    assert yielded.are_unknown
