"""Message-format and publisher of messages, and flags in their records that were 0 until now.

An older broker would deliver a message of another format as one of format 0, and keep volatile
ones: the number of the schema keeps it from opening such a store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("body", sa.Column("labels", sa.LargeBinary, nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        # as `encoded`: it is small, and not worth the time
        op.execute("ALTER TABLE body ALTER COLUMN labels SET STORAGE EXTERNAL")
