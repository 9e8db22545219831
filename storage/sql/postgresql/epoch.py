"""The epoch of the broker that leads, which every commit checks in the statement that writes.

Each broker begins an epoch of its own when it opens the store. A broker whose session has lost the
lock without an end of the session, as `DISCARD ALL` does it, would commit behind the next one's
start: its commits, and all its other transactions that write, fail here. The epoch is stored in the
row of the mark `commits`, since an UPDATE that waited for that row is evaluated anew on its new
version; a subselect of another row is not.
"""

from __future__ import annotations

from typing import Final

import asyncpg

from storage.sql.postgresql.lock import HELD

COMMITS: Final = "commits"
"""Mark with the number of the last batch: it shows whether a commit without answer succeeded."""

OWNER: Final = "owner"
"""Mark with the number of the last epoch that a broker began."""

BEGIN_EPOCH: Final = f"""
WITH leader AS (
    INSERT INTO mark (name, value) VALUES ('{OWNER}', 1)
    ON CONFLICT (name) DO UPDATE SET value = mark.value + 1 RETURNING value
)
INSERT INTO mark (name, value, epoch) SELECT '{COMMITS}', 0, value FROM leader
ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch
RETURNING epoch, value
"""  # noqa: S608 - nothing of a peer's is in it
"""Begin an epoch. Returned columns: the epoch, and the number of the last batch."""

CHECK_EPOCH: Final = (
    f"UPDATE mark SET value = CASE WHEN epoch = {{epoch}} THEN value END WHERE name = '{COMMITS}'"  # noqa: S608
)
"""The first statement of a transaction; `epoch` is a number. It fails in an epoch that is over."""

COUNT_BATCH: Final = f"""
UPDATE mark SET value = CASE WHEN value = {{number}} - 1 AND epoch = {{epoch}} THEN {{number}} END
WHERE name = '{COMMITS}'
"""  # noqa: S608 - numbers, or names of parameters
"""Note the number of a batch; the same holds. It fails, too, if it is not the next number."""

LEADS: Final = f"""
SELECT
    epoch = $1 AND EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND {HELD}) AS leads,
    current_setting('synchronous_standby_names') <> '' AS is_replicated
FROM mark WHERE name = '{COMMITS}'
"""  # noqa: S608
"""Whether the epoch $1 lasts and this session holds the lock, and whether commits wait for a
standby server."""


def is_over(error: BaseException) -> bool:
    """Return whether `error` says that the epoch of the statement is over."""
    return (
        isinstance(error, asyncpg.NotNullViolationError)
        and error.table_name == "mark"
        and error.column_name == "value"
    )
