"""The interface of an engine of SQL: Apache Spark, or DuckDB.

Both run the same statements, which are written in Spark's SQL. A statement names its tables and
values in braces: `SELECT id FROM {events} WHERE id > {behind}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa

Record = dict[str, Any]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN: Final = re.compile(r"[\w ./,-]*")
"""Texts that both engines read alike between quotes. Any other text belongs into a table."""


@runtime_checkable
class Table(Protocol):
    """Rows that a statement returns: computed each time they are used, unless they are `kept`."""

    @property
    def engine(self) -> Engine:
        """Return the engine that computes the rows."""
        ...

    def rows(self) -> list[Record]:
        """Return all rows; times are in UTC."""
        ...

    def arrow(self) -> pa.Table:
        """Return all rows as Arrow; times are in UTC, in µs."""
        ...

    def kept(self) -> Table:
        """Return a table of the same rows, which are computed once, until its `release`."""
        ...

    def release(self) -> None:
        """Delete the rows of a table that was `kept`."""
        ...


class Engine(Protocol):
    """An engine that runs statements, and reads archives and brokers."""

    @property
    def name(self) -> str:
        """Return the engine's name, as the option --engine has it."""
        ...

    def run(self, statement: str, tables: Mapping[str, Table]) -> Table:
        """Return the rows of a statement that names `tables` in braces."""
        ...

    def table(self, columns: Mapping[str, str], rows: Iterable[Sequence[object]]) -> Table:
        """Return a table of `rows`; `columns` has Spark's types by name."""
        ...

    def parquet(self, folder: Path, columns: Mapping[str, str]) -> Table:
        """Return the rows of all Parquet files below `folder`, null for columns that they lack.

        The folders are divided by values, such as `date=2026-01-31`, which are columns of text.
        """
        ...

    def source(self, options: Mapping[str, str], names: Sequence[str]) -> Table:
        """Return the rows that the data source `amqp` reads now, with the columns `names`."""
        ...

    def send(
        self, messages: Table, names: Sequence[str], order: str, options: Mapping[str, str]
    ) -> None:
        """Send the columns `names` of `messages` by the sink with those options, in an order.

        `order` has columns of `messages`, as ORDER BY does.
        """
        ...


def literal(value: object) -> str:
    """Return a value as both engines read it; raise ValueError for a text that is not PLAIN."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return f"timestamp_micros({(value - EPOCH) // timedelta(microseconds=1)})"
    if isinstance(value, str) and PLAIN.fullmatch(value):
        return f"'{value}'"
    if isinstance(value, tuple) and value:
        return f"({', '.join(map(literal, value))})"
    raise ValueError(f"not to be written into a statement: {value!r}")
