"""The sender of a task over lost connections: what is sent again, and what must not be."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pytest

from broker import Broker
from pyspark_amqp.errors import BrokerError, TransientError, UnreachableError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.sink.encoding import MessageMaker
from pyspark_amqp.sink.sending import SINK, Task, TaskSender
from pyspark_amqp.wire.broker_client import opened
from tests.unit.pyspark_amqp.losing import losing

ROWS: Final = 900
BATCHES: Final = 3
TASK: Final = Task("a-query", 0, 0, 7)
ADDRESSES: Final = ("even", "odd")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    small = {"name": "small", "max_messages": 3, "full": "reject"}
    with Broker(queue=[small]) as running:
        yield running


def options(url: str, **given: str) -> Options:
    return read_options({"url": url, **given}, Use.SINK)


def sender(asked: Options, stage: Task | None, name: str) -> TaskSender:
    return TaskSender(asked, MessageMaker(name=name, address=None, now_ms=lambda: 0), stage)


def batches(prefix: str) -> Iterator[pa.RecordBatch]:
    """Yield rows for two addresses by turns; a text is its row's number."""
    for first in range(0, ROWS * BATCHES, ROWS):
        numbers = range(first, first + ROWS)
        texts = [f"{number:05}" for number in numbers]
        addresses = [f"{prefix}.{ADDRESSES[number % 2]}" for number in numbers]
        yield pa.RecordBatch.from_pydict({"value": texts, "address": addresses})


def arrived(broker: Broker, prefix: str) -> dict[str, list[int]]:
    """Return the rows that are in each queue, in their order, by the ids of the messages."""
    return {
        name: [
            int(str(view.properties["message_id"]).rpartition("/")[2])
            for view in broker.messages(f"{prefix}.{name}")
        ]
        for name in ADDRESSES
    }


@pytest.mark.requirement("PIP-55")
@pytest.mark.parametrize("cuts", [0, 1, 2, 3])
def test_staged_messages_are_there_once_and_in_order_after_lost_connections(
    broker: Broker, cuts: int
) -> None:
    """A second loss may come while an Arrow batch is sent again."""
    task = Task(f"query-{cuts}", 0, 0, 7)
    prefix = f"staged.{cuts}"
    with losing(broker.url, cuts) as (url, proxy):
        sending = sender(options(url), task, task.name)
        for batch in batches(prefix):
            sending.send(batch)
        assert proxy.cuts == 0
    assert sending.count == ROWS * BATCHES
    assert arrived(broker, prefix) == {"even": [], "odd": []}
    with opened(options(broker.url)) as asked:
        told = asked.ask(
            *("COMMIT", SINK, task.query),
            batch=0,
            partitions=[0],
            attempts=[7],
            counts=[sending.count],
        )
    assert told["committed"] is True
    every = range(ROWS * BATCHES)
    assert arrived(broker, prefix) == {"even": list(every[::2]), "odd": list(every[1::2])}


@pytest.mark.requirement("PIP-51")
@pytest.mark.requirement("PIP-55")
def test_at_least_once_only_messages_without_a_confirmation_are_sent_again(broker: Broker) -> None:
    with losing(broker.url, 1) as (url, proxy):
        sending = sender(options(url), None, "plain")
        for batch in batches("plain"):
            sending.send(batch)
        assert proxy.cuts == 0
    for parity, name in enumerate(ADDRESSES):
        rows = arrived(broker, "plain")[name]
        assert set(rows) == set(range(parity, ROWS * BATCHES, 2))
        again = [row for row, count in Counter(rows).items() if count > 1]
        # the messages of one stretch, which the broker had and the sender had not heard of
        assert 0 < len(again) < ROWS // 2
        assert all(later - row == 2 for row, later in pairwise(sorted(again)))


@pytest.mark.requirement("PIP-56")
def test_a_broker_that_stays_away_ends_the_task_after_its_time() -> None:
    """No program listens on port 9 of this machine."""
    begun = time.monotonic()
    sending = sender(options("amqp://127.0.0.1:9", **{"amqp.timeout": "500ms"}), TASK, TASK.name)
    with pytest.raises(UnreachableError, match=r"amqp://127.0.0.1:9: .*Connection refused"):
        sending.send(next(batches("nowhere")))
    assert 0.5 <= time.monotonic() - begun < 10


@pytest.mark.requirement("PIP-56")
def test_a_refusal_ends_the_task_at_once(broker: Broker) -> None:
    rows = pa.RecordBatch.from_pydict({"value": ["x"] * 4, "address": ["small"] * 4})
    sending = sender(options(broker.url, **{"amqp.timeout": "1h"}), None, "refused")
    with pytest.raises(BrokerError, match="small took not all messages: rejected") as raised:
        sending.send(rows)
    assert not isinstance(raised.value, TransientError)
