"""An event log with more holes than are located: what they may hide is no finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.jobs import extent
from pyspark_amqp.jobs.extent import Bounds, Hole, bounds
from pyspark_amqp.jobs.findings import WHOLE
from pyspark_amqp.jobs.verdict import judge
from tests.spark.event_logs import Writer
from tests.spark.stories import dead_lettered

MESSAGES: Final = 4
LOCATED: Final = 2


def consumed_without_its_delivery(told: Writer, number: int) -> None:
    for kind in ("enqueued", "delivered", "accepted"):
        told.note(kind, number)
    told.rows.pop(-2)


def dead_lettered_without_its_arrival(told: Writer, number: int) -> None:
    before = len(told.rows)
    dead_lettered(told, f"q{number}")
    arrived = next(at for at, row in enumerate(told.rows) if at >= before and row[4] == "dead")
    told.rows.pop(arrived)


@pytest.mark.requirement("PIP-63")
@pytest.mark.parametrize(
    "story", [consumed_without_its_delivery, dead_lettered_without_its_arrival]
)
def test_holes_that_are_not_located_hide_what_they_may(
    monkeypatch: pytest.MonkeyPatch, story: Callable[[Writer, int], None]
) -> None:
    monkeypatch.setattr(extent, "HOLES_MAX", LOCATED)
    told = Writer()
    told.note("enqueued", 99)
    for number in range(1, MESSAGES + 1):
        story(told, number)
    with duckdb_engine() as engine:
        events = told.table(engine)
        known = bounds(events)
        verdict, _ = judge(events, known)
    assert (known.missing, len(known.holes)) == (MESSAGES, LOCATED)
    assert {check for check, count in verdict.broken.items() if count} == {WHOLE}


BOUNDS: Final = Bounds(6, 1, 10, 0, 1, 1, None, 0, 0)


@pytest.mark.parametrize(
    ("missing", "holes", "located_from", "hole_from"),
    [
        (0, (), 1, extent.FAR),
        (4, (Hole(3, 4), Hole(7, 8)), 1, 3),
        (4, (Hole(7, 8),), 7, 1),
    ],
    ids=["no hole", "all are located", "some are located"],
)
def test_where_rows_may_be_missing(
    missing: int, holes: tuple[Hole, ...], located_from: int, hole_from: int
) -> None:
    known = replace(BOUNDS, missing=missing, holes=holes)
    assert (known.located_from, known.hole_from) == (located_from, hole_from)
