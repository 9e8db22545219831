"""PostgreSQL specifics: its sessions, checks for durability, writing of a batch, errors.

One session writes, reads and holds the lock (`session.py`). A batch that only adds and removes
a few messages is one statement with arrays, which is also its transaction: one round trip and one
sync. Many messages are copied (COPY).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement
from sqlalchemy.exc import SQLAlchemyError

from storage.api import LeadershipError, StoreError
from storage.sql.index import Changes, Row
from storage.sql.postgresql.epoch import COUNT_BATCH, is_over
from storage.sql.rows import UnreadableError
from storage.sql.segments.segments import SegmentChanges
from storage.sql.statements import CHANGE_BODY, Texts

VERSION: Final = 150000
"""Oldest version of the server that is accepted, in the format of `server_version_num`."""

CONNECT_TIMEOUT_S: Final = 5.0

SETTINGS: Final = {
    # a broker that is gone must not keep the store locked, nor a broken connection look idle
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "11000",
    "idle_in_transaction_session_timeout": "10000",
    "idle_session_timeout": "0",
    # if another program locks one of our tables, only the wait ends, and the commit is retried
    "lock_timeout": "10000",
    # plans are made once, while there are no rows to count: they must search by the key
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}

STANDBY_NAMES: Final = "synchronous_standby_names"

APPLICATION: Final = "jms-broker"
"""Beginning of the names of all sessions of brokers."""

Place = tuple[str, int]
"""Host, or folder of a socket, and port of a server."""

NO_SETTINGS: Final[Mapping[str, str]] = {}

STATEMENT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Maximum bytes of bodies in one statement. More are streamed (COPY): a value cannot be 1 GB."""

DELETE_SEGMENTS: Final = "DELETE FROM segment WHERE number = ANY($1::bigint[])"

DELETE_BODIES: Final = "DELETE FROM body WHERE number = ANY($1::bigint[])"

CHANGE_SEGMENTS: Final = """
UPDATE segment SET size = new.size, facts = new.facts
FROM unnest($1::bigint[], $2::bytea[], $3::bigint[]) new (size, facts, number)
WHERE segment.number = new.number
"""
"""Parameters: sizes, facts, numbers."""

PLAIN: Final = f"""
WITH gone AS (DELETE FROM segment WHERE number = ANY($1::bigint[])),
freed AS (DELETE FROM body WHERE number = ANY($1::bigint[])),
changed AS (
    UPDATE segment SET size = new.size, facts = new.facts
    FROM unnest($2::bigint[], $3::bytea[], $4::bigint[]) new (size, facts, number)
    WHERE segment.number = new.number
),
filled AS (INSERT INTO body SELECT * FROM unnest($5::bigint[], $6::bytea[], $7::bytea[])),
counted AS ({COUNT_BATCH.format(number="$8::bigint", epoch="$12::bigint")})
INSERT INTO segment SELECT * FROM unnest($9::bigint[], $10::bigint[], $11::bytea[])
"""  # noqa: S608 - nothing of a peer's is in it
"""Parameters of a batch: numbers of removed segments; columns of changed segments; columns of new
bodies; the number of the batch; columns of new segments; the epoch."""

PASSING: Final = frozenset(
    {
        "25006",  # read-only: a standby, for now
        "25P03",  # the broker was too slow in a transaction
        "26000",  # DISCARD ALL: its prepared statements are gone, and the lock perhaps, too
        "40001",
        "40P01",
        "53300",  # too many connections
        "55P03",  # another program has locked the table
        "57014",
        "57P01",
        "57P02",
        "57P03",  # the server starts, or stops
        "57P05",
    }
)
"""Codes of errors after which a retry may succeed, besides those of class 08, the connection."""

ADVICE: Final = {
    "28000": "see the user in the store's URL, and pg_hba.conf",
    "28P01": "see the user and the password in the store's URL, PGPASSWORD or the passfile",
    "3D000": "make it: createdb",
    "42501": "its user has to own the tables, or a schema in which it may make them",
    "53100": "the disk of the database is full",
}
"""Advice to the operator about errors, by their code."""


