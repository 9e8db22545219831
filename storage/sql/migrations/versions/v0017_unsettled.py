"""Outcomes of deliveries that their sender has not settled, kept beyond link and broker."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "unsettled",
        sa.Column("container_id", sa.String, primary_key=True),
        sa.Column("link", sa.String, primary_key=True),
        sa.Column("tag", sa.LargeBinary, primary_key=True),
        sa.Column("outcome", sa.LargeBinary, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("expiry_policy", sa.String, nullable=False),
        sa.Column("timeout_s", sa.BigInteger, nullable=False),
    )
