"""Spark's batch readers: of browsed queues, and of the event log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from pyspark_amqp.one_line import one_line_errors
from pyspark_amqp.options import Options
from pyspark_amqp.source.batch import browse_parts, browse_rows, event_ranges, event_rows
from pyspark_amqp.source.messages import Part, Place
from pyspark_amqp.source.pushdown import selector_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class BrowsePartition(InputPartition):
    """One part of a browsed queue or subscription."""

    place: Place
    part: Part


@one_line_errors("partitions", "read")
class BrowseReader(DataSourceReader):
    """The reader that browses a queue or a subscription.

    Messages stay there for consumers and for further browsing: each action of Spark browses anew.
    """

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options: Final = options
        self._names: Final = list(names)
        self._selector = options.text("selector")

    def partitions(self) -> Sequence[BrowsePartition]:
        return [BrowsePartition(*each) for each in browse_parts(self._options, self._selector)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, BrowsePartition)
        return browse_rows(self._options, self._names, partition.place, partition.part)


@one_line_errors("pushFilters")
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


@one_line_errors("partitions", "read")
class EventReader(DataSourceReader):
    """The reader of the event log."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options: Final = options
        self._names: Final = list(names)

    def partitions(self) -> Sequence[EventPartition]:
        return [EventPartition(*each) for each in event_ranges(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EventPartition)
        return event_rows(self._options, self._names, partition.behind, partition.until)
