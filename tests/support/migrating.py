"""Databases with the schemas of earlier brokers."""

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from storage.sql.schema import MIGRATIONS


def schema_0001(connection: Connection) -> None:
    """Create the tables of the first schema, and no others."""
    schema(connection, "0001")


def schema(connection: Connection, version: str) -> None:
    """Create the tables of the schema `version`."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, version)
