"""The event log read from the store's own table, by ADBC.

The store is a PostgreSQL, or an SQLite file that no broker has open. The driver returns Arrow, so a
million rows take two seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import pyarrow as pa

from pyspark_amqp.errors import BrokerError

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

TABLE: Final = "event"
SQLITE: Final = "sqlite:///"
ROWS_MAX: Final = 65_536


def bounds(store: str) -> tuple[int, int]:
    """Return the first and the last id, 0 and 0 if there are no rows."""
    with _opened(store) as connection, connection.cursor() as cursor:
        # two subqueries: SQLite reads every row for both in one
        cursor.execute(
            f"SELECT (SELECT min(id) FROM {TABLE}), (SELECT max(id) FROM {TABLE})"  # noqa: S608
        )
        first, last = cursor.fetchone() or (None, None)
    return (0, 0) if last is None else (int(first), int(last))


def events(
    store: str,
    columns: Sequence[str],
    *,
    behind: int,
    until: int,
    address: str | None,
    kind: str | None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows with ids above `behind` up to `until`, by ascending id; None means any value."""
    mark = ("?{}" if store.startswith(SQLITE) else "${}").format
    conditions = [f"id > {mark(1)}", f"id <= {mark(2)}"]
    values: list[object] = [behind, until]
    for column, value in (("address", address), ("kind", kind)):
        if value is not None:
            values.append(value)
            conditions.append(f"{column} = {mark(len(values))}")
    statement = (
        f"SELECT {', '.join(columns)} FROM {TABLE} "  # noqa: S608 - names of ours
        f"WHERE {' AND '.join(conditions)} ORDER BY id"
    )
    with _opened(store) as connection, connection.cursor() as cursor:
        cursor.execute(statement, values)
        yield from cursor.fetch_record_batch()


@contextmanager
def _opened(store: str) -> Iterator[Connection]:
    try:
        if store.startswith(SQLITE):
            with _sqlite(store) as connection:
                yield connection
        else:
            from adbc_driver_postgresql import dbapi as postgresql

            with postgresql.connect(store) as connection:
                yield connection
    except ImportError as error:
        raise BrokerError(f"{error}: pip install jms-broker[spark]") from error


def _sqlite(store: str) -> Connection:
    from adbc_driver_sqlite import dbapi as sqlite

    path = (
        Path("/" + store[len(SQLITE) :].lstrip("/"))
        if store.startswith("sqlite:////")
        else (Path(store[len(SQLITE) :]))
    )
    if not path.is_file():
        raise BrokerError(f"option storeUrl: there is no file {path}")
    # read-only: if a broker runs after all, no other process may touch its file
    return sqlite.connect(f"file:{quote(str(path.absolute()))}?mode=ro")
