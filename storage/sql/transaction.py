"""A transaction on a connection that is in autocommit mode otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError


@contextmanager
def transaction(connection: Connection, begin: str = "BEGIN") -> Iterator[None]:
    """Commit what is done in the block, or undo all of it if it fails."""
    connection.exec_driver_sql(begin)
    try:
        yield
    except BaseException:
        # on a full disk SQLite has rolled back already; a session may have ended
        with suppress(SQLAlchemyError):
            connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")
