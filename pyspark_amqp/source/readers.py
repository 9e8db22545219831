"""Spark's batch readers: of browsed queues, and of the event log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from pyspark_amqp.options import Options
from pyspark_amqp.source import events
from pyspark_amqp.source.messages import Part, Place, Range, part_of_queue, rows
from pyspark_amqp.source.places import place_of
from pyspark_amqp.source.pushdown import selector_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class BrowsePartition(InputPartition):
    """One part of a browsed queue or subscription."""

    place: Place
    part: Part


class BrowseReader(DataSourceReader):
    """The reader that browses a queue or a subscription.

    Messages stay there for consumers and for further browsing: each action of Spark browses anew.
    """

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options: Final = options
        self._names: Final = list(names)
        self._selector = options.text("selector")

    def partitions(self) -> Sequence[BrowsePartition]:
        place = place_of(self._options)
        count = self._options.number("numPartitions")
        return [
            BrowsePartition(
                place,
                part_of_queue(place, part, count, selector=self._selector, until_ms=0),
            )
            for part in range(count)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, BrowsePartition)
        span = Range(
            self._options.position("startingPosition"), self._options.position("endingPosition")
        )
        return rows(self._options, self._names, partition.place, partition.part, span)


class SelectingReader(BrowseReader):
    """A `BrowseReader` that passes Spark's conditions to the broker.

    It is a class of its own, since Spark refuses every reader that takes conditions unless Spark's
    own setting allows it.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Add the conditions to the broker's selector; return all, so Spark checks them again."""
        self._selector = selector_of(self._selector, filters)
        return filters


@dataclass
class EventPartition(InputPartition):
    """A range of ids, above `behind` up to `until`."""

    behind: int
    until: int


class EventReader(DataSourceReader):
    """The reader of the event log."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options: Final = options
        self._names: Final = list(names)

    def partitions(self) -> Sequence[EventPartition]:
        first, last = events.bounds(self._options)
        start = self._options.position("startingPosition")
        end = self._options.position("endingPosition")
        behind = events.first_behind(self._options, start, first)
        until = last if end.number is None else min(last, end.number - 1)
        if self._options.is_latest("startingPosition"):
            behind = last
        parts = [
            EventPartition(*each)
            for each in events.ranges(behind, until, self._options.number("numPartitions"))
        ]
        # without partitions, Spark makes one of its own
        return parts or [EventPartition(behind, behind)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EventPartition)
        if partition.behind >= partition.until:
            return iter(())
        return events.rows(
            self._options,
            self._names,
            partition.behind,
            partition.until,
            since_ms=self._options.position("startingPosition").time_ms,
            before_ms=self._options.position("endingPosition").time_ms,
        )
