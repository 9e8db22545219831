"""The checks of the audit by name, and the form of a message that violates one.

A statement of such messages returns `check`, the columns that identify the message, `id` of the row
that shows it, and `detail`.
"""

from __future__ import annotations

from typing import Final

from pyspark_amqp.engines.engine import Table
from pyspark_amqp.jobs.statements import query

LOSS: Final = "no loss"
DUPLICATE: Final = "no duplicate"
EARLY: Final = "not early"
ORDER: Final = "order"
EXCLUSIVE: Final = "exclusive"
FIRST: Final = "given first"
HOLDER: Final = "by its holder"
DEAD_LETTER: Final = "dead letter"
RECORDED: Final = "recorded"
WHOLE: Final = "no hole"
CHECKS: Final = (
    *(LOSS, DUPLICATE, EARLY, ORDER, EXCLUSIVE),
    *(FIRST, HOLDER, DEAD_LETTER, RECORDED, WHOLE),
)

WITH_ROWS: Final = """
SELECT f.check AS check, f.address, f.subscription, f.position, f.messageId, f.id, e.at AS at,
  concat(f.detail, ' (', trim(concat_ws(' ', e.kind, e.consumer, e.link)), ')') AS detail
FROM {found} f JOIN {events} e ON f.id = e.id
"""

SORTED: Final = """
SELECT * FROM {found} f
ORDER BY f.id, f.check, f.address, f.subscription, f.position, f.messageId NULLS FIRST, f.detail
LIMIT {most}
"""

ALL: Final = 2**31 - 1
"""The most rows that Spark takes for a limit."""


def with_rows(found: Table, events: Table) -> Table:
    """Return messages that violate a check, with the time and text of the row that shows it."""
    return query(WITH_ROWS, found=found, events=events)


def in_order(found: Table, most: int = ALL) -> Table:
    """Return the first `most` messages that violate a check, by the rows that show it."""
    return query(SORTED, found=found, most=most)
