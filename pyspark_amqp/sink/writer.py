"""Spark's writers of the data source `amqp`.

The messages of a batch are staged at the broker, hidden from consumers, until one request of the
driver shows all of them: once, however often the batch or that request is repeated.
"""

from __future__ import annotations

import logging
import secrets
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from pyspark_amqp.errors import BrokerError, GoneError
from pyspark_amqp.options import Options
from pyspark_amqp.sink.encoding import MessageMaker
from pyspark_amqp.sink.sending import SINK, Task, TaskSender
from pyspark_amqp.wire.broker_client import Management, opened
from pyspark_amqp.worker import keep_what_is_loaded

if TYPE_CHECKING:
    import pyarrow as pa

QUERY_PROPERTY: Final = "sql.streaming.queryId"
BATCH_PROPERTY: Final = "streaming.sql.batchId"
"""Names of Spark's local properties, which are no public interface: a test compares them."""

ATTEMPT_BITS: Final = 63

FULL: Final = "amqp:resource-limit-exceeded"
FULL_ADVICE: Final = (
    "a batch is staged whole before any of it is shown: smaller ones (maxBytesPerTrigger or "
    "maxMessagesPerTrigger of a stream, --rate of a replay) may have room"
)

LOG: Final = logging.getLogger(__name__)


@dataclass
class SinkCommit(WriterCommitMessage):
    """The task, and the number of messages that it has sent."""

    task: Task
    messages: int


class Writing:
    """The parts that both writers share."""

    def __init__(self, options: Options) -> None:
        self._options: Final = options

    @property
    def _is_staged(self) -> bool:
        return self._options.text("delivery") == "staged"

    def task(self) -> Task:
        """Return the task in which this code runs."""
        raise NotImplementedError

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkCommit:
        """Send all rows; when this returns, the broker has them on disk."""
        keep_what_is_loaded()
        task = self.task()
        options = self._options
        maker = MessageMaker(
            name=task.name,
            address=options.text("address"),
            body_type=options.text("bodyType"),
            raw=options.text("replay") == "raw",
            now_ms=lambda: time.time_ns() // 1_000_000,
        )
        sender = TaskSender(options, maker, task if self._is_staged else None)
        try:
            for batch in iterator:
                sender.send(batch)
        except BrokerError as error:
            if self._is_staged and FULL in str(error):
                raise BrokerError(f"{error}; {FULL_ADVICE}") from error
            raise
        return SinkCommit(task, sender.count)

    def _staged(self, written: Sequence[WriterCommitMessage | None]) -> list[SinkCommit]:
        """Return the tasks in `written` that have messages in a stage."""
        if not self._is_staged:
            return []
        return [each for each in written if isinstance(each, SinkCommit) and each.messages]

    def show(self, written: Sequence[WriterCommitMessage | None]) -> None:
        """Show the messages that those tasks have staged, unless they were shown before."""
        done = self._staged(written)
        if not done:
            return
        first = done[0].task
        with opened(self._options) as broker:
            told = broker.ask(
                "COMMIT",
                SINK,
                first.query,
                batch=first.batch,
                partitions=[each.task.partition for each in done],
                attempts=[each.task.attempt for each in done],
                counts=[each.messages for each in done],
            )
            if told.get("committed") is False:
                _check_shown(broker, first)

    def drop(self, written: Sequence[WriterCommitMessage | None]) -> None:
        """Drop the messages that those tasks have staged.

        Nothing is known here of a task that failed: the broker drops its messages with the query's
        next commit, or after it has kept them long enough.
        """
        done = self._staged(written)
        if not done:
            return
        first = done[0].task
        with opened(self._options) as broker, suppress(GoneError):  # it may be dropped already
            broker.ask("ABORT", SINK, first.query, batch=first.batch)


def _check_shown(broker: Management, task: Task) -> None:
    """Raise BrokerError if a later batch than this one was shown before.

    Spark only repeats its last batch, so in that case these messages are new, and the broker has
    dropped them.
    """
    last = int(str(broker.ask("READ", SINK, task.query)["batch"]))
    if last > task.batch:
        raise BrokerError(
            f"the broker has shown batch {last} of query {task.query}, this is batch {task.batch}: "
            "the checkpoint is older than what was shown, and nothing of this batch is; use a new "
            f"checkpoint, or `jms-broker sink forget {task.query}` to have all batches from this "
            "one on shown again"
        )


class StreamWriter(Writing, DataSourceStreamArrowWriter):
    """The writer for `writeStream`: the broker remembers Spark's query and batch."""

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


class SinkBatchWriter(Writing, DataSourceArrowWriter):
    """The writer for `write`: a query of one batch, which the broker forgets when that is shown."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._job: Final = f"batch-{uuid.uuid4()}"

    def task(self) -> Task:
        context = TaskContext.get()
        assert context is not None
        return Task(self._job, 0, context.partitionId(), secrets.randbits(ATTEMPT_BITS))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.show(messages)
        if self._is_staged:
            self._forget()

    def _forget(self) -> None:
        try:
            with opened(self._options) as broker, suppress(GoneError):  # nothing was staged
                broker.ask("FORGET", SINK, self._job)
        except BrokerError as error:
            # all is shown: if the write failed now, it would be repeated, and its messages be there
            # twice
            LOG.warning(
                "the broker still remembers %s: %s (`jms-broker sink forget %s`)",
                *(self._job, error, self._job),
            )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.drop(messages)
