"""Queues, nodes, subscriptions and messages."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    make_queues()
    make_messages()


def make_queues() -> None:
    op.create_table(
        "queue",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "node",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.UniqueConstraint("kind", "address"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "subscription",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("queue", sa.String, nullable=False, unique=True),
        sa.Column("container_id", sa.String, nullable=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("is_shared", sa.Boolean, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("filters", sa.LargeBinary, nullable=False),
        sa.Column("excluded_publisher", sa.String, nullable=False),
        sa.Column("durability", sa.Integer, nullable=False),
        sa.Column("expiry_policy", sa.String, nullable=False),
        sa.Column("timeout_s", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )


def make_messages() -> None:
    op.create_table(
        "message",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("queue", sa.Integer, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("ttl_ms", sa.BigInteger, nullable=False),
        sa.Column("arrived_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("deliver_at_ms", sa.BigInteger, nullable=False),
        sa.Column("delivery_count", sa.BigInteger, nullable=False),
        sa.Column("durable", sa.Boolean, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
        sa.Column("body", sa.BigInteger, nullable=True),
        sa.Column("encoded", sa.LargeBinary, nullable=True),
    )
    op.create_table(
        "body",
        sa.Column("number", SERIAL, primary_key=True, autoincrement=False),
        sa.Column("encoded", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "mark",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
