"""Positions up to which messages may have been delivered.

Earlier schemas did not keep them. If the last broker did not close the store, all messages may
have been delivered.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "delivered",
        sa.Column("queue", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
    op.execute(
        "INSERT INTO delivered (queue, position)"
        " SELECT queue, MAX(position) FROM message GROUP BY queue"
    )
