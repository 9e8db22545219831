"""Users that log in, and the key of the salts that clients get for unknown users.

An older broker would not know these users, and might let every client in as there are none: the
number of the schema keeps it from opening such a store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "user_account",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("completes", sa.String, nullable=False),
        sa.Column("roles", sa.String, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("password", sa.String, nullable=False),
        sa.Column("scram_sha_256", sa.String, nullable=False),
        sa.Column("scram_sha_512", sa.String, nullable=False),
        sa.Column("credential_version", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("mechanisms", sa.String, nullable=True),
        sa.Column("certificates", sa.String, nullable=False),
        sa.Column("previous_until_ms", sa.BigInteger, nullable=False),
        sa.Column("previous_password", sa.String, nullable=False),
        sa.Column("previous_scram_sha_256", sa.String, nullable=False),
        sa.Column("previous_scram_sha_512", sa.String, nullable=False),
    )
    op.create_table(
        "secret",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
    )
