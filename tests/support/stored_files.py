"""Files of SQLite stores for tests: create, fill, damage and inspect."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from storage.batch import Batch
from storage.records import StoredMessage, StoredNode
from storage.sql.rows import checksum
from storage.sql.schema import MIGRATIONS
from storage.sql.sqlite.sqlite import engine_of, prepare
from storage.sql.sqlite.store import SqliteStore

PAGE = 4096
RECORD = 76
OFFSET = 56
POSITION = 8
QUEUE = 48


@contextmanager
def connected(database: Path) -> Iterator[Connection]:
    """Yield a connection of the store's own kind, and close it."""
    engine = engine_of(database)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


async def filled(database: Path, count: int, *, size: int = 20, shared: int = 3) -> None:
    """Create a store with queue `q` and `count` messages from 1 on.

    The first `shared` messages have a common body; the others have the publisher `ada`.
    """
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    body = b"shared"
    for number in range(1, count + 1):
        encoded = body if number <= shared else (b"%d " % number).ljust(size, b"x")
        batch.append(_message(number, encoded, publisher="" if number <= shared else "ada"))
    await store.commit(batch)
    await store.close()


def old_store(database: Path) -> None:
    """Create a store with the first schema, and message 5 in the queue `q`."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with connected(database) as connection:
        prepare(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.commit()
    change(
        database,
        "INSERT INTO queue (id, name) VALUES (7, 'q')",
        "INSERT INTO node (kind, address) VALUES ('queue', 'q')",
        "INSERT INTO message (number, queue, position, priority, ttl_ms, arrived_ms,"
        " expires_at_ms, deliver_at_ms, delivery_count, durable, checksum, body, encoded)"
        f" VALUES (5, 7, 54, 4, -1, 0, 0, 0, 2, 1, {checksum(5, b'old')}, NULL, x'6F6C64')",
        "INSERT INTO mark (name, value) VALUES ('numbers', 99)",
    )


def garble_schema(database: Path) -> None:
    """Damage the schema so that SQLite's message about it is no valid text."""
    whole = database.read_bytes()
    assert b"CREATE TABLE segment" in whole
    database.write_bytes(whole.replace(b"CREATE TABLE segment", b"CRE\xc1TE TABLE segment"))


def _message(number: int, encoded: bytes, *, publisher: str) -> StoredMessage:
    return StoredMessage(
        number=number,
        queue="q",
        position=number * 10 + 4,
        encoded=encoded,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
        publisher=publisher,
    )


def change(database: Path, *statements: str) -> None:
    """Change rows while the store does not know of it."""
    connection = sqlite3.connect(database)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def flip(database: Path, *numbers: int, record_at: int | None = None) -> None:
    """Change a bit of the messages: of their first byte, or of their record at `record_at`."""
    connection = sqlite3.connect(database)
    with connection:
        for segment, facts in connection.execute("SELECT number, facts FROM segment").fetchall():
            for at in range(0, len(facts), RECORD):
                (number,) = struct.unpack_from("<q", facts, at)
                if number in numbers and record_at is not None:
                    facts = _flipped(facts, at + record_at)
                elif number in numbers:
                    (offset,) = struct.unpack_from("<i", facts, at + OFFSET)
                    asked = "SELECT encoded FROM body WHERE number = ?"
                    ((encoded,),) = connection.execute(asked, (segment,))
                    changed = (_flipped(encoded, offset), segment)
                    connection.execute("UPDATE body SET encoded = ? WHERE number = ?", changed)
            connection.execute("UPDATE segment SET facts = ? WHERE number = ?", (facts, segment))
    connection.close()


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def rows(database: Path, statement: str) -> list[tuple[object, ...]]:
    """Return rows of the file, read without the store."""
    connection = sqlite3.connect(database)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def spoil(database: Path, holding: bytes) -> None:
    """Overwrite the page that contains `holding`, so that SQLite can read nothing of it."""
    data = bytearray(database.read_bytes())
    page = data.index(holding) // PAGE * PAGE
    data[page : page + PAGE] = b"\xee" * PAGE
    database.write_bytes(data)
