"""Environment of alembic: run the migrations on the connection that `schema.py` hands over."""

from alembic import context

from storage.sql.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
