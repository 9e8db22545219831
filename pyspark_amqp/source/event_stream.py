"""The event log as a stream: an id is the offset, so each row is read once, in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_amqp.errors import BrokerError
from pyspark_amqp.one_line import STREAM_METHODS, one_line_errors
from pyspark_amqp.options import Options
from pyspark_amqp.source import events
from pyspark_amqp.source.readers import EventPartition

if TYPE_CHECKING:
    import pyarrow as pa

LOG: Final = logging.getLogger(__name__)

Offset = dict[str, int]

VERSION: Final = 1


@one_line_errors(*STREAM_METHODS)
class EventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream reader of the event log.

    An offset is `{"v": 1, "base": the id behind which the query began, "id": the last id read}`.
    Spark asks for the first offset again if the first batch was not committed, and by then it may
    differ: the `base` of the end offset is the one that was planned with.
    """

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options: Final = options
        self._names: Final = list(names)
        self._most: Final = options.number("maxMessagesPerTrigger")
        self._last_known = 0
        self._planned: int | None = None
        self._stop_at: int | None = None

    def initialOffset(self) -> Offset:
        first, last = self._bounds()
        start = self._options.position("startingPosition")
        if self._options.is_latest("startingPosition"):
            behind = last
        else:
            behind = events.first_behind(self._options, start, first)
        return {"v": VERSION, "base": behind, "id": behind}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._stop_at = self._bounds()[1]

    def reportLatestOffset(self) -> Offset | None:
        """Return how far the stream is behind, for `latestOffset` in the progress of the query.

        `oldestAgeMs`, the age of the first row that no batch has, is by this machine's clock, and
        left out if there is no such row.
        """
        told = {"v": VERSION, "base": 0, "id": self._last_known}
        if self._planned is None:
            return told
        told["rowsBehind"] = max(0, self._last_known - self._planned)
        if told["rowsBehind"]:
            told |= self._age(self._planned)
        return told

    def _age(self, behind: int) -> dict[str, int]:
        try:
            for batch in events.rows(self._options, ["at"], behind, behind + 1):
                age = datetime.now(UTC) - batch.column("at")[0].as_py()
                return {"oldestAgeMs": max(0, age // timedelta(milliseconds=1))}
        except BrokerError as error:
            LOG.warning("the age of row %d of the event log is unknown: %s", behind + 1, error)
        return {}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the offset up to `limit` rows after `start`.

        Without new rows, wait once for `pollTimeoutMs`, unless Spark reads only what is available
        now; return `start` if there are still none.
        """
        offset = self._latest(start, limit)
        self._planned = offset["id"]
        return offset

    def _latest(self, start: Offset, limit: ReadLimit) -> Offset:
        last = self._last(start)
        if last <= start["id"] and self._stop_at is None:
            time.sleep(self._options.number("pollTimeoutMs") / 1000)
            last = self._last(start)
        if last <= start["id"]:
            return start
        if isinstance(limit, ReadMaxRows):
            last = min(last, start["id"] + limit.max_rows)
        elif not isinstance(limit, ReadAllAvailable):
            last = min(last, start["id"] + self._most)
        return {**start, "id": last}

    def _last(self, start: Offset) -> int:
        self._last_known = max(self._last_known, start["id"])
        first, last = self._bounds()
        events.check_same(start["id"], last)
        events.check_loss(self._options, start["id"] + 1, first)
        return last if self._stop_at is None else min(last, self._stop_at)

    def _bounds(self) -> tuple[int, int]:
        first, last = events.bounds(self._options, self._last_known)
        self._last_known = last
        return first, last

    def partitions(self, start: Offset, end: Offset) -> Sequence[EventPartition]:
        """Return ranges of ids; raise DataLossError if their rows were removed (failOnDataLoss).

        After a restart Spark calls this first, for a batch that was planned before: all of that
        batch must still exist.
        """
        behind = start["id"] if start["base"] == end["base"] else end["base"]
        self._last_known = max(self._last_known, end["id"])
        first, last = self._bounds()
        events.check_same(end["id"], last)
        if behind < end["id"]:
            events.check_loss(self._options, behind + 1, first)
        parts = self._options.number("numPartitions")
        return [EventPartition(*each) for each in events.ranges(behind, end["id"], parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EventPartition)
        since_ms = self._options.position("startingPosition").time_ms
        yield from events.rows(
            self._options, self._names, partition.behind, partition.until, since_ms=since_ms
        )
        if self._options.is_set("failOnDataLoss"):
            # The broker continues to trim: rows may have been removed before they were read here.
            first, _ = events.bounds(self._options, partition.until)
            events.check_loss(self._options, partition.behind + 1, first)

    def commit(self, end: Offset) -> None:
        """Do nothing: the broker keeps the event log as long as its settings say."""

    def stop(self) -> None:
        """Do nothing: no connection is open."""
