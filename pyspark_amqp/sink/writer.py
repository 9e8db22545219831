"""Spark's writers of the data source `amqp`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from pyspark_amqp.errors import BrokerError
from pyspark_amqp.one_line import one_line_errors
from pyspark_amqp.sink.sending import Task
from pyspark_amqp.sink.writing import ATTEMPT_BITS, BatchWriting, Writing, Written
from pyspark_amqp.worker import keep_what_is_loaded

if TYPE_CHECKING:
    import pyarrow as pa

QUERY_PROPERTY: Final = "sql.streaming.queryId"
BATCH_PROPERTY: Final = "streaming.sql.batchId"
"""Names of Spark's local properties, which are no public interface: a test compares them."""


@dataclass
class SinkCommit(Written, WriterCommitMessage):
    """The task and its number of messages, as Spark carries them to the driver."""


@one_line_errors("write", "commit", "abort")
class StreamWriter(Writing, DataSourceStreamArrowWriter):
    """The writer for `writeStream`: the broker remembers Spark's query and batch."""

    def task(self) -> Task:
        """Return the task in which this code runs."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty(QUERY_PROPERTY)
        batch = context.getLocalProperty(BATCH_PROPERTY)
        if query is None or batch is None:
            raise BrokerError("Spark does not tell which batch of which query this is")
        return Task(query, int(batch), context.partitionId(), secrets.randbits(ATTEMPT_BITS))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkCommit:
        keep_what_is_loaded()
        done = self.written(self.task(), iterator)
        return SinkCommit(done.task, done.messages)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - tasks know it
        self.show(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        self.drop(messages)


@one_line_errors("write", "commit", "abort")
class SinkBatchWriter(BatchWriting, DataSourceArrowWriter):
    """The writer for `write`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkCommit:
        keep_what_is_loaded()
        context = TaskContext.get()
        assert context is not None
        done = self.written(self.task_of(context.partitionId()), iterator)
        return SinkCommit(done.task, done.messages)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.show_all(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.drop(messages)
