"""The addresses of the brokers of a group, which standbys and clients are told."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "member",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("kind", sa.String, primary_key=True),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("port", sa.BigInteger, nullable=False),
    )
