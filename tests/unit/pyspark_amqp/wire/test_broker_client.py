"""The source's ways to a running broker, without Spark: the same rows by AMQP and by HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from broker import Broker
from broker.amqp.sections import split
from broker.app import App
from broker.message import opaque_message, read_message
from pyspark_amqp.errors import BrokerError, DataLossError, FencedError, GoneError, UnreachableError
from pyspark_amqp.option_kinds import Position
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, MESSAGE_COLUMNS, schema_of
from pyspark_amqp.source import events
from pyspark_amqp.source.lease import Lease
from pyspark_amqp.source.messages import (
    EVERYTHING,
    Part,
    Place,
    Range,
    part_of_queue,
    rows,
    slice_of_lease,
)
from pyspark_amqp.source.places import place_of, subscribed, waiting
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.connection import connected
from pyspark_amqp.wire.publishing import Publisher
from tests.support.frames import message as encoded_message
from tests.support.tls import certificate, encrypted
from tests.unit.pyspark_amqp.sending import message, send

ALL: Final = list(MESSAGE_COLUMNS)
COUNT: Final = 40


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Run a broker with forty messages of all kinds in `orders`, in three groups."""
    with Broker(http={"port": 0}, address=[{"pattern": "orders", "event_log": True}]) as running:
        send(running.url, "orders", [message(at) for at in range(COUNT)])
        yield running


def source(url: str, use: Use = Use.BATCH, /, **given: str) -> Options:
    return read_options({"url": url, **given}, use)


def both(broker: Broker, use: Use = Use.BATCH, /, **given: str) -> list[Options]:
    """Return equal options, for AMQP and for HTTP."""
    return [
        source(broker.url, use, **given),
        source(broker.url, use, managementUrl=broker.http_url, **given),
    ]


def read(options: Options, place: Place, part: Part, span: Range = EVERYTHING) -> pa.Table:
    found = rows(options, ALL, place, part, span)
    return pa.Table.from_batches(found, schema=schema_of(MESSAGE_COLUMNS)).combine_chunks()


QUEUE: Final = Place("orders")


@pytest.mark.requirement("PIP-33")
@pytest.mark.requirement("PIP-44")
@pytest.mark.parametrize("selector", [None, "number < 20"])
def test_a_queue_is_browsed_in_parts_by_both_ways(broker: Broker, selector: str | None) -> None:
    found: list[list[dict[str, object]]] = []
    for options in both(broker, address="orders", includeRaw="true"):
        parts = [part_of_queue(QUEUE, at, 3, selector=selector, until_ms=0) for at in range(3)]
        found.append([row for part in parts for row in read(options, QUEUE, part).to_pylist()])
    assert found[0] == found[1]
    numbers = sorted(int(str(row["JMSMessageID"])[3:]) for row in found[0])
    assert numbers == list(range(COUNT if selector is None else 20))
    assert all(row["enqueuedAt"] is not None for row in found[0])
    assert len({row["position"] for row in found[0]}) == len(found[0])


@pytest.mark.requirement("PIP-31")
def test_a_schema_that_names_the_encoded_message_gets_it(broker: Broker) -> None:
    part = part_of_queue(QUEUE, 0, 1, selector=None, until_ms=0)
    for options in both(broker, address="orders"):
        some = pa.Table.from_batches(rows(options, ["amqp", "position"], QUEUE, part))
        assert (some.num_rows, some.column("amqp").null_count) == (COUNT, 0)
        whole = read(options, QUEUE, part)
        assert whole.column("amqp").null_count == whole.num_rows == COUNT


def test_both_ways_tell_the_message_format(broker: Broker) -> None:
    """One message consists of sections, another one does not."""

    def publish(app: App) -> None:
        batch = app.container.journal.batch
        node = app.container.router.resolve(app.container.router.parse("foreign", "queue"), batch)
        data = encoded_message(b"hello")
        sections = split(data, 0, len(data))
        clock = app.container.clock
        node.put(read_message(sections, data, clock), batch)
        node.put(read_message(sections, data, clock, message_format=0x8001_3700), batch)
        node.put(opaque_message(b"\x00?", message_format=2**32 - 1), batch)
        app.container.run_round()

    broker._call(publish)
    place = Place("foreign")
    part = part_of_queue(place, 0, 1, selector=None, until_ms=0)
    for options in both(broker, address="foreign"):
        found = read(options, place, part).to_pylist()
        formats = [row["messageFormat"] for row in found]
        assert formats == [None, 0x8001_3700, 2**32 - 1]
        assert [row["bodyBytes"] for row in found] == [b"hello", b"hello", None]
        assert [row["amqp"] for row in found] == [None, None, b"\x00?"]


