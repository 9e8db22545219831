"""The event log."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "event",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("vhost", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("subscription", sa.String, nullable=False),
        sa.Column("message_id", sa.String, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("consumer", sa.String, nullable=False),
        sa.Column("link", sa.String, nullable=False),
        sa.Column("session", sa.String, nullable=False),
        sa.Column("delivery_count", sa.BigInteger, nullable=False),
        sa.Column("deliver_at_us", sa.BigInteger, nullable=False),
        sa.Column("txn", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("boot", sa.String, nullable=False),
    )
