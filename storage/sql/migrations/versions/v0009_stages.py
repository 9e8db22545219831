"""Stages, and the last committed batch of each sink."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "stage",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("query", sa.String, nullable=False),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("partition", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("publisher", sa.String, nullable=False),
        sa.Column("begun_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "sink",
        sa.Column("query", sa.String, primary_key=True),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
    )
