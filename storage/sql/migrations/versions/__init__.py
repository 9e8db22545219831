"""One file per migration, written by hand: `alembic revision` is not used."""
