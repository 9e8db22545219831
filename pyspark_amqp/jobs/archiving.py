"""The command `jms-broker pipeline archive`: the queries that it starts, and their end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_amqp.jobs.layout import (
    DELTA_TABLE,
    EVENTS,
    ICEBERG_TABLE,
    LIBRARIES,
    MESSAGES,
    Archive,
    ArchiveError,
    folder_name,
)
from pyspark_amqp.jobs.running import size_of
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import OptionError, is_for, read_options

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine
    from pyspark_amqp.jobs.archive import ArchivedBatch


MODE: Final = "mode"

PARQUET: Final = "parquet"

NAME_MAX: Final = 255
"""Maximum bytes in the name of a folder, on all usual file systems."""

ROWS_AT_ONCE: Final = "maxMessagesPerTrigger"

EVENTS_AT_ONCE: Final = 100_000
"""Rows of the event log in a batch, unless an option says otherwise.

They are small: a file of a batch has some MiB, and the job needs about a KiB of memory for each.
"""


FIXED: Final = {
    "address": "use --address",
    "subscription": "use --subscription",
    "selector": "use --selector",
    MODE: "use --mode",
    "includeRaw": "the archive has each message bit for bit",
    "propertiesAs": "the archive has all values with their types",
    "failOnDataLoss": "the audit tells of missing rows",
}
"""The options of the data source that the job sets itself, with the reason or its own option."""


def check_fixed(broker: Mapping[str, str]) -> None:
    """Raise OptionError for an option in `broker` that the job sets itself."""
    for name in broker:
        for fixed, reason in FIXED.items():
            if name.lower() == fixed.lower():
                raise OptionError(f"option {name}: `archive` sets it itself: {reason}")


def check_name(address: str) -> None:
    """Raise OptionError if no folder can have the name of the messages of `address`."""
    size = len(os.fsencode(folder_name("address", address)))
    if size > NAME_MAX:
        raise OptionError(
            f"option address: the folder address=NAME would have a name of {size} bytes,"
            f" and {NAME_MAX} are allowed: {address[:40]}…"
        )


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


SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def seconds_of(interval: str) -> float:
    """Return the seconds of an interval in Spark's words, such as `5 minutes`."""
    count, unit = interval.split()
    return int(count) * SECONDS[unit.removesuffix("s")]


