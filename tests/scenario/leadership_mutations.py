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

FAULTS: Final = "tests/faults/test_failover"
ROW_D: Final = (
    f"{FAULTS}.py::test_a_leader_that_is_cut_off_neither_delivers_nor_answers"
    "_though_it_need_not_commit"
)
ROW_D_TOPICS: Final = (
    f"{FAULTS}.py::test_a_subscriber_of_the_next_leader_misses_nothing"
    "_that_the_former_one_has_accepted"
)
ROW_F9: Final = (
    f"{FAULTS}_databases.py::test_a_standby_database_that_stops_for_a_while_costs_nobody_anything"
)
ROW_L: Final = f"{FAULTS}_databases.py::test_two_databases_without_replication_are_refused"
ROW_O: Final = (
    f"{FAULTS}_sessions.py::"
    "test_a_leader_that_loses_the_lock_in_a_session_that_lives_commits_nothing"
)
ROW_P: Final = (
    f"{FAULTS}_databases.py::"
    "test_a_leader_that_is_cut_off_together_with_the_old_primary_says_nothing_more"
)
"""Tests of rows of F17, with real brokers and databases."""

TENURE_OFF: Final = Mutation(
    "a leader acts without an end",
    "broker/tenure.py",
    "return now_us >= self._ends_us",
    "return False",
)
EPOCH_OFF: Final = Mutation(
    "commits do not check the epoch",
    "storage/sql/postgresql/epoch.py",
    "WHEN value = {{number}} - 1 AND epoch = {{epoch}} THEN",
    "WHEN epoch = epoch OR epoch = {{epoch}} THEN",
)
SYNC_REP_OFF: Final = Mutation(
    "a wait for a standby server counts as proof that the broker leads",
    "storage/sql/postgresql/leadership.py",
    "coalesce(wait_event, '') <> 'SyncRep'",
    "true",
)
NAMES_OFF: Final = Mutation(
    "a pair of databases without replication is accepted",
    "storage/sql/postgresql/postgres.py",
    "if facts.hosts > 1 and",
    "if False and",
)

CONTROLS: Final = (
    Control(
        TENURE_OFF,
        LEADING,
    ),
    Control(TENURE_OFF, ROW_D),
    Control(TENURE_OFF, ROW_D_TOPICS),
    Control(TENURE_OFF, ROW_P),
    Control(
        EPOCH_OFF,
        STORE,
    ),
    Control(EPOCH_OFF, ROW_O),
    Control(SYNC_REP_OFF, LEADERSHIP),
    Control(SYNC_REP_OFF, ROW_P),
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
        NAMES_OFF,
        POSTGRES,
    ),
    Control(NAMES_OFF, ROW_L),
    Control(
        Mutation(
            "a leader that waits for a standby server is ended",
            "storage/sql/postgresql/leadership.py",
            "wait_event_type = 'Client' AS waits",
            "true AS waits",
        ),
        ROW_F9,
    ),
)


if __name__ == "__main__":
    sys.exit(check(CONTROLS))