class AwayError(Exception):
    """The database cannot be used now, but may soon."""


FAILURES: Final = (
    OSError,
    TimeoutError,
    AwayError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    SQLAlchemyError,
    UnreadableError,
)
"""The errors that a failure of the database, or of the connection to it, raises."""


class Facts:
    """Facts about a server and one session, as the server reports them."""

    def __init__(
        self,
        *,
        version: int,
        settings: dict[str, str],
        is_standby: bool,
        process: int,
        processes: Sequence[int],
        hosts: int = 1,
    ) -> None:
        self.version: Final = version
        self.settings: Final = settings
        self.is_standby: Final = is_standby
        self.process: Final = process
        """Id of the session's server process, as the greeting named it."""
        self.processes: Final = processes
        """Ids of the server processes of consecutive statements; they differ behind a pooler."""
        self.hosts: Final = hosts
        """The number of servers that the store's URL names: one of them takes changes."""


def refusal(facts: Facts) -> str:
    """Return why this server must not be used, and what to do; empty if it may be used."""
    if facts.version < VERSION:
        return f"it is PostgreSQL {facts.version // 10000}; 15 or newer is needed"
    if any(process != facts.process for process in facts.processes):
        return (
            "a connection pooler stands between; name the server itself in the store's URL:"
            " the store needs one session of its own"
        )
    for name in ("fsync", "full_page_writes"):
        if facts.settings[name] != "on":
            return f"it would lose what was accepted: set {name} = on in postgresql.conf"
    commit = facts.settings["synchronous_commit"]
    if commit not in {"on", "remote_apply"}:
        return (
            f"it would lose what was accepted: synchronous_commit is {commit};"
            " ALTER ROLE … SET synchronous_commit = on"
        )
    if facts.hosts > 1 and not facts.is_standby and not facts.settings[STANDBY_NAMES]:
        return (
            f"its URL names {facts.hosts} servers, and it waits for no other: a server that was"
            " replaced would take changes when it comes back; set synchronous_standby_names in"
            " postgresql.conf, or name one server"
        )
    encoding = facts.settings["server_encoding"]
    if encoding != "UTF8":
        return f"its encoding is {encoding}; make the database with ENCODING 'UTF8'"
    return ""


async def facts_of(session: asyncpg.Connection, hosts: int) -> Facts:
    """Ask a server for the facts that `refusal` checks; the URL names `hosts` of them."""
    names = ["fsync", "full_page_writes", "synchronous_commit", STANDBY_NAMES, "server_encoding"]
    rows = await session.fetch(
        "SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[])", names
    )
    version = await session.fetchval("SELECT current_setting('server_version_num')::integer")
    is_standby = await session.fetchval(
        "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
    )
    processes = [await session.fetchval("SELECT pg_backend_pid()") for _ in range(2)]
    return Facts(
        version=version,
        settings={row["name"]: row["setting"] for row in rows},
        is_standby=is_standby,
        process=session.get_server_pid(),
        processes=processes,
        hosts=hosts,
    )


def name_of(url: str) -> str:
    """Return the URL without user, password and options, as it may be shown.

    Everything before the last @ is removed, since any part of it may be the password.
    """
    plain = url.partition("://")[2].partition("?")[0]
    return f"postgresql://{plain.rpartition('@')[2]}"


async def connect(
    url: str,
    application: str,
    more: Mapping[str, str] = NO_SETTINGS,
    *,
    place: Place | None = None,
) -> asyncpg.Connection:
    """Return a new session with the settings of this file, and `more` instead of some of them.

    It is with the server at `place`, or without that with one that the URL names. Raise StoreError
    if `url` is invalid.
    """
    try:
        return await asyncpg.connect(
            url,
            host=None if place is None else place[0],
            port=None if place is None else place[1],
            timeout=CONNECT_TIMEOUT_S,
            server_settings=SETTINGS | {"application_name": application} | dict(more),
        )
    except ValueError:  # its text may quote the password
        raise StoreError(
            f"the URL of the store {name_of(url)} cannot be read: see host, port and options"
        ) from None


