"""The schema and its migrations."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from storage.api import StoreError
from storage.sql.schema import HEAD, MIGRATIONS, bring_up_to_date, version_of
from storage.sql.sqlite import engine_of, prepare
from storage.sql.store import SqliteStore
from storage.sql.tables import METADATA
from tests.support.stored import stored_messages
from tests.support.stored_files import old_store


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_migrations_from_nothing_make_the_tables(tmp_path: Path) -> None:
    with engine_of(tmp_path / "store.db").connect() as connection:
        prepare(connection)
        assert version_of(connection) == ""
        bring_up_to_date(connection)
        assert version_of(connection) == HEAD
        bring_up_to_date(connection)
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_schema_of_a_newer_broker_is_refused(tmp_path: Path) -> None:
    with engine_of(tmp_path / "store.db").connect() as connection:
        prepare(connection)
        bring_up_to_date(connection)
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(StoreError, match="newer jms-broker"):
            bring_up_to_date(connection)


async def test_a_database_of_the_first_schema_is_brought_up_to_date_with_its_rows(
    tmp_path: Path,
) -> None:
    database = tmp_path / "store.db"
    old_store(database)
    with engine_of(database).connect() as connection:
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
    with engine_of(database).connect() as connection:
        assert version_of(connection) == HEAD
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_migration_is_done_whole_or_not_at_all(tmp_path: Path) -> None:
    """Whatever ends it, a kill or an error: half a schema would never open again."""
    with engine_of(tmp_path / "store.db").connect() as made:
        connection = made.execution_options(isolation_level="AUTOCOMMIT")
        prepare(connection)
        connection.execute(text("CREATE TABLE mark (name TEXT)"))
        with pytest.raises(OperationalError):
            bring_up_to_date(connection)
        assert inspect(connection).get_table_names() == ["mark"]
        connection.execute(text("DROP TABLE mark"))
        bring_up_to_date(connection)
        assert version_of(connection) == HEAD
