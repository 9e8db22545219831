"""The order of what an audit and a report list, which has to be the same in each run."""

from __future__ import annotations

from itertools import permutations
from typing import Final

import pytest

from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.engines.engine import Record
from pyspark_amqp.jobs.findings import in_order
from pyspark_amqp.jobs.report import behind, messages_of
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS
from tests.spark.event_logs import Writer

FOUND: Final = {
    "check": "STRING",
    "address": "STRING",
    "subscription": "STRING",
    "position": "BIGINT",
    "messageId": "STRING",
    "id": "BIGINT",
    "detail": "STRING",
}

OFFENDERS: Final = [
    ("order", "a", "", 4, None, 1, ""),
    ("order", "a", "", 4, "m", 1, ""),
    ("order", "a", "s", 4, "m", 1, ""),
    ("order", "b", "", 4, "m", 1, "x"),
    ("order", "b", "", 4, "m", 1, "y"),
]


@pytest.mark.requirement("PIP-63")
def test_messages_that_one_row_shows_have_an_order() -> None:
    with duckdb_engine() as engine:
        for rows in permutations(OFFENDERS):
            found = in_order(engine.table(FOUND, rows)).rows()
            assert [tuple(row.values()) for row in found] == OFFENDERS


@pytest.mark.requirement("PIP-66")
def test_messages_behind_a_number_have_an_order() -> None:
    told = Writer()
    for subscription in ("", "s", "t"):
        for message in (1, 2):
            for _ in range(2):
                told.note("delivered", message, subscription=subscription, position=14)
    seen: list[list[Record]] = []
    with duckdb_engine() as engine:
        for rows in (told.rows, told.rows[::-1], told.rows[5:] + told.rows[:5]):
            events = engine.table(EVENT_LOG_COLUMNS, rows)
            seen.append(behind(messages_of(events), "redelivered"))
    places = [(row["subscription"], row["messageId"]) for row in seen[0]]
    assert places == sorted(places)
    assert len(places) == 6
    assert seen[1:] == seen[:1] * 2
