"""The stream that takes messages: exactly once into idempotent sinks, as long as its lease lives.

An offset is the number of a batch of a lease. Spark asks for messages behind `start` only when all
up to `start` is in its log of commits, so `start` is settled then. `commit`, which Spark calls
later, and for the last batch never, settles its offset as well.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_amqp.errors import BrokerError, GoneError
from pyspark_amqp.one_line import STREAM_METHODS, one_line_errors
from pyspark_amqp.options import LEASE_BATCH_MESSAGES_MAX, Options
from pyspark_amqp.source.lease import Lease, LeaseBatch, LeaseLostError, new_lease_id
from pyspark_amqp.source.messages import Place, rows, slice_of_lease
from pyspark_amqp.source.places import subscribed, waiting

if TYPE_CHECKING:
    import pyarrow as pa

VERSION: Final = 1

LOG: Final = logging.getLogger(__name__)


Offset = dict[str, Any]
"""An offset has `v`, `lease`, `base` and `batch`, which older checkpoints call `epoch`. `base` is
the batch behind which the query began: Spark may ask for the first offset once more, and get
another lease, while the end of its first batch is of the lease before."""


@dataclass
class SlicePartition(InputPartition):
    """One slice of a batch."""

    place: Place
    lease: str
    fencing_token: int
    batch_number: int
    part: int


@one_line_errors(*STREAM_METHODS)
class LeaseStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of the stream.

    It lives in one Python process for each query; executors get a copy that only reads.
    """

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options = options
        self._names = list(names)
        self._begin()

    def _begin(self) -> None:
        self._lease: Lease | None = None
        self._minted: str | None = None
        self._successors: dict[str, str] = {}
        self._batches: dict[tuple[str, int], LeaseBatch] = {}
        self._available_now = False
        self._until_ms = 0
        self._few_since: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_names": self._names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._options, self._names = state["_options"], state["_names"]
        self._begin()

    # ---- where the stream is

    def initialOffset(self) -> Offset:
        chosen = self._options.text("lease")
        if chosen is not None:
            lease = self._opened(chosen)
            return _offset(chosen, base=lease.settled, batch_number=lease.settled)
        if self._minted is None:
            self._minted = new_lease_id(self._options)
        return _offset(self._minted, base=0, batch_number=0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.number("maxMessagesPerTrigger"))

    def prepareForTriggerAvailableNow(self) -> None:
        """Leave out messages that arrive later than now, by the broker's clock."""
        self._available_now = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Settle `start`, take a batch and return its offset; without messages return `start`."""
        try:
            return self._latest(start, limit)
        except GoneError as error:
            name = str(start["lease"])
            self._replace(self._successors.get(name, name), str(error))
            return self._latest(start, limit)

    def _latest(self, start: Offset, limit: ReadLimit) -> Offset:
        lease = self._lease_behind(start)
        is_same = lease.name == start["lease"]
        if not self._check_trigger(lease):
            time.sleep(self._options.number("pollTimeoutMs") / 1000)
            return start
        lease_batch = self._acquired(lease, _batch_of(start) + 1 if is_same else 1, limit)
        if not lease_batch.messages:
            return start
        self._batches = {(lease.name, lease_batch.number): lease_batch}
        return _offset(
            lease.name, base=start["base"] if is_same else 0, batch_number=lease_batch.number
        )

    def _lease_behind(self, start: Offset) -> Lease:
        """Return the lease that continues behind `start`, and settle `start` if that is in it."""
        name = start["lease"]
        if name not in self._successors:
            lease = self._opened(name)
            if lease.batch_number >= _batch_of(start):
                lease.settle(_batch_of(start))
                return lease
            self._replace(name, f"it is at batch {lease.batch_number}, not {_batch_of(start)}")
        return self._opened(self._successors[name])

    def _replace(self, name: str, why: str) -> None:
        """Continue with a new lease, or raise LeaseLostError, by the option failOnLeaseLoss."""
        error = LeaseLostError(name, why)
        if self._options.is_set("failOnLeaseLoss"):
            raise error
        LOG.warning("%s", error)
        for old, new in list(self._successors.items()):
            if new == name:
                del self._successors[old]
                name = old
        self._successors[name] = new_lease_id(self._options)

    def _opened(self, name: str) -> Lease:
        lease = self._lease
        if lease is None or lease.name != name:
            if lease is not None:
                lease.close()
            self._lease = lease = Lease(self._options, name, subscribed(self._options))
            if self._available_now and not self._until_ms:
                self._until_ms = lease.now_ms
        return lease

    def _acquired(self, lease: Lease, batch_number: int, limit: ReadLimit) -> LeaseBatch:
        messages = min(self._options.number("maxMessagesPerTrigger"), LEASE_BATCH_MESSAGES_MAX)
        size = self._options.number("maxBytesPerTrigger")
        if isinstance(limit, ReadMaxRows):
            messages = min(limit.max_rows, LEASE_BATCH_MESSAGES_MAX)
        elif isinstance(limit, ReadMaxBytes):
            size = min(size or limit.max_bytes, limit.max_bytes)
        elif isinstance(limit, ReadAllAvailable):
            messages = LEASE_BATCH_MESSAGES_MAX
        wait_ms = 0 if self._available_now else self._options.number("pollTimeoutMs")
        return lease.acquire(
            batch_number,
            max_messages=messages,
            max_bytes=size,
            until_ms=self._until_ms,
            wait_ms=wait_ms,
        )

    def _check_trigger(self, lease: Lease) -> bool:
        """Note since when messages wait; return whether a batch is due.

        The options `minMessagesPerTrigger` and `maxTriggerDelay` say when it is.
        """
        least = self._options.number("minMessagesPerTrigger")
        if not least or self._available_now or lease.batch_number > lease.settled:
            return True
        now = time.monotonic()
        count = waiting(self._options, lease.place)
        if count == 0:
            self._few_since = None
            return False
        if self._few_since is None:
            self._few_since = now
        if count < least and now - self._few_since < self._options.number("maxTriggerDelay") / 1000:
            return False
        self._few_since = None
        return True

    def reportLatestOffset(self) -> Offset | None:
        """Return how far the stream is behind, for `latestOffset` in the progress of the query.

        Return None without a lease, or if the broker cannot be asked: that fails no query.
        """
        lease = self._lease
        if lease is None:
            return None
        told = {
            **_offset(lease.name, base=0, batch_number=lease.batch_number),
            "settledBatch": lease.settled,
            "leaseState": lease.state,
        }
        try:
            return {**told, **lease.behind()}
        except BrokerError as error:
            LOG.warning("how far the stream is behind is unknown: %s", error)
            return told

    # ---- what a batch has

    def partitions(self, start: Offset, end: Offset) -> Sequence[SlicePartition]:
        """Return the slices of the batches up to `end`.

        Return none if the lease is lost and that is no failure: its messages are delivered again.
        `start` may be of a lease that was never used.
        """
        try:
            return self._slices(start, end)
        except GoneError as error:
            self._replace(end["lease"], str(error))
            return []

    def _slices(self, start: Offset, end: Offset) -> Sequence[SlicePartition]:
        lease = self._opened(end["lease"])
        behind = _batch_of(start) if start["lease"] == end["lease"] else end["base"]
        if lease.batch_number < _batch_of(end):
            self._replace(lease.name, f"it is at batch {lease.batch_number}, not {_batch_of(end)}")
            return []
        return [
            SlicePartition(lease.place, lease.name, lease.fencing_token, number, part)
            for number in range(behind + 1, _batch_of(end) + 1)
            for part, count in enumerate(self._lease_batch(lease, number).slices)
            if count
        ]

    def _lease_batch(self, lease: Lease, number: int) -> LeaseBatch:
        known = self._batches.get((lease.name, number))
        if known is not None:
            return known
        return lease.acquire(number, max_messages=1, max_bytes=0, until_ms=0, wait_ms=0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the messages of a slice as rows; any number of times, on any executor."""
        assert isinstance(partition, SlicePartition)
        part = slice_of_lease(
            partition.lease, partition.fencing_token, partition.batch_number, partition.part
        )
        return rows(self._options, self._names, partition.place, part)

    def commit(self, end: Offset) -> None:
        """Settle all up to `end`, which is in Spark's log of commits.

        Raise FencedError if another driver has the lease.
        """
        if end["lease"] in self._successors:
            return
        try:
            lease = self._opened(end["lease"])
            if lease.batch_number >= _batch_of(end):
                lease.settle(_batch_of(end))
        except GoneError as error:
            self._replace(end["lease"], str(error))

    def stop(self) -> None:
        """Close the connections; the lease stays.

        Spark hardly ever calls this, so nothing depends on it.
        """
        if self._lease is not None:
            self._lease.close()


def _batch_of(offset: Offset) -> int:
    """Return the number of the batch that `offset` names, even if it is of an older checkpoint."""
    return int(offset["batch"] if "batch" in offset else offset["epoch"])


def _offset(lease: str, *, base: int, batch_number: int) -> Offset:
    return {"v": VERSION, "lease": lease, "base": base, "batch": batch_number}