@pytest.mark.requirement("PIP-33")
def test_a_part_of_the_positions_is_read(broker: Broker) -> None:
    part = part_of_queue(QUEUE, 0, 1, selector=None, until_ms=0)
    for options in both(broker, address="orders"):
        positions = sorted(read(options, QUEUE, part).column("position").to_pylist())
        span = Range(Position(number=positions[5]), Position(number=positions[10]))
        some = read(options, QUEUE, part, span).column("position").to_pylist()
        assert sorted(some) == positions[5:10]


@pytest.mark.requirement("PIP-44")
def test_slices_of_a_lease_are_the_same_by_both_ways_and_again(broker: Broker) -> None:
    send(broker.url, "leased", [message(at, "leased") for at in range(COUNT)])
    amqp, http = both(broker, Use.STREAM, address="leased", numPartitions="3", includeRaw="true")
    place = Place("leased")
    lease = Lease(amqp, "by-both", place)
    limits = {"max_messages": 25, "max_bytes": 0, "until_ms": 0, "wait_ms": 0}
    lease_batch = lease.acquire(1, **limits)
    assert lease_batch.messages == 25
    seen = []
    for part, count in enumerate(lease_batch.slices):
        if not count:
            continue
        wanted = slice_of_lease("by-both", lease.fencing_token, 1, part)
        tables = [read(options, place, wanted) for options in (amqp, http, amqp)]
        assert tables[0] == tables[1] == tables[2]
        assert tables[0].num_rows == count
        seen += tables[0].column("JMSMessageID").to_pylist()
    assert len(set(seen)) == 25
    # another process opens the same lease: it gets the batch, and this one has lost it
    heir = Lease(amqp, "by-both", place)
    assert (heir.batch_number, heir.settled) == (1, 0)
    assert heir.acquire(1, **limits) == lease_batch
    for options in (amqp, http):
        with pytest.raises(FencedError, match="fenced"):
            read(options, place, slice_of_lease("by-both", lease.fencing_token, 1, 0))
        with pytest.raises(GoneError):
            read(options, place, slice_of_lease("by-both", heir.fencing_token, 7, 0))
    with pytest.raises(FencedError, match="fenced"):
        lease.settle(1)
    heir.settle(1)
    assert waiting(amqp, place) == COUNT - 25
    lease.close()
    heir.close()


@pytest.mark.requirement("PIP-34")
@pytest.mark.requirement("PIP-44")
def test_the_event_log_is_the_same_by_both_ways(broker: Broker) -> None:
    found = []
    for options in both(broker, mode="events"):
        first, last = events.bounds(options)
        assert (first, last) == (1, COUNT)
        batches = events.rows(options, list(EVENT_LOG_COLUMNS), 3, 33)
        found.append(pa.Table.from_batches(batches).combine_chunks())
        some = events.rows(options, ["kind"], 0, last, since_ms=9_000_000_000_000)
        assert list(some) == []
    assert found[0] == found[1]
    assert found[0].column("id").to_pylist() == list(range(4, 34))


def test_an_empty_event_log_is_empty_by_both_ways() -> None:
    with Broker(http={"port": 0}) as empty:
        for options in both(empty, mode="events"):
            assert events.bounds(options) == (0, 0)
            assert list(events.rows(options, ["id"], 0, 0)) == []


@pytest.mark.parametrize(("start", "behind"), [(None, 4), (5, 4), (7, 6), (2, None)])
def test_rows_that_are_gone_are_told_of(start: int | None, behind: int | None) -> None:
    options = source("amqp://h", mode="events")
    wanted = Position(number=start)
    if behind is not None:
        assert events.first_behind(options, wanted, 5) == behind
        return
    with pytest.raises(DataLossError, match="begins at id 5, rows from 2 on were removed"):
        events.first_behind(options, wanted, 5)
    careless = source("amqp://h", mode="events", failOnDataLoss="false")
    assert events.first_behind(careless, wanted, 5) == 4


