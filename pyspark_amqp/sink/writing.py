"""The writing of rows to the broker: one batch, by any number of tasks.

The messages of a batch are staged at the broker, hidden from consumers, until one request shows all
of them: once, however often the batch or that request is repeated.
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

from pyspark_amqp.errors import BrokerError, GoneError, NoAnswerError, TransientError
from pyspark_amqp.options import Options
from pyspark_amqp.sink.encoding import MessageMaker
from pyspark_amqp.sink.sending import SINK, Task, TaskSender
from pyspark_amqp.wire.broker_client import Management, opened

if TYPE_CHECKING:
    import pyarrow as pa

ATTEMPT_BITS: Final = 63

COMMIT_MS: Final = 1
"""Milliseconds in which a slow broker commits a message: a large batch takes longer than the option
amqp.timeout allows."""

FULL: Final = "amqp:resource-limit-exceeded"
FULL_ADVICE: Final = (
    "a batch is staged whole before any of it is shown: smaller ones (maxBytesPerTrigger or "
    "maxMessagesPerTrigger of a stream, --rate of a replay) may have room"
)

LOG: Final = logging.getLogger(__name__)


@dataclass
class Written:
    """A task, and the number of messages that it has sent."""

    task: Task
    messages: int


class Writing:
    """The writing of the tasks of one batch, and of the process that has them run."""

    def __init__(self, options: Options) -> None:
        self._options: Final = options

    @property
    def _is_staged(self) -> bool:
        return self._options.text("delivery") == "staged"

    def written(self, task: Task, rows: Iterator[pa.RecordBatch]) -> Written:
        """Send all rows; when this returns, the broker has them on disk."""
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
            for batch in rows:
                sender.send(batch)
        except BrokerError as error:
            if self._is_staged and FULL in str(error):
                raise BrokerError(f"{error}; {FULL_ADVICE}") from error
            raise
        return Written(task, sender.count)

    def _staged(self, written: Sequence[object]) -> list[Written]:
        """Return the tasks in `written` that have messages in a stage."""
        if not self._is_staged:
            return []
        return [each for each in written if isinstance(each, Written) and each.messages]

    def show(self, written: Sequence[object]) -> None:
        """Show the messages that those tasks have staged, unless they were shown before."""
        done = self._staged(written)
        if not done:
            return
        first = done[0].task
        with opened(self._options) as broker:
            if not _is_committed_now(broker, first, done):
                _check_shown(broker, first)

    def drop(self, written: Sequence[object]) -> None:
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

    def forget(self, query: str) -> None:
        """Let the broker forget a query of one batch, of which all is shown."""
        if not self._is_staged:
            return
        try:
            with opened(self._options) as broker, suppress(GoneError):  # nothing was staged
                broker.ask("FORGET", SINK, query)
        except BrokerError as error:
            # all is shown: if the write failed now, it would be repeated, and its messages be there
            # twice
            LOG.warning(
                "the broker still remembers %s: %s (`jms-broker sink forget %s`)",
                *(query, error, query),
            )


def _is_committed_now(broker: Management, task: Task, done: Sequence[Written]) -> bool:
    """Have the batch of `task` committed; return False if it was before.

    Raise an error that says so if it may be committed although there is no answer.
    """
    try:
        told = broker.ask(
            "COMMIT",
            SINK,
            task.query,
            patience_ms=COMMIT_MS * sum(each.messages for each in done),
            batch=task.batch,
            partitions=[each.task.partition for each in done],
            attempts=[each.task.attempt for each in done],
            counts=[each.messages for each in done],
        )
    except (NoAnswerError, TransientError) as error:
        raise type(error)(
            f"{error}; whether batch {task.batch} of {task.query} is shown is unknown:"
            f" `jms-broker sink show {task.query}` names the last batch that is"
        ) from error
    return told.get("committed") is not False


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


class BatchWriting(Writing):
    """The writing of a query of one batch, which the broker forgets when that is shown."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.query: Final = f"batch-{uuid.uuid4()}"

    def task_of(self, partition: int) -> Task:
        """Return a new attempt at a partition of the batch."""
        return Task(self.query, 0, partition, secrets.randbits(ATTEMPT_BITS))

    def show_all(self, written: Sequence[object]) -> None:
        """Show all messages of those tasks."""
        self.show(written)
        self.forget(self.query)

    def write_all(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Send all rows from this process and show them; return their number."""
        written = self.written(self.task_of(0), rows)
        self.show_all([written])
        return written.messages
