"""Deliberate bugs in what keeps a former leader of a group silent, which named files must find.

make mutations
"""

from __future__ import annotations

import sys
from typing import Final

from tests.scenario.mutations import Mutation
from tests.scenario.security_mutations import Control, check

LEADING: Final = "tests/unit/test_leading.py"
STORE: Final = "tests/unit/storage/sql/postgresql/test_store.py"
LEADERSHIP: Final = "tests/unit/storage/sql/postgresql/test_leadership.py"
WARM: Final = "tests/unit/storage/sql/postgresql/test_warm.py"
POSTGRES: Final = "tests/unit/storage/sql/postgresql/test_postgres.py"

CONTROLS: Final = (
    Control(
        Mutation(
            "a leader acts without an end",
            "broker/tenure.py",
            "return now_us >= self._ends_us",
            "return False",
        ),
        LEADING,
    ),
    Control(
        Mutation(
            "commits do not check the epoch",
            "storage/sql/postgresql/epoch.py",
            "WHEN value = {{number}} - 1 AND epoch = {{epoch}} THEN",
            "WHEN epoch = epoch OR epoch = {{epoch}} THEN",
        ),
        STORE,
    ),
    Control(
        Mutation(
            "a wait for a standby server counts as proof that the broker leads",
            "storage/sql/postgresql/leadership.py",
            "coalesce(wait_event, '') <> 'SyncRep'",
            "true",
        ),
        LEADERSHIP,
    ),
    Control(
        Mutation(
            "a standby does not look what has changed before it leads",
            "storage/sql/postgresql/store.py",
            "        await self._run(warm.look)\n",
            "",
        ),
        WARM,
    ),
    Control(
        Mutation(
            "a pair of databases without replication is accepted",
            "storage/sql/postgresql/postgres.py",
            "if facts.hosts > 1 and",
            "if False and",
        ),
        POSTGRES,
    ),
)


if __name__ == "__main__":
    sys.exit(check(CONTROLS))
