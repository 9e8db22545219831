"""The schema and its migrations."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from storage.api import StoreError
from storage.sql.schema import HEAD, MIGRATIONS, bring_up_to_date, version_of
from storage.sql.sqlite import engine_of, prepare
from storage.sql.tables import METADATA


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
