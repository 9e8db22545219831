"""What is PostgreSQL's own: its sessions, what makes one durable, how a batch is written, errors.

One session writes, reads and holds the lock (`session.py`). A batch of few messages that come
and go is one statement with arrays, which is also its transaction: a round trip, and one sync.
Many messages are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement
from sqlalchemy.dialects.postgresql import asyncpg as asyncpg_dialect

from storage.api import StoreError
from storage.sql.index import Changes, Row
from storage.sql.statements import COUNT, FALL_DUE, REWRITE, Texts
from storage.sql.tables import MESSAGE

VERSION: Final = 150000
"""The oldest server that is taken, as it tells its version."""

COMMITS: Final = "commits"
"""The mark that holds the number of the last batch: what a lost answer is decided by."""

CONNECT_TIMEOUT_S: Final = 5.0

SETTINGS: Final = {
    # a peer that is gone must not keep the store locked, nor a broken link look idle
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "11000",
    "idle_in_transaction_session_timeout": "10000",
    "idle_session_timeout": "0",
    # whoever locks a table of ours ends our wait, not the broker: it is tried again
    "lock_timeout": "10000",
    # plans are made once, before there are rows to be counted: numbers are found by the key
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}

STATEMENT_BYTES_MAX: Final = 16 * 1024 * 1024
"""More goes to the server as a stream (COPY): one value cannot be a gigabyte."""

STATEMENT_MESSAGES_MAX: Final = 200
"""From here on COPY, with its two round trips more, takes half the time."""

_DIALECT: Final = asyncpg_dialect.dialect()  # type: ignore[no-untyped-call]
_TYPES: Final = [column.type.compile(_DIALECT) for column in MESSAGE.columns]
WIDTH: Final = len(_TYPES)
"""The columns of a message."""

DELETE_MESSAGES: Final = "DELETE FROM message WHERE number = ANY($1::bigint[])"

DELETE_BODIES: Final = "DELETE FROM body WHERE number = ANY($1::bigint[])"

_ARRAYS: Final = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(_TYPES, 1))

PLAIN: Final = f"""
WITH gone AS (DELETE FROM message WHERE number = ANY(${WIDTH + 1}::bigint[])),
freed AS (DELETE FROM body WHERE number = ANY(${WIDTH + 2}::bigint[])),
shared AS (
    INSERT INTO body SELECT * FROM unnest(${WIDTH + 3}::bigint[], ${WIDTH + 4}::bytea[])
),
counted AS (UPDATE mark SET value = ${WIDTH + 5} WHERE name = '{COMMITS}')
INSERT INTO message SELECT * FROM unnest({_ARRAYS})
"""  # noqa: S608 - nothing of a peer's is in it
"""A batch: columns of messages; messages, bodies removed; columns of bodies; its number."""

PASSING: Final = frozenset(
    {
        "25006",  # read-only: a standby, for now
        "25P03",  # we were too slow in a transaction
        "40001",
        "40P01",
        "53300",  # too many connections
        "55P03",  # somebody else has locked the table
        "57014",
        "57P01",
        "57P02",
        "57P03",  # it starts, or stops
        "57P05",
    }
)
"""Errors after which the same may succeed: class 08, the connection, belongs to them."""

ADVICE: Final = {
    "28000": "see the user in the store's URL, and pg_hba.conf",
    "28P01": "see the user and the password in the store's URL, PGPASSWORD or the passfile",
    "3D000": "make it: createdb",
    "42501": "its user has to own the tables, or a schema in which it may make them",
    "53100": "the disk of the database is full",
}
"""What an operator can do about errors, by their code."""


class AwayError(Exception):
    """The database cannot be used now, but may soon."""


class Facts:
    """What a server says of itself and of this session."""

    def __init__(
        self,
        *,
        version: int,
        settings: dict[str, str],
        is_standby: bool,
        process: int,
        processes: Sequence[int],
    ) -> None:
        self.version: Final = version
        self.settings: Final = settings
        self.is_standby: Final = is_standby
        self.process: Final = process
        """The session's process as the greeting named it."""
        self.processes: Final = processes
        """The same, asked for in one statement after the other."""


def refusal(facts: Facts) -> str:
    """Why nothing may be kept there, and what to do; empty where all is well."""
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
    encoding = facts.settings["server_encoding"]
    if encoding != "UTF8":
        return f"its encoding is {encoding}; make the database with ENCODING 'UTF8'"
    return ""


