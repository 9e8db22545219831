"""Statements on Apache Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from pyspark import StorageLevel

from pyspark_amqp.engines.engine import PLAIN, literal
from pyspark_amqp.rows.columns import ddl_of
from pyspark_amqp.spark import utc

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_amqp.engines.engine import Engine, Record, Table


STAGED_ORDER: Final = "SELECT * FROM {messages} ORDER BY {order}"
SENT_ORDER: Final = "SELECT /*+ COALESCE(1) */ * FROM {messages} SORT BY {order}"

INLINE_MAX: Final = 1000
"""Maximum rows of a table that is written into a statement."""

NUMBERS: Final = count(1)
"""Numbers of views, which engines of one session share."""


@final
class SparkTable:
    """The rows of a frame of Spark."""

    def __init__(self, engine: SparkEngine, frame: DataFrame) -> None:
        self.engine: Final = engine
        self.frame: Final = frame
        self._name = ""

    @property
    def name(self) -> str:
        """Return the name of the temporary view of the rows.

        The view is made once, and stays: if Spark drops a view, it forgets rows that were kept.
        """
        if not self._name:
            self._name = f"t{next(NUMBERS)}"
            self.frame.createOrReplaceTempView(self._name)
        return self._name

    def rows(self) -> list[Record]:
        return [
            {
                name: utc(value) if isinstance(value, datetime) else value
                for name, value in row.asDict().items()
            }
            for row in self.frame.collect()
        ]

    def arrow(self) -> pa.Table:
        return self.frame.toArrow()

    def kept(self) -> SparkTable:
        return SparkTable(self.engine, self.frame.persist(StorageLevel.MEMORY_AND_DISK))

    def release(self) -> None:
        self.frame.unpersist()
        if self._name:
            self.engine.session.catalog.dropTempView(self._name)
            self._name = ""


@final
class SparkEngine:
    """The engine of a session of Spark."""

    name: Final = "spark"

    def __init__(self, session: SparkSession) -> None:
        self.session: Final = session

    def run(self, statement: str, tables: Mapping[str, Table]) -> SparkTable:
        names = {name: spark_table(table).name for name, table in tables.items()}
        return SparkTable(self, self.session.sql(statement.format(**names)))

    def ordered(self, messages: Table, order: str, *, is_staged: bool) -> SparkTable:
        """Return `messages` in the order in which tasks of the sink send them.

        Partitions are sent at the same time: staged messages arrive in the order of the partitions,
        others as they are sent, so these are put into one partition.
        """
        statement = STAGED_ORDER if is_staged else SENT_ORDER
        return self.run(statement.replace("{order}", order), {"messages": messages})

    def table(self, columns: Mapping[str, str], rows: Iterable[Sequence[object]]) -> SparkTable:
        given = [tuple(row) for row in rows]
        if not given:
            # known to be empty while Spark plans, which then leaves out joins with it
            nulls = ", ".join(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in columns.items())
            return SparkTable(self, self.session.sql(f"SELECT {nulls} WHERE FALSE"))
        if len(given) <= INLINE_MAX and all(_is_plain(value) for row in given for value in row):
            # a part of the plan: no job of Spark for its rows
            casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns.items())
            rows_ = ", ".join(f"({', '.join(map(literal, row))})" for row in given)
            inline = f"SELECT {casts} FROM VALUES {rows_} AS given({', '.join(columns)})"
            return SparkTable(self, self.session.sql(inline))
        return SparkTable(self, self.session.createDataFrame(given, ddl_of(dict(columns))))

    def parquet(self, folder: Path, columns: Mapping[str, str]) -> SparkTable:
        read = self.session.read.schema(ddl_of(dict(columns)))
        return SparkTable(self, read.parquet(str(folder)))

    def source(self, options: Mapping[str, str], names: Sequence[str]) -> SparkTable:
        frame = self.session.read.format("amqp").options(**options).load()
        return SparkTable(self, frame.select(*names))

    def send(
        self, messages: Table, names: Sequence[str], order: str, options: Mapping[str, str]
    ) -> None:
        is_staged = options.get("delivery", "staged") == "staged"
        ordered = self.ordered(messages, order, is_staged=is_staged)
        write = ordered.frame.select(*names).write.format("amqp").mode("append")
        write.options(**options).save()


def _is_plain(value: object) -> bool:
    """Return whether `literal` can write a value."""
    return (
        value is None
        or isinstance(value, int)
        or (isinstance(value, str) and PLAIN.fullmatch(value) is not None)
    )


def spark_table(table: Table) -> SparkTable:
    """Return a table as that of Spark which it has to be."""
    assert isinstance(table, SparkTable)
    return table


def spark_engine(engine: Engine) -> SparkEngine:
    """Return an engine as that of Spark which it has to be."""
    assert isinstance(engine, SparkEngine)
    return engine
