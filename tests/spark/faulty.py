"""The data source `amqp` with a fault at a chosen place, once: `format("faulty")`.

Options in addition to the source's own: `fault.place` (one of PLACES), `fault.nth` (its batch,
counted from 0), `fault.action` (one of ACTIONS), `fault.once` (a file, made when the fault
strikes), `fault.pids` (the driver's processes), `fault.told` and `fault.pipe` (pipes with which
`pause` says that it has begun, and waits for its end).
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pyspark_amqp import DefaultSource

Offset = dict[str, Any]
PREFIX: Final = "fault."
PLACES: Final = ("asking", "acquired", "reading", "written", "committing", "committed")
ACTIONS: Final = ("kill-driver", "kill-worker", "fail", "pause")


class Fault:
    """The fault: its place, its batch and its action."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        facts = {
            name.removeprefix(PREFIX): value
            for name, value in options.items()
            if name.startswith(PREFIX)
        }
        self._facts: Final = facts
        assert not facts or facts["place"] in PLACES
        assert not facts or facts["action"] in ACTIONS

    def at(self, place: str, batch: int) -> None:
        """Strike if the fault is for this place and batch, and has not struck yet."""
        facts = self._facts
        if facts.get("place") != place or int(facts["nth"]) != batch:
            return
        try:
            os.close(os.open(facts["once"], os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        self._strike(facts["action"])

    def _strike(self, action: str) -> None:
        if action == "fail":
            raise RuntimeError("a fault that the test wants")
        if action == "pause":
            # opening a pipe waits for its other end, which the test opens to end the pause
            Path(self._facts["told"]).write_bytes(b"here")
            Path(self._facts["pipe"]).read_bytes()
            return
        pids = json.loads(self._facts["pids"]) if action == "kill-driver" else []
        for pid in [*pids, os.getpid()]:
            os.kill(pid, signal.SIGKILL)


def batch_of_task() -> int:
    context = TaskContext.get()
    assert context is not None
    return int(str(context.getLocalProperty("streaming.sql.batchId")))


class FaultySource(DefaultSource):
    """The source under test, whose reader and writer are wrapped."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        # the keys of the dict that Spark passes are in lower case
        given = dict(options)
        self.fault = Fault(given)
        super().__init__({k: v for k, v in given.items() if not k.startswith(PREFIX)})

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return FaultyReader(super().streamReader(schema), self.fault)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return FaultyWriter(super().streamWriter(schema, overwrite), self.fault)


class FaultyReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Passes every call on; strikes while the driver asks, and while a task reads."""

    def __init__(self, inner: Any, fault: Fault) -> None:
        self.inner = inner
        self.fault = fault
        self.batches = 0

    def initialOffset(self) -> Offset:
        return self.inner.initialOffset()  # type: ignore[no-any-return]

    def prepareForTriggerAvailableNow(self) -> None:
        self.inner.prepareForTriggerAvailableNow()

    def getDefaultReadLimit(self) -> ReadLimit:
        return self.inner.getDefaultReadLimit()  # type: ignore[no-any-return]

    def reportLatestOffset(self) -> Offset | None:
        return self.inner.reportLatestOffset()  # type: ignore[no-any-return]

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        self.fault.at("asking", self.batches)
        end: Offset = self.inner.latestOffset(start, limit)
        if end != start:
            self.fault.at("acquired", self.batches)
            self.batches += 1
        return end

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return self.inner.partitions(start, end)  # type: ignore[no-any-return]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for batch in self.inner.read(partition):
            yield batch
            self.fault.at("reading", batch_of_task())

    def commit(self, end: Offset) -> None:
        self.inner.commit(end)

    def stop(self) -> None:
        self.inner.stop()


class FaultyWriter(DataSourceStreamArrowWriter):
    """Passes every call on; strikes after staging, and before and after the driver's commit."""

    def __init__(self, inner: Any, fault: Fault) -> None:
        self.inner = inner
        self.fault = fault

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        message: WriterCommitMessage = self.inner.write(iterator)
        self.fault.at("written", batch_of_task())
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.fault.at("committing", batchId)
        self.inner.commit(messages, batchId)
        self.fault.at("committed", batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.inner.abort(messages, batchId)
