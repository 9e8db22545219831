"""Sources of links that own leases, so that unsettled deliveries outlive the broker."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "lease_terminus",
        sa.Column("lease", sa.String, primary_key=True),
        sa.Column("container_id", sa.String, nullable=False),
        sa.Column("link", sa.String, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("expiry_policy", sa.String, nullable=False),
        sa.Column("timeout_s", sa.BigInteger, nullable=False),
        sa.Column("default_outcome", sa.LargeBinary, nullable=False),
    )
