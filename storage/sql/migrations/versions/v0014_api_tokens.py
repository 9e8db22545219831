"""API tokens of users, by which programs log in over HTTP.

An older broker would neither know nor end these tokens: the number of the schema keeps it from
opening such a store.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "api_token",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("description", sa.String, nullable=False),
        sa.Column("roles", sa.String, nullable=True),
        sa.Column("credential_version", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
    )