@pytest.mark.requirement("PIP-46")
def test_the_first_broker_that_answers_is_taken(broker: Broker) -> None:
    """No program listens on port 9 of this machine."""
    with opened(source(f"amqp://127.0.0.1:9,{broker.url}", address="orders")) as asked:
        assert asked.ask("READ", "queue", "orders")["messages"] == COUNT
    nowhere = {"amqp.timeout": "1s"}
    options = read_options({"url": "amqp://127.0.0.1:9", "address": "a", **nowhere}, Use.BATCH)
    with opened(options) as asked, pytest.raises(UnreachableError, match=r"no broker: amqp://127"):
        asked.ask("READ", "queue", "orders")


@pytest.mark.requirement("PIP-46")
def test_requests_go_on_when_their_connection_was_lost(broker: Broker) -> None:
    with opened(source(broker.url, address="orders")) as asked:
        for _ in range(2):
            assert asked.ask("READ", "queue", "orders")["messages"] == COUNT
            broker.faults.drop_connections()


@pytest.mark.requirement("PIP-47")
def test_who_asks_says_who_it_is_by_the_mechanism_that_is_wanted() -> None:
    with Broker(users={"ann": "pass/word"}, http={"port": 0}) as strict:
        send(strict.url_for("ann"), "orders", [message(1)])
        user = {"username": "ann", "password": "pass/word", "address": "orders"}
        part = part_of_queue(QUEUE, 0, 1, selector=None, until_ms=0)
        for options in (
            *both(strict, Use.BATCH, **user),
            source(strict.url, Use.BATCH, **user, saslMechanism="PLAIN"),
            source(strict.url_for("ann"), address="orders"),
        ):
            assert read(options, QUEUE, part).num_rows == 1
        for wrong in (
            {"saslMechanism": "ANONYMOUS", "address": "orders"},
            {"username": "ann", "password": "other", "address": "orders"},
        ):
            for options in both(strict, Use.BATCH, **{**wrong, "amqp.timeout": "2s"}):
                with pytest.raises(BrokerError) as raised:
                    read(options, QUEUE, part)
                assert "pass/word" not in str(raised.value)


def test_a_subscription_has_its_topic_and_is_made_where_that_is_said(broker: Broker) -> None:
    named = {"subscription": "sub/it", "topic": "news"}
    with pytest.raises(Exception, match="option topic"):
        source(broker.url, Use.STREAM, **named)
    options = source(broker.url, Use.STREAM, **{**named, "subscription": "sub"})
    with pytest.raises(GoneError, match="no subscription durable//sub"):
        place_of(options)
    assert subscribed(options) == subscribed(options) == Place("news", "durable//sub")
    send(broker.url, "news", [message(2, "news")])
    part = part_of_queue(Place("news", "durable//sub"), 0, 2, selector=None, until_ms=0)
    others = part_of_queue(Place("news", "durable//sub"), 1, 2, selector=None, until_ms=0)
    for each in both(broker, subscription="durable//sub"):
        place = place_of(each)
        found = [row for p in (part, others) for row in read(each, place, p).to_pylist()]
        assert [row["subscription"] for row in found] == ["durable//sub"]
        assert [row["JMSDestination"] for row in found] == ["news"]


def test_what_the_broker_does_not_take_is_told(broker: Broker) -> None:
    options = source(broker.url, Use.SINK, address="orders")
    with connected(options) as connection:
        publisher = Publisher(connection, "refused")
        publisher.send(b"\x00no message")
        with pytest.raises(BrokerError, match="took not all messages: rejected"):
            publisher.flush()


@pytest.mark.requirement("PIP-47")
def test_who_vouches_for_the_broker_is_asked(broker: Broker, tmp_path: Path) -> None:
    """The broker runs behind a proxy that ends TLS, as it usually does."""
    ours, other = (certificate(tmp_path / name) for name in ("ours", "other"))
    part = part_of_queue(QUEUE, 0, 1, selector=None, until_ms=0)
    with encrypted(broker.url, ours) as amqps, encrypted(broker.http_url, ours) as https:
        given = {"address": "orders", "amqp.timeout": "5s"}
        by_amqp = {**given, "url": amqps.replace("http", "amqp")}
        by_http = {**given, "managementUrl": https}
        for ways in (by_amqp, by_http):
            trusting = read_options({**ways, "tls.caFile": str(ours.path)}, Use.BATCH)
            assert read(trusting, QUEUE, part).num_rows == COUNT
            doubting = read_options({**ways, "tls.caFile": str(other.path)}, Use.BATCH)
            with pytest.raises(BrokerError):
                read(doubting, QUEUE, part)
