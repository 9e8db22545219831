"""Whether a client created a node by naming it, as a column of the node in place of a mark.

A mark for each such node was a row more to write, and all of them were read at a start.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

FROM_MARKS = """
UPDATE node SET auto_created = true WHERE EXISTS
(SELECT name FROM mark WHERE name = 'auto-created ' || node.kind || ' ' || node.address)
"""


def upgrade() -> None:
    column = sa.Column("auto_created", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("node", column)
    op.execute(FROM_MARKS)
    op.execute("DELETE FROM mark WHERE name LIKE 'auto-created %'")