@dataclass
class Archiving:
    """One run of the archive job. `sources` has the data source's options by part, `messages` and
    `events`, as far as these are requested. `form` is the requested format of the archive;
    `catalog` and `namespace` are those of its Iceberg tables."""

    archive: Archive
    sources: dict[str, dict[str, str]]
    every: str | None
    form: str | None = None
    catalog: str | None = None
    namespace: str | None = None
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
        form: str | None = None,
        catalog: str | None = None,
        namespace: str | None = None,
    ) -> Archiving:
        """Return the run that the command line asks for.

        Raise OptionError if `broker` has an option that the job sets itself.
        """
        check_fixed(broker)
        named = {"address": address, "subscription": subscription, "selector": selector}
        messages = {name: value for name, value in named.items() if value is not None}
        chosen = mode or ("browse" if subscription is None else "lease")
        sources = {
            MESSAGES: {**messages, MODE: chosen, "includeRaw": "true"},
            # rows that the broker has already removed are no reason not to keep the rest
            EVENTS: {MODE: "events", "failOnDataLoss": "false"},
        }
        if ROWS_AT_ONCE.lower() not in {name.lower() for name in broker}:
            sources[EVENTS][ROWS_AT_ONCE] = str(EVENTS_AT_ONCE)
        asked = shared(broker, {what: sources[what] for what in whats})
        return cls(Archive(place), asked, every, form, catalog, namespace)

    def check(self, engine: str) -> None:
        """Raise OptionError, ArchiveError or BrokerError for what is wrong before Spark starts.

        `engine` is the name of the engine that is to run.
        """
        from pyspark_amqp.jobs.archive import check_target
        from pyspark_amqp.wire.connection import connected

        checked = []
        for what, given in self.sources.items():
            if what == MESSAGES and not {"address", "subscription"} & set(given):
                raise OptionError(
                    "messages of which queue? Give --address, or --subscription, or --what events"
                )
            check_name(given.get("address", ""))
            if use_of(given) is Use.BATCH and self.every is not None:
                raise OptionError("--every: messages that stay are archived once; say --mode lease")
            checked.append(read_options(given, use_of(given)))
        check_target(self.archive, list(self.sources))
        self._check_engine(engine)
        self._check_form()
        with self._reserved(), connected(checked[0]):
            pass

    def _check_engine(self, engine: str) -> None:
        """Raise ArchiveError if another engine has begun to archive a source here.

        Only that engine knows what it has begun to write.
        """
        from pyspark_amqp.jobs.archive import source_name

        for what, given in self.sources.items():
            name = source_name(self.archive, what, given)
            other = self.archive.engine_of(name)
            if use_of(given) is Use.STREAM and other not in {None, engine}:
                raise ArchiveError(
                    f"the {what} of {self.archive.root} were begun with --engine {other}: go on"
                    " with it, or archive into another folder"
                )

    def _check_form(self) -> None:
        """Raise ArchiveError if the archive cannot have the requested format.

        Raise OptionError if options of Iceberg are given, but no such table is there or requested.
        """
        archive = self.archive
        for what in self.sources if self.form == PARQUET else ():
            for form in archive.tables(what):
                raise ArchiveError(
                    f"{archive.data(what)} is a table of {LIBRARIES[form][0]}, and stays one:"
                    " leave out --format, or archive into another folder"
                )
        archive.check_libraries(self.sources, self.form)
        tables = [what for what in self.sources if self._is_iceberg(what)]
        if tables:
            from pyspark_amqp.jobs import iceberg_catalog

            iceberg_catalog.check(archive, tables, catalog=self.catalog, namespace=self.namespace)
        elif self.catalog is not None or self.namespace is not None:
            raise OptionError("--catalog and --namespace are for --format iceberg")

    def _is_iceberg(self, what: str) -> bool:
        """Return whether `what` has an Iceberg table, or is to have one."""
        return self.form == ICEBERG_TABLE or self.archive.is_iceberg(what)

    def run(self, engine: Engine, say: Callable[[str], None]) -> None:
        """Archive what is there now, or for ever if there is an interval (`every`)."""
        # messages first, so that the event log has what became of those archived here
        self.sums = {what: Sums() for what in self.sources}
        tell = {what: partial(self._written, what, say) for what in self.sources}
        self.archive.sweep(time.time())
        with self._reserved():
            self._begin_tables()
            if engine.name == "spark":
                from pyspark_amqp.engines.spark_engine import spark_engine
                from pyspark_amqp.jobs import spark_archive

                spark_archive.run(
                    self.archive, spark_engine(engine), self.sources, tell, self.every
                )
            else:
                from pyspark_amqp.engines.duckdb_engine import duck_engine
                from pyspark_amqp.jobs import local_archive

                every_s = None if self.every is None else seconds_of(self.every)
                local_archive.run(self.archive, duck_engine(engine), self.sources, tell, every_s)

    def _begin_tables(self) -> None:
        """Make the requested tables; complete those that a killed job has left behind."""
        for what in self.sources:
            if self.form == DELTA_TABLE or self.archive.is_delta(what):
                from pyspark_amqp.jobs import delta

                delta.begin(self.archive, what)
            if self._is_iceberg(what):
                from pyspark_amqp.jobs import iceberg

                iceberg.begin(self.archive, what, catalog=self.catalog, namespace=self.namespace)

    def _reserved(self) -> ExitStack:
        """Return the context in which no other process archives one of the sources.

        Raise ArchiveError if another process does.
        """
        from pyspark_amqp.jobs.archive import source_name

        held = ExitStack()
        try:
            for what, given in self.sources.items():
                # browsed messages, too: each of two jobs would archive what the other does
                name = source_name(self.archive, what, given)
                held.enter_context(self.archive.reserved(name, what))
        except BaseException:
            held.close()
            raise
        return held

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
