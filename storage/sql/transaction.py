"""Transactions on a connection that is in autocommit mode otherwise."""

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


@contextmanager
def together(connection: Connection) -> Iterator[None]:
    """Do the block as a whole or not at all, in the transaction under way or in one of its own."""
    connection.exec_driver_sql("SAVEPOINT together")
    try:
        yield
    except BaseException:
        with suppress(SQLAlchemyError):  # as above
            connection.exec_driver_sql("ROLLBACK TO SAVEPOINT together")
            connection.exec_driver_sql("RELEASE SAVEPOINT together")
        raise
    connection.exec_driver_sql("RELEASE SAVEPOINT together")
