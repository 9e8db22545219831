"""The schema and its migrations."""

import struct
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from google_crc32c import extend
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import IntegrityError, OperationalError

from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredNode
from storage.sql.rows import checksum
from storage.sql.schema import HEAD, MIGRATIONS, bring_up_to_date, version_of
from storage.sql.sqlite.sqlite import prepare
from storage.sql.sqlite.store import SqliteStore
from storage.sql.tables import METADATA
from tests.support.migrating import schema
from tests.support.stored import stored_messages
from tests.support.stored_files import change, connected, old_store, rows
from tests.unit.storage.sql.segments.test_packing import labelled


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_migrations_from_nothing_make_the_tables(tmp_path: Path) -> None:
    with connected(tmp_path / "store.db") as connection:
        prepare(connection)
        schema(connection, HEAD)
        assert version_of(connection) == HEAD
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def shape_of(connection: Connection) -> dict[str, object]:
    """Return the columns and indexes of each table, and whether its ids are never reused."""
    found: dict[str, object] = {}
    tables = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"
    for name, sql in connection.exec_driver_sql(tables).all():
        columns = connection.exec_driver_sql(f"PRAGMA table_xinfo({name})").all()
        indexes = [
            connection.exec_driver_sql(f"PRAGMA index_xinfo({index})").all()
            for _, index, *_ in connection.exec_driver_sql(f"PRAGMA index_list({name})").all()
        ]
        found[name] = (
            [tuple(column) for column in columns],
            sorted(str(index) for index in indexes),
            "AUTOINCREMENT" in sql,
            "WITHOUT ROWID" in sql,
        )
    return found


def test_a_new_store_has_the_tables_that_migrations_make(tmp_path: Path) -> None:
    with connected(tmp_path / "migrated.db") as connection:
        prepare(connection)
        schema(connection, HEAD)
        migrated = shape_of(connection)
    with connected(tmp_path / "new.db") as connection:
        prepare(connection)
        assert version_of(connection) == ""
        bring_up_to_date(connection)
        assert version_of(connection) == HEAD
        bring_up_to_date(connection)
        assert shape_of(connection) == migrated


def test_half_a_new_store_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(tmp_path / "store.db") as connection:
        prepare(connection)
        monkeypatch.setattr("storage.sql.schema.HEAD", None)  # which the last table does not take
        with pytest.raises(IntegrityError):
            bring_up_to_date(connection, None)  # type: ignore[arg-type]
        assert inspect(connection).get_table_names() == []


def test_a_schema_of_a_newer_broker_is_refused(tmp_path: Path) -> None:
    with connected(tmp_path / "store.db") as connection:
        prepare(connection)
        bring_up_to_date(connection)
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(
            StoreError, match="newer jms-broker made it; start that one, or restore the backup"
        ):
            bring_up_to_date(connection)


async def test_a_database_of_the_first_schema_is_brought_up_to_date_with_its_rows(
    tmp_path: Path,
) -> None:
    database = tmp_path / "store.db"
    old_store(database)
    with connected(database) as connection:
        connection.execute(text("INSERT INTO mark (name, value) VALUES ('in use', 1)"))
        connection.commit()
    store = SqliteStore(database)
    await store.open()
    assert [node.address for node in await store.nodes()] == ["q"]
    (message,) = await stored_messages(store, "q")
    assert (message.number, message.position, message.encoded) == (5, 54, b"old")
    assert (message.delivery_count, message.durable, store.first_number) == (2, True, 100)
    assert await store.delivered() == {"q": 54}, "nobody kept it then: it may have been all"
    await store.close()
    with connected(database) as connection:
        assert version_of(connection) == HEAD
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_migration_is_done_whole_or_not_at_all(tmp_path: Path) -> None:
    """After a kill or an error, half a schema could never be opened again."""
    with connected(tmp_path / "store.db") as made:
        connection = made.execution_options(isolation_level="AUTOCOMMIT")
        prepare(connection)
        connection.execute(text("CREATE TABLE mark (name TEXT)"))
        with pytest.raises(OperationalError):
            bring_up_to_date(connection)
        assert inspect(connection).get_table_names() == ["mark"]
        connection.execute(text("DROP TABLE mark"))
        bring_up_to_date(connection)
        assert version_of(connection) == HEAD


