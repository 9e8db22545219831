"""Statements on DuckDB, in this process and without Java."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import duckdb
import pyarrow as pa

from pyspark_amqp.engines.folders import folder_values
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.rows.columns import (
    EVENT_LOG_COLUMNS,
    MESSAGE_COLUMNS,
    UTC_MICROSECONDS,
    schema_of,
)
from pyspark_amqp.sink.writing import BatchWriting
from pyspark_amqp.source.batch import browse_parts, browse_rows, event_ranges, event_rows

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine, Record, Table

FUNCTIONS: Final = {
    "count_if(condition)": "count(*) FILTER (WHERE condition)",
    "explode(list)": "unnest(list)",
    "percentile_approx(value, share, accuracy)": "quantile_disc(value, share)",
    "sequence(low, high)": "generate_series(low, high)",
    "shiftright(number, bits)": "number >> bits",
    "timestamp_micros(us)": "make_timestamp(us)",
    "unix_micros(moment)": "epoch_us(moment)",
    "unix_millis(moment)": "epoch_ms(moment)",
    "div(x, y)": "x // y",
    "try_add(x, y)": "TRY(x + y)",
    "try_subtract(x, y)": "TRY(x - y)",
    "try_multiply(x, y)": "TRY(x * y)",
    "try_divide(x, y)": "TRY(x / y)",
    "try_element_at(map, key)": "map[key]",
    "rlike(text, pattern)": "regexp_matches(text, pattern)",
    "xxhash64(a, b, c, d, e, f, g)": "hash(a, b, c, d, e, f, g)",
}
"""Functions of Spark that DuckDB lacks, or has by another name, as macros of DuckDB.

DuckDB's own `count_if` is null without any row that has a value.
"""

SETTINGS: Final = {
    # nothing is fetched from elsewhere
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

ZONED: Final = "TIMESTAMP WITH TIME ZONE"

ROWS_AT_ONCE: Final = 10_000

BYTES_AT_ONCE: Final = 128 * 1024 * 1024
"""Maximum encoded bytes of the messages in a record batch; one message may be larger. A column of
Arrow holds 2 GiB, and a body as JSON may be several times as large as it is encoded."""

ENCODED: Final = "amqp"
"""The column of messages that is about as large as all of their others together."""

FILE: Final = "pathOfFile"
"""The name of a column with the path of a row's file; no column of an archive has it."""


