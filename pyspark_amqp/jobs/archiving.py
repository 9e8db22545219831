"""The command `jms-broker pipeline archive`: the queries that it starts, and their end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_amqp.jobs.layout import EVENTS, MESSAGES, Archive
from pyspark_amqp.jobs.running import size_of
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import OptionError, is_for, read_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pyspark_amqp.jobs.archive import ArchivedBatch


MODE: Final = "mode"


def use_of(given: Mapping[str, str]) -> Use:
    """Return how a source with those options is read: browsed ones once, others as a stream."""
    return Use.BATCH if given[MODE] == "browse" else Use.STREAM


def shared(
    broker: Mapping[str, str], sources: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return the sources' options, each with those of the broker's options that it knows.

    An option that none of them knows is given to all, so that they report what is wrong.
    """
    found = {}
    for what, given in sources.items():
        meant = {
            name: value
            for name, value in broker.items()
            if is_for(name, use_of(given), given[MODE])
            or not any(is_for(name, use_of(each), each[MODE]) for each in sources.values())
        }
        found[what] = {**meant, **given}
    return found


@dataclass
class Sums:
    """The totals of what was written into the archive."""

    rows: int = 0
    files: int = 0
    bytes: int = 0

    def add(self, written: ArchivedBatch) -> None:
        self.rows += written.rows
        self.files += len(written.paths)
        self.bytes += written.bytes


@dataclass
class Archiving:
    """One run of the archive job. `sources` has the data source's options by part, `messages` and
    `events`, as far as these are requested."""

    archive: Archive
    sources: dict[str, dict[str, str]]
    every: str | None
    sums: dict[str, Sums] = field(default_factory=dict)

    @classmethod
    def asked(
        cls,
        place: Path,
        broker: Mapping[str, str],
        *,
        whats: Sequence[str],
        address: str | None,
        subscription: str | None,
        selector: str | None,
        mode: str | None,
        every: str | None,
    ) -> Archiving:
        """Return the run that the command line asks for."""
        named = {"address": address, "subscription": subscription, "selector": selector}
        messages = {name: value for name, value in named.items() if value is not None}
        chosen = mode or ("browse" if subscription is None else "lease")
        sources = {
            MESSAGES: {**messages, MODE: chosen, "includeRaw": "true"},
            # rows that the broker has already removed are no reason not to keep the rest
            EVENTS: {MODE: "events", "failOnDataLoss": "false"},
        }
        return cls(Archive(place), shared(broker, {what: sources[what] for what in whats}), every)

    def check(self) -> None:
        """Raise OptionError, ArchiveError or BrokerError for what is wrong before Spark starts."""
        from pyspark_amqp.jobs.archive import check_target
        from pyspark_amqp.wire.connection import connected

        checked = []
        for what, given in self.sources.items():
            if what == MESSAGES and not {"address", "subscription"} & set(given):
                raise OptionError(
                    "messages of which queue? Give --address, or --subscription, or --what events"
                )
            if use_of(given) is Use.BATCH and self.every is not None:
                raise OptionError("--every: messages that stay are archived once; say --mode lease")
            checked.append(read_options(given, use_of(given)))
        check_target(self.archive, list(self.sources))
        with self._reserved(), connected(checked[0]):
            pass

    def run(self, spark: SparkSession, say: Callable[[str], None]) -> None:
        """Archive what is there now, or for ever if there is an interval (`every`)."""
        self.archive.sweep(time.time())
        with self._reserved():
            self._run(spark, say)

    def _reserved(self) -> ExitStack:
        """Return the context in which no other process uses the same checkpoints.

        Raise ArchiveError if another process uses one.
        """
        from pyspark_amqp.jobs.archive import source_name

        held = ExitStack()
        try:
            for what, given in self.sources.items():
                if use_of(given) is Use.STREAM:
                    name = source_name(self.archive, what, given)
                    held.enter_context(self.archive.reserved(name, what))
        except BaseException:
            held.close()
            raise
        return held

    def _run(self, spark: SparkSession, say: Callable[[str], None]) -> None:
        running: list[StreamingQuery] = []
        # messages first, so that the event log has what became of those archived here
        for what in self.sources:
            self.sums[what] = Sums()
            query = self._start(spark, what, partial(self._written, what, say))
            if query is not None and self.every is None:
                query.awaitTermination()
            elif query is not None:
                running.append(query)
        if running:
            spark.streams.awaitAnyTermination()
            for query in running:
                query.stop()
                if (failed := query.exception()) is not None:
                    raise failed

    def summary(self) -> dict[str, object]:
        """Return the totals that the command prints."""
        return {
            "archive": str(self.archive.root),
            **{what: sums.rows for what, sums in self.sums.items()},
            **{f"{what}_files": sums.files for what, sums in self.sums.items()},
            "bytes": sum(sums.bytes for sums in self.sums.values()),
        }

    def _written(self, what: str, say: Callable[[str], None], written: ArchivedBatch) -> None:
        sums = self.sums[what]
        sums.add(written)
        say(
            f"{what}: batch {written.batch} with {written.rows:,} rows,"
            f" {sums.rows:,} so far, {size_of(sums.bytes)}"
        )

    def _start(
        self, spark: SparkSession, what: str, tell: Callable[[ArchivedBatch], None]
    ) -> StreamingQuery | None:
        from pyspark_amqp.jobs.archive import snapshot, source_name, stream

        given = dict(self.sources[what])
        if given[MODE] == "browse":
            tell(snapshot(self.archive, spark.read.format("amqp").options(**given).load()))
            return None
        name = source_name(self.archive, what, given)
        if what == EVENTS and not self.archive.has_begun(name):
            given["startingPosition"] = self._first_row(spark)
        rows = spark.readStream.format("amqp").options(**given).load()
        return stream(self.archive, rows, what, name, tell=tell, every=self.every)

    def _first_row(self, spark: SparkSession) -> str:
        """Return the first position in the event log that is not archived.

        It is used also if the checkpoint was lost.
        """
        from pyspark.sql import functions as F  # noqa: N812 - its usual name

        if not self.archive.has(EVENTS):
            return "earliest"
        last = self.archive.read(spark, EVENTS).agg(F.max("id").alias("id")).collect()[0]["id"]
        return str(last + 1)
