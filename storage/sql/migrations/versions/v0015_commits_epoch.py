"""The epoch of the broker that leads, beside the number of its last batch.

A commit in PostgreSQL checks both in the statement that writes the batch. An older broker would
commit without that check: the number of the schema keeps it from opening such a store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("mark", sa.Column("epoch", sa.BigInteger, nullable=True))
