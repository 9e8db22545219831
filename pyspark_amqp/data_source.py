"""The functions behind `pyspark_amqp.DefaultSource`: the schema, readers and writers of `amqp`.

They read the options, and check a schema that a user gives, while a query is planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_amqp.option_table import Use
from pyspark_amqp.options import OptionError, Options, check_any_use, check_values, read_options
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, ddl_of, message_columns
from pyspark_amqp.sink.encoding import check_columns

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

Given = Mapping[str, str]


def check(given: Given) -> None:
    """Raise OptionError if the options are wrong for every use."""
    check_any_use(given)


def schema(given: Given) -> str:
    """Return the columns in Spark's DDL, for a query whose user gives no schema."""
    return ddl_of(_columns(check_values(given)))


def _columns(values: Mapping[str, object]) -> dict[str, str]:
    if values.get("mode") == "events":
        return EVENT_LOG_COLUMNS
    return message_columns(str(values.get("propertiesAs") or "typed"))


def reader(given: Given, schema: StructType) -> DataSourceReader:
    """Return the reader for `spark.read`; raise OptionError for wrong options or a wrong schema."""
    from pyspark_amqp.source.readers import BrowseReader, EventReader, SelectingReader

    options = read_options(given, Use.BATCH)
    names = _names(options, schema)
    if options.mode == "events":
        return EventReader(options, names)
    if options.is_set("pushdown"):
        return SelectingReader(options, names)
    return BrowseReader(options, names)


def stream_reader(given: Given, schema: StructType) -> DataSourceStreamReader:
    """Return the reader for `spark.readStream`; raise OptionError as `reader` does."""
    from pyspark_amqp.source.event_stream import EventStreamReader
    from pyspark_amqp.source.lease_stream import LeaseStreamReader

    options = read_options(given, Use.STREAM)
    names = _names(options, schema)
    if options.mode == "events":
        return EventStreamReader(options, names)
    return LeaseStreamReader(options, names)


def writer(given: Given, schema: StructType, *, overwrite: bool) -> DataSourceWriter:
    """Return the writer for `write`; raise OptionError if the options or the columns are wrong."""
    from pyspark_amqp.sink.writer import SinkBatchWriter

    return SinkBatchWriter(_sink_options(given, schema, overwrite=overwrite))


def stream_writer(given: Given, schema: StructType, *, overwrite: bool) -> DataSourceStreamWriter:
    """Return the writer for `writeStream`; raise OptionError as `writer` does."""
    from pyspark_amqp.sink.writer import StreamWriter

    return StreamWriter(_sink_options(given, schema, overwrite=overwrite))


def _sink_options(given: Given, schema: StructType, *, overwrite: bool) -> Options:
    options = read_options(given, Use.SINK)
    if overwrite:
        raise OptionError("messages are added to what is there: only mode append is allowed")
    is_raw = options.text("replay") == "raw"
    kinds = {field.name: field.dataType.typeName() for field in schema.fields}
    check_columns(kinds, raw=is_raw, address=options.text("address"))
    return options


def _names(options: Options, schema: StructType) -> list[str]:
    """Return the names of the schema's columns; raise OptionError for a wrong name or type."""
    columns = _columns({"mode": options.mode, "propertiesAs": options.text("propertiesAs")})
    names = []
    for field in schema.fields:
        kind = columns.get(field.name)
        if kind is None:
            raise OptionError(
                f"the schema has a column {field.name}; allowed: {', '.join(columns)}"
            )
        meant = kind.lower().replace(": ", ":").replace(", ", ",")
        if field.dataType.simpleString() != meant:
            raise OptionError(
                f"the schema has the column {field.name} as {field.dataType.simpleString()}; "
                f"allowed: {meant}"
            )
        names.append(field.name)
    return names
