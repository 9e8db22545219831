"""The user that owns a durable subscription; empty for those that existed before.

An older broker would let any user take over a subscription: the number of the schema keeps it from
opening such a store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("subscription", sa.Column("owner", sa.String, nullable=False, server_default=""))