@final
class DuckTable:
    """The rows of a view or table of DuckDB."""

    def __init__(self, engine: DuckEngine, name: str, *, is_stored: bool) -> None:
        self.engine: Final = engine
        self.name: Final = name
        self._is_stored: Final = is_stored

    def rows(self) -> list[Record]:
        found = self.engine.connection.execute(f"SELECT * FROM {self.name}")
        names = [each[0] for each in found.description]
        return [dict(zip(names, map(_in_utc, row), strict=True)) for row in found.fetchall()]

    def arrow(self) -> pa.Table:
        rows = self.reader().read_all()
        for at, field in enumerate(rows.schema):
            if pa.types.is_timestamp(field.type):
                rows = rows.set_column(at, field.name, rows[field.name].cast(UTC_MICROSECONDS))
        return rows

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as record batches, computed while they are read."""
        return self.engine.connection.table(self.name).to_arrow_reader(self.rows_at_once())

    def rows_at_once(self) -> int:
        """Return how many rows a record batch may have: few if messages are large."""
        connection = self.engine.connection
        if ENCODED not in connection.table(self.name).columns:
            return ROWS_AT_ONCE
        size = f"octet_length({ENCODED})"
        sizes = f"SELECT sum({size}), max({size}) FROM {self.name}"
        [(total, longest)] = connection.execute(sizes).fetchall()
        if not longest or total <= BYTES_AT_ONCE:
            return ROWS_AT_ONCE
        fitting: int = BYTES_AT_ONCE // longest
        return min(ROWS_AT_ONCE, max(1, fitting))

    def kept(self) -> DuckTable:
        return self if self._is_stored else self.engine.made("TABLE", f"SELECT * FROM {self.name}")

    def release(self) -> None:
        self.engine.connection.execute(f"DROP TABLE {self.name}")


def _in_utc(value: object) -> object:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


@final
class DuckEngine:
    """The engine of a database in memory. Its times are in UTC and have no zone."""

    name: Final = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection: Final = connection
        self._numbers: Final = count(1)
        for head, body in FUNCTIONS.items():
            connection.execute(f"CREATE MACRO {head} AS {body}")

    def run(self, statement: str, tables: Mapping[str, Table]) -> DuckTable:
        names = {name: duck_table(table).name for name, table in tables.items()}
        return self.made("VIEW", statement.format(**names))

    def made(self, kind: str, statement: str) -> DuckTable:
        """Return a new view, or table, of the rows of a statement."""
        name = self._name()
        self.connection.execute(f"CREATE {kind} {name} AS {statement}")
        return DuckTable(self, name, is_stored=kind == "TABLE")

    def table(self, columns: Mapping[str, str], rows: Iterable[Sequence[object]]) -> DuckTable:
        schema = schema_of(dict(columns))
        given = zip(*rows, strict=True)
        arrays = [
            pa.array(values, field.type) for values, field in zip(given, schema, strict=False)
        ]
        empty = [pa.array([], field.type) for field in schema]
        return self.of_arrow(pa.Table.from_arrays(arrays or empty, schema=schema))

    def of_arrow(self, rows: pa.Table | pa.RecordBatchReader) -> DuckTable:
        """Return a table with a copy of `rows`."""
        given = self._name()
        self.connection.register(given, rows)
        try:
            return self.made("TABLE", self._without_zones(given))
        finally:
            self.connection.unregister(given)

    def of_batches(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> DuckTable:
        """Return a table with the rows of `batches`, a generator; raise the error that it raises.

        DuckDB has only the text of that error, in an error of its own.
        """
        recording = _Recording(batches)
        try:
            return self.of_arrow(pa.RecordBatchReader.from_batches(schema, recording))
        except (duckdb.Error, RuntimeError):
            if recording.error is not None:
                raise recording.error from None
            raise
        finally:
            recording.close()

    def parquet(self, folder: Path, columns: Mapping[str, str]) -> DuckTable:
        files = [
            file
            for file in sorted(folder.rglob("*.parquet"))
            if not any(part[0] in "._" for part in file.relative_to(folder).parts)
        ]
        # an empty table has the columns that older files lack
        lacking = self.table(columns, [])
        rows = self._in_places(folder, files) if _misleads(folder, columns) else _rows_of(files)
        scanned = self.made("VIEW", f"SELECT * FROM {lacking.name} UNION ALL BY NAME {rows}")
        names = ", ".join(f'"{name}"' for name in columns)
        return self.made("VIEW", f"SELECT {names} FROM ({self._without_zones(scanned.name)}) x")

    def _in_places(self, folder: Path, files: Sequence[Path]) -> str:
        """Return a statement of the rows of `files`, with columns from the folders below `folder`.

        DuckDB itself would take columns from the folders above, too, and prefer them.
        """
        values = [folder_values(file.relative_to(folder).parent) for file in files]
        places = [{FILE: str(file), **each} for file, each in zip(files, values, strict=True)]
        table = self.of_arrow(pa.Table.from_pylist(places))
        rows = _rows_of(files, own=True)
        return f"SELECT * EXCLUDE ({FILE}) FROM ({rows}) JOIN {table.name} USING ({FILE})"

    def send(
        self, messages: Table, names: Sequence[str], order: str, options: Mapping[str, str]
    ) -> None:
        table = duck_table(messages)
        ordered = f"SELECT {', '.join(names)} FROM {table.name} ORDER BY {order}"
        rows = self.connection.sql(ordered).to_arrow_reader(table.rows_at_once())
        BatchWriting(read_options(options, Use.SINK)).write_all(iter(rows))

    def source(self, options: Mapping[str, str], names: Sequence[str]) -> DuckTable:
        events = options.get("mode") == "events"
        read = read_options(options, Use.BATCH)
        schema = schema_of(EVENT_LOG_COLUMNS if events else MESSAGE_COLUMNS, names)
        found = _events(read, names) if events else _browsed(read, names)
        return self.of_batches(schema, found)

    def _without_zones(self, name: str) -> str:
        """Return a statement of the rows of `name`, with times that have no zone."""
        given = self.connection.sql(f"SELECT * FROM {name}")
        parts = [
            f'CAST(x."{column}" AS TIMESTAMP) AS "{column}"'
            if str(kind) == ZONED
            else f'x."{column}"'
            for column, kind in zip(given.columns, given.types, strict=True)
        ]
        return f"SELECT {', '.join(parts)} FROM {name} x"

    def _name(self) -> str:
        return f"t{next(self._numbers)}"


@final
class _Recording:
    """The iterator of a generator, with the error that it has raised."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches: Final = batches
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except BaseException as error:
            self.error = error
            raise

    def close(self) -> None:
        """Let the generator close its connections, if it has not ended."""
        if isinstance(self._batches, Generator):
            self._batches.close()


def _events(options: Options, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for behind, until in event_ranges(options):
        yield from event_rows(options, names, behind, until)


def _browsed(options: Options, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for place, part in browse_parts(options, options.text("selector")):
        yield from browse_rows(options, names, place, part)


def _misleads(folder: Path, columns: Iterable[str]) -> bool:
    """Return whether DuckDB would take a column from the name of `folder`, or of one above it."""
    names = {name.lower() for name in columns}
    parts = (part.partition("=") for part in folder.parts)
    return any(equals and name.lower() in names for name, equals, _ in parts)


def _rows_of(files: Iterable[Path], *, own: bool = False) -> str:
    """Return a statement of the rows of `files` and of the columns in the names of their folders.

    With `own` there are the columns of the files alone, and the path of the file of each row.
    """
    manner = (
        f"hive_partitioning = false, filename = '{FILE}'"
        if own
        else "hive_partitioning = true, hive_types_autocast = false"
    )
    return f"SELECT * FROM read_parquet([{_listed(files)}], {manner}, union_by_name = true)"


def _listed(files: Iterable[Path]) -> str:
    """Return a list of files as DuckDB reads it: characters of its patterns in brackets."""
    texts = (
        "".join(f"[{each}]" if each in "[*?" else each for each in str(file)) for file in files
    )
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)


def duck_table(table: Table) -> DuckTable:
    """Return a table as that of DuckDB which it has to be."""
    assert isinstance(table, DuckTable)
    return table


def duck_engine(engine: Engine) -> DuckEngine:
    """Return an engine as that of DuckDB which it has to be."""
    assert isinstance(engine, DuckEngine)
    return engine


@contextmanager
def duckdb_engine() -> Iterator[DuckEngine]:
    """Open a database in memory for the block.

    Rows that do not fit into the memory are written to a temporary folder.
    """
    with (
        tempfile.TemporaryDirectory(prefix="jms-broker-duckdb-") as folder,
        duckdb.connect(config={**SETTINGS, "temp_directory": folder}) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'")
        yield DuckEngine(connection)