# -- writing


def is_plain(changes: Changes) -> bool:
    """Return whether `PLAIN` can write `changes`: segments only, and none of them is rebuilt.

    The new bodies must have at most STATEMENT_BYTES_MAX bytes.
    """
    segments = changes.segments
    size = sum(len(encoded) for _, encoded, _ in segments.bodies)
    return not changes.statements and not segments.rebuilt and size <= STATEMENT_BYTES_MAX


def columns_of(rows: Sequence[Row], width: int) -> list[Sequence[object]]:
    """Return rows as columns: `width` of them even if there is no row."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


async def write_plain(
    statement: PreparedStatement, changes: Changes, *, number: int, epoch: int
) -> None:
    """Write and commit a batch that `is_plain`; `statement` is `PLAIN`, prepared."""
    segments = changes.segments
    await statement.fetch(
        [number for number, _ in segments.removed],
        *columns_of(segments.changed, 3),
        *columns_of(segments.bodies, 3),
        number,
        *columns_of(segments.segments, 3),
        epoch,
    )


async def write(
    session: asyncpg.Connection, texts: Texts, changes: Changes, *, number: int, epoch: int
) -> None:
    """Write and commit any batch."""
    await session.execute(f"BEGIN; {COUNT_BATCH.format(number=number, epoch=epoch)}")
    for statement, rows in changes.statements:
        await session.executemany(texts.of(statement), rows)
    await _write_segments(session, texts, changes.segments)
    await session.execute("COMMIT")


async def _write_segments(
    session: asyncpg.Connection, texts: Texts, changes: SegmentChanges
) -> None:
    if changes.segments:
        await session.copy_records_to_table("segment", records=changes.segments)
        await session.copy_records_to_table("body", records=changes.bodies)
    if changes.changed:
        await session.execute(CHANGE_SEGMENTS, *columns_of(changes.changed, 3))
    if changes.rebuilt:
        await session.executemany(texts.of(CHANGE_BODY), changes.rebuilt)
    if changes.removed:
        removed = [number for number, _ in changes.removed]
        await session.execute(DELETE_SEGMENTS, removed)
        await session.execute(DELETE_BODIES, removed)


# -- errors


def cause_of(error: BaseException) -> BaseException:
    """Return the driver's own error if SQLAlchemy has wrapped it, else `error`."""
    original = getattr(error, "orig", None)
    if isinstance(original, BaseException):
        return original.__cause__ or original
    return error


def is_passing(error: BaseException) -> bool:
    """Return whether a retry on another connection may succeed a moment later."""
    cause = cause_of(error)
    if isinstance(cause, OSError | TimeoutError | AwayError):
        return True
    if isinstance(cause, asyncpg.InterfaceError | asyncpg.InternalClientError):
        # the driver raises these for a connection that has been closed
        return not isinstance(cause, ValueError)
    code = getattr(cause, "sqlstate", None) or ""
    return code in PASSING or code.startswith("08")


def taken_over(name: str) -> LeadershipError:
    """Return the error of a store that another broker has opened meanwhile."""
    return LeadershipError(f"the store {name} has been taken over by another broker meanwhile")


def explained(error: BaseException, name: str) -> StoreError:
    """Return `error` as a StoreError, with advice to the operator if there is any."""
    cause = cause_of(error)
    if isinstance(cause, StoreError):
        return cause
    if is_over(cause):
        return taken_over(name)
    said = str(cause) or type(cause).__name__
    advice = ADVICE.get(getattr(cause, "sqlstate", None) or "")
    return StoreError(f"the store {name} failed: {said}" + (f" ({advice})" if advice else ""))
