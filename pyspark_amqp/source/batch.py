"""Reading of the present content: a browsed queue or subscription, or the event log, in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark_amqp.options import Options
from pyspark_amqp.source import events
from pyspark_amqp.source.messages import Part, Place, Range, part_of_queue, rows
from pyspark_amqp.source.places import place_of

if TYPE_CHECKING:
    import pyarrow as pa


def browse_parts(options: Options, selector: str | None) -> list[tuple[Place, Part]]:
    """Return the place that the options name, with each of its parts."""
    place = place_of(options)
    count = options.number("numPartitions")
    return [
        (place, part_of_queue(place, part, count, selector=selector, until_ms=0))
        for part in range(count)
    ]


def browse_rows(
    options: Options, names: Sequence[str], place: Place, part: Part
) -> Iterator[pa.RecordBatch]:
    """Return the messages of a part, with the columns `names`; they stay in the broker."""
    span = Range(options.position("startingPosition"), options.position("endingPosition"))
    return rows(options, names, place, part, span)


def event_ranges(options: Options) -> list[tuple[int, int]]:
    """Return ranges of ids of the event log, each above its first number up to its second one."""
    first, last = events.bounds(options)
    end = options.position("endingPosition")
    behind = events.first_behind(options, options.position("startingPosition"), first)
    until = last if end.number is None else min(last, end.number - 1)
    if options.is_latest("startingPosition"):
        behind = last
    # without ranges, Spark makes a partition of its own
    return events.ranges(behind, until, options.number("numPartitions")) or [(behind, behind)]


def event_rows(
    options: Options, names: Sequence[str], behind: int, until: int
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a range, with the columns `names`."""
    if behind >= until:
        return iter(())
    return events.rows(
        options,
        names,
        behind,
        until,
        since_ms=options.position("startingPosition").time_ms,
        before_ms=options.position("endingPosition").time_ms,
    )
