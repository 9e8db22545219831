"""Version and migration of a database's schema.

alembic is imported only to change a schema, or to make one in PostgreSQL. It takes 0.1 s of a core,
which a new SQLite store is spared: its tables are made as they are now.
"""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text

from storage.api import StoreError
from storage.sql.tables import METADATA
from storage.sql.transaction import transaction

HEAD: Final = "0019"
"""Newest version in `migrations/versions`; a test compares it with alembic's."""

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def version_of(connection: Connection) -> str:
    """Return the schema's version, empty if there is none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def bring_up_to_date(connection: Connection, target: str = HEAD) -> None:
    """Create or migrate the schema. Raise StoreError if a newer broker created it."""
    version = version_of(connection)
    if version == target:
        return
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite and target == HEAD and not inspect(connection).get_table_names():
        with transaction(connection, "BEGIN IMMEDIATE"):
            _make_tables(connection)
        return
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version and version not in known:
        raise StoreError(
            f"the store has schema {version}, this broker knows up to {HEAD}: a newer jms-broker"
            " made it; start that one, or restore the backup that was made before the upgrade"
            " (`jms-broker store check` shows what is there, `jms-broker store salvage` copies what"
            " this one understands)"
        )
    config.attributes["connection"] = connection
    # alembic assumes that SQLite has no transactional DDL: without this a power cut could leave
    # half a schema
    with transaction(connection, "BEGIN IMMEDIATE" if is_sqlite else "BEGIN"):
        command.upgrade(config, target)


def _make_tables(connection: Connection) -> None:
    """Make the tables of an empty database, with the version that alembic would note."""
    METADATA.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
        " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
