"""Streams that take messages from a running broker."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from broker.amqp.decode import descriptor_at, skip
from broker.amqp.descriptors import HEADER
from tests.interop.broker_process import BrokerProcess
from tests.spark.leasing import Batch, Stream, entity, ids, leases, nothing
from tests.spark.sent import send, texts

PATIENCE_S = 20
LOOK = threading.Event()
"""Never set: waiting for it lets other threads run between two looks."""


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it does not become true"
        LOOK.wait(0.05)


def behind_header(data: bytes) -> bytes:
    """Return all sections after the header, which the broker may rewrite."""
    code, at = descriptor_at(data, 0, len(data))
    return data[skip(data, at, len(data)) :] if code == HEADER else data


def held(url: str, address: str) -> tuple[object, object]:
    """Return a queue's number of ready messages, and of those held by consumers or leases."""
    told = entity(url, "queue", address)
    return told["messages"], told["acquired"]


@pytest.fixture(scope="module")
def drained(
    spark: SparkSession, broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> list[list[Batch]]:
    """Return the batches of two runs over a queue, with messages sent between and during them."""
    folder = tmp_path_factory.mktemp("drained")
    stream = Stream(
        spark,
        folder,
        {"url": broker.url, "address": "drained", "maxMessagesPerTrigger": "400"},
    )
    send(broker.url, "drained", texts(1000, address="drained", groups=7))
    # messages sent while it runs are for the next run
    stream.also = lambda number: (
        send(broker.url, "drained", texts(50, address="drained", first=1000, groups=7))
        if number == 0
        else None
    )
    first = stream.run()
    assert held(broker.url, "drained") == (50, 0)
    stream.also = nothing
    second = stream.run()
    assert held(broker.url, "drained") == (0, 0)
    return [first, second]


@pytest.mark.requirement("PIP-37")
@pytest.mark.requirement("PIP-31")
def test_every_message_comes_once(drained: list[list[Batch]]) -> None:
    first, second = drained
    assert sorted(each for batch in first for each in batch.ids) == ids("drained", range(1000))
    assert [batch.ids for batch in second] == [ids("drained", range(1000, 1050))]
    assert {row.JMSXDeliveryCount for batch in first for row in batch.rows} == {1}


@pytest.mark.requirement("PIP-38")
@pytest.mark.requirement("PIP-39")
def test_a_batch_has_as_many_as_it_may_and_a_run_what_was_there(drained: list[list[Batch]]) -> None:
    assert [len(batch.rows) for batch in drained[0]] == [400, 400, 200]


@pytest.mark.requirement("PIP-40")
def test_a_group_comes_in_one_partition_in_its_order(drained: list[list[Batch]]) -> None:
    for batch in drained[0]:
        groups = defaultdict(list)
        for row in batch.rows:
            groups[row.JMSXGroupID].append(row)
        assert len(groups) == 7
        assert len({row.part for row in batch.rows}) > 1
        for rows in groups.values():
            assert len({row.part for row in rows}) == 1
            in_place = sorted(rows, key=lambda row: row.place)
            assert [row.position for row in in_place] == sorted(row.position for row in rows)


@pytest.mark.requirement("PIP-41")
def test_what_is_done_is_settled_though_nothing_new_comes(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """Spark itself would report the last batch only with the next one."""
    options = {"url": broker.url, "address": "idle", "createAddress": "true"}
    stream = Stream(spark, tmp_path, options)
    query = stream.start(available_now=False)
    try:
        for first in (0, 20):
            send(broker.url, "idle", texts(20, address="idle", first=first))
            until(lambda: held(broker.url, "idle") == (0, 0))
    finally:
        query.stop()
    assert stream.counts == Counter(ids("idle", range(40)))


@pytest.mark.requirement("PIP-38")
def test_a_batch_waits_for_as_many_as_are_wanted(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """Ten are too few; with the eleventh all are delivered in one batch, later ones by time."""
    options = {"url": broker.url, "address": "few", "minMessagesPerTrigger": "11"}
    stream = Stream(spark, tmp_path, {**options, "pollTimeoutMs": "50", "maxTriggerDelay": "3s"})
    send(broker.url, "few", texts(10, address="few"))
    query = stream.start(available_now=False)
    try:
        send(broker.url, "few", texts(1, address="few", first=10))
        until(lambda: held(broker.url, "few") == (0, 0))
        send(broker.url, "few", texts(1, address="few", first=11))
        until(lambda: held(broker.url, "few") == (0, 0))
    finally:
        query.stop()
    assert [len(batch.rows) for batch in stream.batches] == [11, 1]


@pytest.mark.requirement("PIP-37")
def test_a_batch_that_is_repeated_has_the_messages_that_it_had(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """The sink fails after its work, twice; more messages are sent between the runs."""
    options = {"url": broker.url, "address": "again", "maxMessagesPerTrigger": "30"}
    stream = Stream(spark, tmp_path, options)
    send(broker.url, "again", texts(70, address="again"))
    for fail_in in (0, 1):
        stream.fail_in = fail_in
        with pytest.raises(StreamingQueryException, match=f"fails in batch {fail_in}"):
            stream.run()
        send(broker.url, "again", texts(10, address="again", first=70 + 10 * fail_in))
    stream.fail_in = None
    stream.run()
    by_number = defaultdict(list)
    for batch in stream.batches:
        by_number[batch.number].append(batch.ids)
    assert [len(attempts) for attempts in by_number.values()] == [2, 2, 1]
    for attempts in by_number.values():
        assert attempts[0] == attempts[-1]
    last = {number: attempts[-1] for number, attempts in by_number.items()}
    assert sorted(chain.from_iterable(last.values())) == ids("again", range(90))
    assert {row.JMSXDeliveryCount for batch in stream.batches for row in batch.rows} == {1}


@pytest.mark.requirement("PIP-42")
def test_a_lease_that_ran_out_is_loud_unless_that_is_not_wanted(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    options = {"url": broker.url, "address": "lost", "leaseTtl": "3s"}
    stream = Stream(spark, tmp_path, {**options, "maxMessagesPerTrigger": "30"}, fail_in=1)
    send(broker.url, "lost", texts(50, address="lost"))
    with pytest.raises(StreamingQueryException, match="fails in batch 1"):
        stream.run()
    until(lambda: held(broker.url, "lost") == (20, 0))
    stream.fail_in = None
    with pytest.raises(StreamingQueryException, match=r"the lease .* is gone.*failOnLeaseLoss"):
        stream.run()
    stream.options["failOnLeaseLoss"] = "false"
    stream.run()
    assert held(broker.url, "lost") == (0, 0)
    assert set(stream.counts) == set(ids("lost", range(50)))
    # at least once: messages of the lost batch came in both, flagged as redelivered
    again = [row.JMSXDeliveryCount for row in stream.batches[-1].rows]
    assert again == [2] * 20


@pytest.mark.requirement("PIP-42")
def test_a_lease_lives_as_long_as_its_batch_takes(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """A thread of the driver renews it meanwhile."""
    stream = Stream(spark, tmp_path, {"url": broker.url, "address": "slow", "leaseTtl": "2s"})
    seen = []

    def wait(number: int) -> None:
        deadline = time.monotonic() + 4
        until(lambda: time.monotonic() > deadline)
        seen.append((number, held(broker.url, "slow")))

    stream.also = wait
    send(broker.url, "slow", texts(20, address="slow"))
    stream.run()
    assert seen == [(0, (0, 20))]
    assert stream.counts == Counter(ids("slow", range(20)))


@pytest.mark.requirement("PIP-43")
def test_a_second_driver_fences_the_first(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    options = {"url": broker.url, "address": "fenced", "lease": "one-lease"}
    zombie = Stream(spark, tmp_path / "zombie", options)
    heir = Stream(spark, tmp_path / "heir", options)
    send(broker.url, "fenced", texts(10, address="fenced"))
    old = zombie.start(available_now=False)
    until(lambda: zombie.batches)
    until(lambda: held(broker.url, "fenced") == (0, 0))
    send(broker.url, "fenced", texts(10, address="fenced", first=10))
    until(lambda: len(zombie.counts) == 20)
    new = heir.start(available_now=False)
    try:
        with pytest.raises(StreamingQueryException, match="fenced"):
            old.awaitTermination(PATIENCE_S)
        send(broker.url, "fenced", texts(10, address="fenced", first=20))
        until(lambda: len(heir.counts) >= 10 and held(broker.url, "fenced") == (0, 0))
    finally:
        new.stop()
    assert set(zombie.counts) | set(heir.counts) == set(ids("fenced", range(30)))
    [lease] = [each for each in leases(broker.url) if each["name"] == "one-lease"]
    assert lease["messages"] == 0


@pytest.mark.requirement("PIP-37")
@pytest.mark.requirement("PIP-46")
def test_a_subscription_is_made_and_its_messages_are_taken(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """With a selector, all columns, and a first URL at which there is no broker."""
    options = {
        "url": f"amqp://127.0.0.1:9,{broker.url}",
        "subscription": "audit",
        "topic": "prices",
        "selector": "colour = 'red'",
        "includeRaw": "true",
    }
    stream = Stream(spark, tmp_path, options, schema=None)
    assert [batch.rows for batch in stream.run()] == [[]]
    given = list(texts(20, address="prices"))
    send(broker.url, "prices", given)
    [batch] = stream.run()
    assert sorted(map(behind_header, (row.amqp for row in batch.rows))) == sorted(
        map(behind_header, given[1::2])
    )
    assert {row.subscription for row in batch.rows} == {"durable//audit"}
    assert {row.JMSDestination for row in batch.rows} == {"prices"}
    assert len(batch.rows[0]) == 38 + 2
    assert all(row.enqueuedAt is not None and row.position is not None for row in batch.rows)
