"""Leases of messages, and their batches (table `lease_epoch`)."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "lease",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("queue", sa.String, nullable=False),
        sa.Column("selector", sa.LargeBinary, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("ttl_ms", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("settled", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "lease_epoch",
        sa.Column("lease", sa.String, primary_key=True),
        sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("members", sa.LargeBinary, nullable=False),
    )
