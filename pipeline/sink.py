"""Spark's writers. What a batch sends is staged at the broker, seen by nobody, until one request
of the driver shows all of it: once, however often the batch or that request is repeated.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from pipeline.broker_client import connected, opened
from pipeline.errors import BrokerError, GoneError
from pipeline.options import Options
from pipeline.outgoing import MessageMaker
from pipeline.publishing import Publisher

if TYPE_CHECKING:
    import pyarrow as pa
    from proton.utils import BlockingConnection

SINK: Final = "sink"

QUERY_PROPERTY: Final = "sql.streaming.queryId"
BATCH_PROPERTY: Final = "streaming.sql.batchId"
"""Spark's own names, of no public interface: a test holds it to them."""

ATTEMPT_BITS: Final = 63


@dataclass(frozen=True)
class Task:
    """What one task writes: a partition of a batch. No attempt at it has the number of another,
    which Spark's own numbers do not promise: they begin anew with each driver."""

    query: str
    batch: int
    partition: int
    attempt: int

    @property
    def name(self) -> str:
        """What its messages are called: the same for every attempt."""
        return f"{self.query}/{self.batch}/{self.partition}"

    def properties(self) -> dict[str, object]:
        """How a link says that what it sends is for the stage of this task."""
        from proton import int32

        return {
            "stage-query": self.query,
            "stage-batch": self.batch,
            "stage-partition": int32(self.partition),
            "stage-attempt": self.attempt,
        }


@dataclass
class Written(WriterCommitMessage):
    """What a task has sent."""

    task: Task
    messages: int


class _Sending:
    """A connection with a link for each address that is sent to."""

    def __init__(
        self, connection: BlockingConnection, properties: Mapping[str, object] | None
    ) -> None:
        self._connection: Final = connection
        self._properties: Final = properties
        self._publishers: Final[dict[str, Publisher]] = {}

    def send(self, address: str, data: bytes) -> None:
        publisher = self._publishers.get(address)
        if publisher is None:
            publisher = Publisher(self._connection, address, self._properties)
            self._publishers[address] = publisher
        publisher.send(data)

    def flush(self) -> None:
        for publisher in self._publishers.values():
            publisher.flush()


class Writing:
    """What both writers do."""

    def __init__(self, options: Options) -> None:
        self._options: Final = options

    def task(self) -> Task:
        """The task that this is run by."""
        raise NotImplementedError

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Send all rows; when this returns, the broker has them on disk."""
        task = self.task()
        options = self._options
        is_staged = options.text("delivery") == "staged"
        maker = MessageMaker(
            name=task.name,
            address=options.text("address"),
            body_type=options.text("bodyType"),
            raw=options.text("replay") == "raw",
            now_ms=lambda: time.time_ns() // 1_000_000,
        )
        messages = chain.from_iterable(map(maker.messages, iterator))
        first = next(messages, None)
        if first is None:
            return Written(task, 0)
        count = 0
        with connected(options) as connection:
            sending = _Sending(connection, task.properties() if is_staged else None)
            for message in chain([first], messages):
                sending.send(message.address, message.data)
                count += 1
            sending.flush()
        return Written(task, count)

    def show(self, written: Sequence[WriterCommitMessage | None]) -> None:
        """Show what those tasks have staged, if nobody has done it yet."""
        done = [each for each in written if isinstance(each, Written) and each.messages]
        if not done or self._options.text("delivery") != "staged":
            return
        first = done[0].task
        with opened(self._options) as broker:
            broker.ask(
                "COMMIT",
                SINK,
                first.query,
                batch=first.batch,
                partitions=[each.task.partition for each in done],
                attempts=[each.task.attempt for each in done],
            )

    def drop(self, written: Sequence[WriterCommitMessage | None]) -> None:
        """Drop what those tasks have staged. Of one that failed nothing is known here: what it
        staged goes with the query's next commit, or when the broker has kept it long enough."""
        done = [each for each in written if isinstance(each, Written) and each.messages]
        if not done or self._options.text("delivery") != "staged":
            return
        first = done[0].task
        with opened(self._options) as broker, suppress(GoneError):  # it may be gone already
            broker.ask("ABORT", SINK, first.query, batch=first.batch)


class StreamWriter(Writing, DataSourceStreamArrowWriter):
    """For `writeStream`: Spark's query and batch are what the broker remembers."""

    def task(self) -> Task:
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty(QUERY_PROPERTY)
        batch = context.getLocalProperty(BATCH_PROPERTY)
        if query is None or batch is None:
            raise BrokerError("Spark does not tell which batch of which query this is")
        return Task(query, int(batch), context.partitionId(), secrets.randbits(ATTEMPT_BITS))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - tasks know it
        self.show(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        self.drop(messages)


class BatchWriter(Writing, DataSourceArrowWriter):
    """For `write`: a query of one batch, whose name is forgotten when that is shown."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._job: Final = f"batch-{uuid.uuid4()}"

    def task(self) -> Task:
        context = TaskContext.get()
        assert context is not None
        return Task(self._job, 0, context.partitionId(), secrets.randbits(ATTEMPT_BITS))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.show(messages)
        if self._options.text("delivery") == "staged":
            with opened(self._options) as broker, suppress(GoneError):  # nothing was staged
                broker.ask("FORGET", SINK, self._job)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.drop(messages)
