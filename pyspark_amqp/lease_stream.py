"""The stream that takes messages: exactly once into idempotent sinks, as long as its lease lives.

An offset is the number of an epoch of a lease. Spark asks for what lies behind `start` only when
all up to `start` is in its log of commits, so that is when `start` is settled; `commit`, which
comes later, and for the last batch never, settles what it names as well.
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

from pyspark_amqp.errors import GoneError
from pyspark_amqp.lease import Epoch, Lease, LeaseLostError, new_lease_id
from pyspark_amqp.messages import Place, rows, slice_of_lease
from pyspark_amqp.options import EPOCH_MESSAGES_MAX, Options
from pyspark_amqp.places import subscribed, waiting

if TYPE_CHECKING:
    import pyarrow as pa

VERSION: Final = 1

LOG: Final = logging.getLogger(__name__)


Offset = dict[str, Any]
"""`v`, `lease`, `base` and `epoch`. `base` is the epoch behind which the query began: Spark may
ask for the first offset once more, and get another lease, while the end of its first batch is of
the one before."""


@dataclass
class SlicePartition(InputPartition):
    """One slice of an epoch."""

    place: Place
    lease: str
    generation: int
    epoch: int
    part: int


class LeaseStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in one Python process for each query; executors get a copy that only reads."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options = options
        self._names = list(names)
        self._begin()

    def _begin(self) -> None:
        self._lease: Lease | None = None
        self._minted: str | None = None
        self._successors: dict[str, str] = {}
        self._epochs: dict[tuple[str, int], Epoch] = {}
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
            return _offset(chosen, base=lease.settled, epoch=lease.settled)
        if self._minted is None:
            self._minted = new_lease_id(self._options)
        return _offset(self._minted, base=0, epoch=0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.number("maxMessagesPerTrigger"))

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes later than now is left: the broker's clock says when that is."""
        self._available_now = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Settle `start`, and take what is there; without news, `start` as it is."""
        try:
            return self._latest(start, limit)
        except GoneError as error:
            name = str(start["lease"])
            self._replace(self._successors.get(name, name), str(error))
            return self._latest(start, limit)

    def _latest(self, start: Offset, limit: ReadLimit) -> Offset:
        lease = self._lease_behind(start)
        is_same = lease.name == start["lease"]
        if not self._is_enough(lease):
            time.sleep(self._options.number("pollTimeoutMs") / 1000)
            return start
        epoch = self._acquired(lease, start["epoch"] + 1 if is_same else 1, limit)
        if not epoch.messages:
            return start
        self._epochs = {(lease.name, epoch.number): epoch}
        return _offset(lease.name, base=start["base"] if is_same else 0, epoch=epoch.number)

    def _lease_behind(self, start: Offset) -> Lease:
        """The lease that goes on behind `start`, which is settled in it."""
        name = start["lease"]
        if name not in self._successors:
            lease = self._opened(name)
            if lease.epoch >= start["epoch"]:
                lease.settle(start["epoch"])
                return lease
            self._replace(name, f"it is at epoch {lease.epoch}, not {start['epoch']}")
        return self._opened(self._successors[name])

    def _replace(self, name: str, why: str) -> None:
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

    def _acquired(self, lease: Lease, epoch: int, limit: ReadLimit) -> Epoch:
        messages = min(self._options.number("maxMessagesPerTrigger"), EPOCH_MESSAGES_MAX)
        size = self._options.number("maxBytesPerTrigger")
        if isinstance(limit, ReadMaxRows):
            messages = min(limit.max_rows, EPOCH_MESSAGES_MAX)
        elif isinstance(limit, ReadMaxBytes):
            size = min(size or limit.max_bytes, limit.max_bytes)
        elif isinstance(limit, ReadAllAvailable):
            messages = EPOCH_MESSAGES_MAX
        wait_ms = 0 if self._available_now else self._options.number("pollTimeoutMs")
        return lease.acquire(
            epoch, max_messages=messages, max_bytes=size, until_ms=self._until_ms, wait_ms=wait_ms
        )

    def _is_enough(self, lease: Lease) -> bool:
        """Whether as many wait as `minMessagesPerTrigger` says, or have waited long enough."""
        least = self._options.number("minMessagesPerTrigger")
        if not least or self._available_now or lease.epoch > lease.settled:
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
        return None

    # ---- what a batch has

    def partitions(self, start: Offset, end: Offset) -> Sequence[SlicePartition]:
        """The slices of what `end` names, none where its lease is lost and that is no failure:
        its messages come again. `start` may be of a lease that was never used."""
        try:
            return self._slices(start, end)
        except GoneError as error:
            self._replace(end["lease"], str(error))
            return []

    def _slices(self, start: Offset, end: Offset) -> Sequence[SlicePartition]:
        lease = self._opened(end["lease"])
        behind = start["epoch"] if start["lease"] == end["lease"] else end["base"]
        if lease.epoch < end["epoch"]:
            self._replace(lease.name, f"it is at epoch {lease.epoch}, not {end['epoch']}")
            return []
        return [
            SlicePartition(lease.place, lease.name, lease.generation, number, part)
            for number in range(behind + 1, end["epoch"] + 1)
            for part, count in enumerate(self._epoch(lease, number).slices)
            if count
        ]

    def _epoch(self, lease: Lease, number: int) -> Epoch:
        known = self._epochs.get((lease.name, number))
        if known is not None:
            return known
        return lease.acquire(number, max_messages=1, max_bytes=0, until_ms=0, wait_ms=0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a slice; any number of times, on any executor."""
        assert isinstance(partition, SlicePartition)
        part = slice_of_lease(
            partition.lease, partition.generation, partition.epoch, partition.part
        )
        return rows(self._options, self._names, partition.place, part)

    def commit(self, end: Offset) -> None:
        """Settle what is in Spark's log of commits. FencedError where another driver has it."""
        if end["lease"] in self._successors:
            return
        try:
            lease = self._opened(end["lease"])
            if lease.epoch >= end["epoch"]:
                lease.settle(end["epoch"])
        except GoneError as error:
            self._replace(end["lease"], str(error))

    def stop(self) -> None:
        """Spark hardly ever calls this, so nothing depends on it: the lease stays as it is."""
        if self._lease is not None:
            self._lease.close()


def _offset(lease: str, *, base: int, epoch: int) -> Offset:
    return {"v": VERSION, "lease": lease, "base": base, "epoch": epoch}
