"""The user that created a queue or topic by naming it; null for those that existed before.

An older broker would store nodes without their creators, which then escape the limits of their
users: the number of the schema keeps it from opening such a store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("node", sa.Column("creator", sa.String, nullable=True))
