"""A source and a sink without a broker, which record every call that Spark makes.

The stream is the numbers from 0 on, `total` of them. Each call becomes a line of JSON in the file
`calls`; processes of every kind append to it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    Filter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

Call = dict[str, Any]
Offset = dict[str, Any]
Options = Mapping[str, str]

PARTITIONS: Final = 2
PER_BATCH: Final = 10


def note(options: Options, call: str, **facts: object) -> None:
    """Append one line; a single write to a file opened for appending is not mixed with others."""
    line = json.dumps({"call": call, "pid": os.getpid(), **facts}) + "\n"
    handle = os.open(options["calls"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def calls(path: Path, *names: str) -> list[Call]:
    """Return the recorded calls in order; only those of `names`, if any are given."""
    noted: list[Call] = [json.loads(line) for line in path.read_text().splitlines()]
    return [call for call in noted if not names or call["call"] in names]


def names_in(folder: str) -> list[int]:
    """Return the numbers of the batches that have an entry in a log of the checkpoint."""
    path = Path(folder)
    return sorted(int(each.name) for each in path.iterdir() if each.name.isdigit())


def here_and_now() -> dict[str, object]:
    """Return the facts that a task can learn about where it runs."""
    context = TaskContext.get()
    assert context is not None
    return {
        "batch": context.getLocalProperty("streaming.sql.batchId"),
        "query": context.getLocalProperty("sql.streaming.queryId"),
        "partition": context.partitionId(),
        "attempt": context.taskAttemptId(),
        "try": context.attemptNumber(),
    }


@dataclass
class Numbers(InputPartition):
    """A partition: the numbers from `first` on, below `end`."""

    first: int
    end: int


class ToySource(DataSource):
    """The data source of `format("toy")`."""

    @classmethod
    def name(cls) -> str:
        return "toy"

    def schema(self) -> str:
        return "number BIGINT, word STRING"

    def reader(self, schema: StructType) -> DataSourceReader:
        note(self.options, "reader", columns=schema.names)
        if self.options.get("pushdown") == "true":
            return PushingReader(self.options, schema)
        return ToyReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002
        return ToyStreamReader(self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002
        note(self.options, "streamWriter")
        return ToyStreamWriter(self.options)


class UnforkedToySource(ToySource):
    """The data source of `format("unforked toy")`, for a test that starts Spark's own processes."""

    @classmethod
    def name(cls) -> str:
        return "unforked toy"


class ToyReader(DataSourceReader):
    """A batch read of ten numbers, in the columns of the requested schema."""

    def __init__(self, options: MutableMapping[str, str], schema: StructType) -> None:
        self.options = options
        self.names = schema.names

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        number = pa.field("number", pa.int64(), nullable=self.options.get("nullable") != "false")
        fields = {"number": number, "word": pa.field("word", pa.string())}
        schema = pa.schema([fields[name] for name in self.names])
        values = {"number": range(10), "word": map(str, range(10))}
        columns = [pa.array(values[name], schema.field(name).type) for name in self.names]
        yield pa.record_batch(columns, schema=schema)


class PushingReader(ToyReader):
    """A reader that takes filters and leaves all of them to Spark."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        note(self.options, "pushFilters", filters=[repr(each) for each in filters])
        yield from filters


class ToyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Ten numbers per batch. Each question for the latest offset also reads the checkpoint."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options
        self.beats = 0
        note(options, "streamReader")

    def __getstate__(self) -> dict[str, object]:
        return {"options": self.options}

    def initialOffset(self) -> Offset:
        fresh = os.urandom(4).hex()
        note(self.options, "initialOffset", fresh=fresh)
        threading.Thread(target=self._beat, daemon=True).start()
        return {"at": 0, "minted": fresh}

    def _beat(self) -> None:
        """Record that a thread runs in the driver's process, like one that renews a lease."""
        note(self.options, "beat")

    def prepareForTriggerAvailableNow(self) -> None:
        note(self.options, "prepareForTriggerAvailableNow")

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(PER_BATCH)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        assert isinstance(limit, ReadMaxRows), limit
        committed = names_in(f"{self.options['checkpoint']}/commits")
        note(self.options, "latestOffset", start=start, limit=limit.max_rows, committed=committed)
        end = min(int(self.options["total"]), start["at"] + limit.max_rows)
        return start if end == start["at"] else {**start, "at": end}

    def reportLatestOffset(self) -> Offset:
        return {"at": int(self.options["total"])}

    def partitions(self, start: Offset, end: Offset) -> list[Numbers]:
        note(self.options, "partitions", start=start, end=end)
        step = -(-(end["at"] - start["at"]) // PARTITIONS)
        firsts = range(start["at"], end["at"], step)
        return [Numbers(first, min(end["at"], first + step)) for first in firsts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Numbers)
        note(self.options, "read", first=partition.first, **here_and_now())
        numbers = list(range(partition.first, partition.end))
        columns = [pa.array(numbers, pa.int64()), pa.array([str(each) for each in numbers])]
        yield pa.record_batch(columns, names=["number", "word"])

    def commit(self, end: Offset) -> None:
        note(self.options, "commit", end=end)

    def stop(self) -> None:
        note(self.options, "stop")


@dataclass
class Written(WriterCommitMessage):
    """The number of rows that a task wrote."""

    rows: int


class ToyStreamWriter(DataSourceStreamWriter):
    """Records its calls. The first `failures` attempts fail; `message=none` returns None.

    The commit of batch `die` fails.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        numbers = [row.number for row in iterator]
        facts = here_and_now()
        note(self.options, "write", numbers=numbers, **facts)
        if facts["try"] < int(self.options.get("failures", "0")):  # type: ignore[operator]
            raise RuntimeError("a task that fails")
        if self.options.get("message") == "none":
            return None  # type: ignore[return-value]
        return Written(len(numbers))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        rows = [message.rows for message in messages if isinstance(message, Written)]
        note(self.options, "writer.commit", batch=batchId, rows=rows)
        if self.options.get("die") == str(batchId):
            raise RuntimeError("a commit that fails")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        note(self.options, "writer.abort", batch=batchId, none=[not each for each in messages])
