"""The writing of a batch, with a running broker: its requests, and the broker's answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pytest

from broker import Broker
from pyspark_amqp.errors import BrokerError, NoAnswerError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.sink.sending import Task
from pyspark_amqp.sink.writing import BatchWriting, Writing, Written
from pyspark_amqp.wire.broker_client import Management, opened
from tests.support.cut_proxy import CutLink, PortProxy
from tests.unit.pyspark_amqp.losing import proxied

JOB: Final = "a-query"


class OneTask(Writing):
    """A writer that writes a batch of a query in one task."""

    def __init__(self, options: Options, batch: int, *, attempt: int = 7) -> None:
        super().__init__(options)
        self._batch: Final = batch
        self._attempt: Final = attempt

    def write(self, given: Iterator[pa.RecordBatch]) -> Written:
        return self.written(Task(JOB, self._batch, 0, self._attempt), given)


@pytest.fixture
def broker() -> Iterator[Broker]:
    small = {"name": "small", "max_messages": 3, "full": "reject"}
    with Broker(queue=[small]) as running:
        yield running


def options(url: str, address: str = "out", **given: str) -> Options:
    return read_options({"url": url, "address": address, **given}, Use.SINK)


def rows(*texts: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": list(texts)})


def write(broker: Broker, batch: int, *texts: str) -> None:
    writer = OneTask(options(broker.url), batch)
    writer.show([writer.write(iter([rows(*texts)]))])


@pytest.mark.requirement("PIP-52")
def test_a_batch_behind_which_another_was_shown_is_not_lost_silently(broker: Broker) -> None:
    """A checkpoint that was restored from a backup repeats such a batch."""
    for batch, text in enumerate(("a", "b")):
        write(broker, batch, text)
    write(broker, 1, "b")
    with pytest.raises(
        BrokerError, match=rf"shown batch 1 of query {JOB}, this is batch 0: the ch"
    ):
        write(broker, 0, "other")
    assert len(broker.messages("out")) == 2


@pytest.mark.requirement("PIP-52")
def test_a_task_may_pause_between_batches_for_longer_than_a_connection_lives(
    broker: Broker,
) -> None:
    """Rows after the pause come by another connection, and follow the others in one stage."""

    def paused() -> Iterator[pa.RecordBatch]:
        yield rows("a", "b")
        broker.faults.drop_connections()
        yield rows()
        yield rows("c")

    writer = OneTask(options(broker.url), 0)
    written = writer.write(paused())
    assert written == Written(Task(JOB, 0, 0, 7), 3)
    assert not broker.messages("out")
    writer.show([written])
    ids = [view.properties["message_id"] for view in broker.messages("out")]
    assert ids == [f"ID:{JOB}/0/0/{row}" for row in range(3)]


DROPPING = [
    pytest.param(lambda asked: asked.ask("ABORT", "sink", JOB, batch=0), id="by an operator"),
    pytest.param(lambda asked: asked.ask("FORGET", "sink", JOB), id="with the sink"),
    pytest.param(lambda asked: asked.ask("DELETE", "queue", "out"), id="with the queue"),
]


@pytest.mark.requirement("PIP-52")
@pytest.mark.parametrize("drop", DROPPING)
def test_what_was_dropped_between_two_connections_of_a_task_is_told(
    broker: Broker, drop: Callable[[Management], object]
) -> None:
    """No message is shown, and the batch can be repeated."""

    def dropped() -> Iterator[pa.RecordBatch]:
        yield rows("a", "b")
        with opened(options(broker.url)) as asked:
            drop(asked)
        yield rows("c")

    writer = OneTask(options(broker.url), 0)
    written = writer.write(dropped())
    with pytest.raises(
        BrokerError, match=rf"attempt 7 of partition 0 in batch 0 of {JOB} sent 3 .* 1 are staged"
    ):
        writer.show([written])
    assert not broker.messages("out")
    again = OneTask(options(broker.url), 0, attempt=8)
    again.show([again.write(iter([rows("a", "b", "c")]))])
    assert len(broker.messages("out")) == 3


def test_a_batch_for_which_there_is_no_room_is_told_with_what_helps(broker: Broker) -> None:
    writer = OneTask(options(broker.url, "small"), 0)
    with pytest.raises(BrokerError, match=r"resource-limit-exceeded.*maxBytesPerTrigger.*--rate"):
        writer.write(iter([rows("a", "b", "c", "d")]))


@pytest.mark.requirement("PIP-50")
def test_a_broker_that_is_lost_when_all_is_shown_fails_no_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No program listens on port 9 of this machine."""
    writer = BatchWriting(options("amqp://127.0.0.1:9", **{"amqp.timeout": "1s"}))
    with caplog.at_level(logging.WARNING):
        writer.show_all([])  # there is nothing to show
    assert "the broker still remembers batch-" in caplog.text


class LateAnswers(PortProxy):
    """A proxy that passes on answers of `$management` when they are `late_s` old."""

    late_s = 1.5

    def see_answer(self, link: CutLink, data: bytes) -> bytes:
        if b"statusCode" not in data:
            return data
        asyncio.get_running_loop().call_later(self.late_s, link.near[1].write, data)
        return b""


LATE = [
    # messages of the batch, whether the driver waits for the answer long enough
    pytest.param(5_000, True, id="many messages"),
    pytest.param(1, False, id="one message"),
]


@pytest.mark.requirement("PIP-52")
@pytest.mark.parametrize(("count", "waits"), LATE)
def test_a_commit_may_take_longer_if_there_are_many_messages(
    broker: Broker, count: int, waits: bool
) -> None:
    writer = OneTask(options(broker.url), 0)
    written = writer.write(iter([rows(*["a"] * count)]))
    with proxied(broker.url, LateAnswers) as (url, _):
        slow = OneTask(options(url, **{"amqp.timeout": "1s"}), 0)
        if waits:
            slow.show([written])
        else:
            with pytest.raises(NoAnswerError, match=f"whether batch 0 of {JOB} is shown is unkn"):
                slow.show([written])
    with opened(options(broker.url)) as asked:
        assert asked.ask("READ", "sink", JOB)["batch"] == 0
