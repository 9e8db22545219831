"""Quarantine: the messages that were found damaged."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "quarantine",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("found_ms", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
    )