async def test_messages_become_segments_and_what_was_damaged_stays_so(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    old_store(database)
    columns = (
        "INSERT INTO message (number, queue, position, priority, ttl_ms, arrived_ms,"
        " expires_at_ms, deliver_at_ms, delivery_count, durable, checksum, body, encoded)"
        " VALUES ({}, 7, {}, {}, -1, 1, 2, 3, 0, 1, {}, {}, {})"
    )
    shared = [
        columns.format(number, number * 10, 4, checksum(number, b"same"), 6, "NULL")
        for number in (6, 7)
    ]
    many = [
        columns.format(number, number * 10, 4, checksum(number, b"own"), "NULL", "x'6F776E'")
        for number in range(11, 111)
    ]
    change(
        database,
        "INSERT INTO body (number, encoded) VALUES (6, x'73616D65')",
        *shared,
        columns.format(8, 80, 4, 0, "NULL", "x'00'"),
        columns.format(9, 90, 99, checksum(9, b"own"), "NULL", "x'6F776E'"),
        columns.format(10, "x'01'", 4, checksum(10, b"own"), "NULL", "x'6F776E'"),
        *many,
    )
    store = SqliteStore(database)
    await store.open()
    found = {int(each.number): each for each in await stored_messages(store, "q")}
    assert set(found) == {5, 6, 7, *range(11, 111)}
    assert (found[6].encoded, found[7].encoded, found[110].encoded) == (b"same", b"same", b"own")
    assert (found[7].ttl_ms, found[7].expires_at_ms, found[7].deliver_at_ms) == (-1, 2, 3)
    assert store.quarantined == 3
    await store.close()
    assert rows(database, "SELECT count(*) FROM segment") == [(2,)]


OLD_RECORD = struct.Struct("<qqqqqqIIIIII")
"""A record as brokers wrote it up to schema 0009, without its checksum."""


def old_record(number: int, encoded: bytes, offset: int, flags: int) -> bytes:
    facts = (number, number * 10 + 4, -1, 1, 0, 0, 7, 0)
    record = OLD_RECORD.pack(*facts, offset, len(encoded), extend(0, encoded), flags)
    return record + int(extend(0, record)).to_bytes(4, "little")


async def test_segments_without_labels_are_read_and_new_ones_lie_beside_them(
    tmp_path: Path,
) -> None:
    database = tmp_path / "store.db"
    with connected(database) as connection:
        prepare(connection)
        schema(connection, "0009")
        connection.commit()
    records = old_record(1, b"one", 0, 4 | 256) + old_record(2, b"two", 3, 9)
    change(
        database,
        "INSERT INTO queue (id, name) VALUES (7, 'q')",
        "INSERT INTO node (kind, address) VALUES ('queue', 'q')",
        f"INSERT INTO segment (number, size, facts) VALUES (1, 6, x'{records.hex()}')",
        "INSERT INTO body (number, encoded) VALUES (1, x'6F6E6574776F')",
        "INSERT INTO mark (name, value) VALUES ('numbers', 99)",
    )
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.append(labelled(100, "ada"))
    batch.rewrite(2, b"other")
    await store.commit(batch)
    await store.close()
    store = SqliteStore(database)
    await store.open()
    found = await stored_messages(store, "q")
    assert [(each.encoded, int(each.priority), each.durable) for each in found] == [
        (b"one", 4, True),
        (b"other", 9, False),
        (b"100", 4, True),
    ]
    assert [each.publisher for each in found] == ["", "", "ada"]
    assert not any(each.message_format or each.opaque or each.volatile for each in found)
    assert store.quarantined == 0
    await store.close()


async def test_nodes_of_a_broker_that_stored_no_creators_have_none(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    with connected(database) as connection:
        prepare(connection)
        schema(connection, "0011")
        connection.commit()
    change(database, "INSERT INTO node (kind, address) VALUES ('queue', 'q'), ('topic', 't')")
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address="new", kind="queue", creator="ada"))
    await store.commit(batch)
    found = [(node.kind, node.address, node.creator) for node in await store.nodes()]
    assert found == [("queue", "q", None), ("topic", "t", None), ("queue", "new", "ada")]
    await store.close()


async def test_nodes_that_marks_say_clients_created_are_so_by_a_column(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    with connected(database) as connection:
        prepare(connection)
        schema(connection, "0018")
        connection.commit()
    change(database, "INSERT INTO node (kind, address) VALUES ('queue', 'a b'), ('topic', 'a b')")
    change(database, "INSERT INTO mark (name, value) VALUES ('auto-created topic a b', 1)")
    store = SqliteStore(database)
    await store.open()
    found = {node.kind: node.auto_created for node in await store.nodes()}
    assert found == {"queue": False, "topic": True}
    await store.close()
    assert rows(database, "SELECT name FROM mark WHERE name LIKE 'auto-created%'") == []
