"""Bodies of large messages in chunks."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "large",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("content", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("beginning", sa.LargeBinary, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "chunk",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