async def facts_of(session: asyncpg.Connection) -> Facts:
    """Ask the server."""
    names = ["fsync", "full_page_writes", "synchronous_commit", "server_encoding"]
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
    )


def name_of(url: str) -> str:
    """The URL as everybody may see it: without user, password and options.

    What is ahead of the last @ may be the password, whatever else it looks like.
    """
    plain = url.partition("://")[2].partition("?")[0]
    return f"postgresql://{plain.rpartition('@')[2]}"


async def connect(url: str, application: str) -> asyncpg.Connection:
    """A session with the settings of this file."""
    try:
        return await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT_S,
            server_settings=SETTINGS | {"application_name": application},
        )
    except ValueError:  # whose text may quote the password
        raise StoreError(
            f"the URL of the store {name_of(url)} cannot be read: see host, port and options"
        ) from None


# -- writing


def is_plain(changes: Changes) -> bool:
    """Whether `PLAIN` says it all: messages come and go, few of them, and none large."""
    return not (
        changes.statements
        or len(changes.messages) > STATEMENT_MESSAGES_MAX
        or changes.fallen_due
        or changes.counted
        or changes.rewritten
        or sum(len(row[-1] or b"") for row in changes.messages) > STATEMENT_BYTES_MAX
        or sum(len(row[-1]) for row in changes.bodies) > STATEMENT_BYTES_MAX
    )


def columns_of(rows: Sequence[Row], width: int) -> list[Sequence[object]]:
    """Rows as columns, `width` of them where there is no row, too."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


async def write_plain(statement: PreparedStatement, changes: Changes, number: int) -> None:
    """Write and commit a batch that `is_plain`; `statement` is `PLAIN`, prepared."""
    await statement.fetch(
        *columns_of(changes.messages, WIDTH),
        changes.removed,
        changes.bodies_removed,
        *columns_of(changes.bodies, 2),
        number,
    )


async def write(
    session: asyncpg.Connection, texts: Texts, changes: Changes, *, number: int
) -> None:
    """Write and commit any batch."""
    await session.execute(
        f"BEGIN; UPDATE mark SET value = {number} WHERE name = '{COMMITS}'"  # noqa: S608
    )
    for statement, rows in changes.statements:
        await session.executemany(texts.of(statement), rows)
    if changes.messages:
        await session.copy_records_to_table("message", records=changes.messages)
    if changes.bodies:
        await session.copy_records_to_table("body", records=changes.bodies)
    updates: list[tuple[str, Sequence[Row]]] = [
        (texts.of(FALL_DUE), changes.fallen_due),
        (texts.of(COUNT), changes.counted),
        (texts.of(REWRITE), changes.rewritten),
    ]
    for text, rows in updates:
        if rows:
            await session.executemany(text, rows)
    if changes.removed:
        await session.execute(DELETE_MESSAGES, changes.removed)
    if changes.bodies_removed:
        await session.execute(DELETE_BODIES, changes.bodies_removed)
    await session.execute("COMMIT")


# -- errors


def cause_of(error: BaseException) -> BaseException:
    """The driver's own error, where SQLAlchemy has wrapped it."""
    original = getattr(error, "orig", None)
    if isinstance(original, BaseException):
        return original.__cause__ or original
    return error


def is_passing(error: BaseException) -> bool:
    """Whether the same may succeed on another connection, a moment later."""
    cause = cause_of(error)
    if isinstance(cause, OSError | TimeoutError | AwayError):
        return True
    if isinstance(cause, asyncpg.InterfaceError | asyncpg.InternalClientError):
        # this is how the driver speaks of a connection that has been closed
        return not isinstance(cause, ValueError)
    code = getattr(cause, "sqlstate", None) or ""
    return code in PASSING or code.startswith("08")


def explained(error: BaseException, name: str) -> StoreError:
    """`error` as what an operator can do about it."""
    cause = cause_of(error)
    if isinstance(cause, StoreError):
        return cause
    said = str(cause) or type(cause).__name__
    advice = ADVICE.get(getattr(cause, "sqlstate", None) or "")
    return StoreError(f"the store {name} failed: {said}" + (f" ({advice})" if advice else ""))
