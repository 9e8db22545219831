"""The audit finds exactly the faults of an event log; DuckDB and a model agree with it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

import duckdb
import pytest

from pyspark_amqp.engines.engine import Engine
from pyspark_amqp.jobs.audit import PLACE, Look, Scope
from pyspark_amqp.jobs.extent import Bounds, Hole, bounds
from pyspark_amqp.jobs.findings import (
    CHECKS,
    DUPLICATE,
    EXCLUSIVE,
    LOSS,
    RECORDED,
    WHOLE,
)
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.jobs.verdict import judge
from tests.spark.event_logs import START, Model, Writer, as_parquet
from tests.spark.stories import (
    RESTARTED,
    STORIES,
    accepted_twice,
    consumed,
    not_consumed,
)

pytestmark = pytest.mark.spark

DRAINED: Final = Look(drained=True)


@pytest.mark.requirement("PIP-63")
@pytest.mark.requirement("PIP-75")
def test_stories(engine: Engine) -> None:
    """Each story has an address of its own; whatever is open in the end is lost."""
    told = Writer()
    for story, _ in STORIES:
        story(told, story.__name__)
    events = told.table(engine)
    found = judge(events, bounds(events), look=DRAINED)[1].rows()
    verdicts: dict[str, set[str]] = {story.__name__: set() for story, _ in STORIES}
    verdicts |= {"dead": set(), "late": set()}
    for row in found:
        verdicts[row["address"]].add(row["check"])
    assert {name: each for name, each in verdicts.items() if each} == {
        story.__name__: expected for story, expected in STORIES if expected
    }
    assert len(found) == sum(len(expected) for _, expected in STORIES)


@pytest.mark.requirement("PIP-63")
def test_stories_with_a_restart(engine: Engine) -> None:
    told = Writer()
    for story, _ in RESTARTED:
        story(told, story.__name__)
    told.note("purged", "", address="elsewhere", position=-1)
    events = told.table(engine)
    found = judge(events, bounds(events), look=DRAINED)[1].rows()
    assert sorted((row["address"], row["check"]) for row in found) == [
        ("leased_before_and_given_after", EXCLUSIVE)
    ]


# -- what is open


@pytest.mark.requirement("PIP-63")
def test_what_is_open_is_lost_only_where_it_is_not_in_the_queue(duckdb_engine: Engine) -> None:
    told = Writer()
    told.note("enqueued", 1)
    told.note("enqueued", 2)
    told.note("enqueued", 3)
    told.note("delivered", 3)
    told.note("enqueued", 4)
    told.note("delivered", 4)
    told.note("modified", 4)
    events = told.table(duckdb_engine)
    known = bounds(events)
    waiting = duckdb_engine.table(PLACE, [("q", None, 14)])
    verdict, found = judge(events, known, look=Look(waiting))
    assert [(row["messageId"], row["check"]) for row in found.rows()] == [("ID:2", LOSS)]
    assert verdict.open == {"there": 1, "missing": 1, "given": 1, "held": 1}
    assert not verdict.holds
    verdict, found = judge(events, known, look=Look(waiting, last=1))
    assert verdict.open == {"there": 1, "moving": 3}
    assert verdict.holds, "nobody has missed what came after the look"
    verdict, found = judge(events, known)
    assert verdict.holds
    assert not found.rows()
    assert verdict.judged[LOSS] == 0, "nothing can be said about four open messages"


@pytest.mark.requirement("PIP-63")
def test_where_a_look_proves_nothing_nothing_is_lost(duckdb_engine: Engine) -> None:
    told = Writer()
    told.note("enqueued", 1, address="topic")
    told.note("enqueued", 2, address="topic", subscription="durable/c/n")
    told.note("enqueued", 3, reason="not stored")
    told.note("scheduled", 4, position=4, deliver_at=told.now)
    waiting = duckdb_engine.table(PLACE, [("q", None, 5)])
    look = Look(waiting, last=told.id, topics=frozenset({"topic"}))
    events = told.table(duckdb_engine)
    verdict, found = judge(events, bounds(events), look=look)
    assert [row["messageId"] for row in found.rows()] == ["ID:2"], "it has a name"
    assert verdict.open == {"unseen": 2, "missing": 1}
    assert verdict.judged[LOSS] == verdict.messages - 2
    told.now += timedelta(seconds=10)
    told.note("enqueued", 5)
    events = told.table(duckdb_engine)
    later = judge(events, bounds(events), look=look)[1].rows()
    assert {row["messageId"] for row in later} == {"ID:2", "ID:3", "ID:4"}, (
        "the broker that was looked into goes on, and what is scheduled is late"
    )
    told.restart()
    told.note("enqueued", 6)
    events = told.table(duckdb_engine)
    later = judge(events, bounds(events), look=look)[1].rows()
    assert {row["messageId"] for row in later} == {"ID:2", "ID:4"}, "it may have been another"


@pytest.mark.requirement("PIP-63")
def test_only_what_is_asked_for_is_judged(duckdb_engine: Engine) -> None:
    told = Writer()
    accepted_twice(told, "a")
    accepted_twice(told, "b")
    middle = told.now
    accepted_twice(told, "c")
    events = told.table(duckdb_engine)
    known = bounds(events)
    scopes = [
        (Scope(addresses=("a", "c")), {"a", "c"}),
        (Scope(since=middle), {"c"}),
        (Scope(until=middle, addresses=("b",)), {"b"}),
        (Scope(since=START + timedelta(days=1)), set()),
    ]
    for scope, expected in scopes:
        found = judge(events, known, scope=scope)[1].rows()
        assert {row["address"] for row in found} == expected, scope


@pytest.mark.requirement("PIP-63")
def test_missing_rows_are_a_finding_and_hide_what_they_may(engine: Engine) -> None:
    told = Writer()
    not_consumed(told, "before")
    for number in range(2, 10):
        consumed_as(told, number)
    not_consumed(told, "after")
    for index in (9, 5, 4):
        told.rows.pop(index)
    events = told.table(engine)
    known = bounds(events)
    assert (known.rows, known.missing, known.sees_from) == (len(told.rows), 3, 11)
    assert known.holes == (Hole(5, 6), Hole(10, 10))
    verdict, found = judge(events, known, look=DRAINED)
    assert {(row["check"], row["address"], row["id"]) for row in found.rows()} == {
        *((WHOLE, "", 7), (WHOLE, "", 11)),
        (LOSS, "after", 26),
    }
    assert not verdict.holds
    assert (verdict.judged[WHOLE], verdict.broken[WHOLE]) == (26, 3)
    assert verdict.open == {"before": 2, "missing": 1}, "one had its end among them"
    assert verdict.judged[LOSS] == verdict.messages - 2 == 8
    assert verdict.judged[DUPLICATE] == 6, "rows of two messages are missing"
    behind = query("SELECT * FROM {events} WHERE id >= {first}", events=events, first=11)
    verdict, _ = judge(behind, bounds(behind))
    assert verdict.holds, "what was asked for has no hole"


def consumed_as(told: Writer, number: int) -> None:
    for kind in ("enqueued", "delivered", "accepted"):
        told.note(kind, number)


def test_an_event_log_whose_oldest_rows_are_gone_has_no_gap(duckdb_engine: Engine) -> None:
    told = Writer(id=100)
    consumed(told, "q")
    known = bounds(told.table(duckdb_engine))
    assert (known.first, known.last, known.missing, known.sees_from) == (101, 103, 0, 101)


def test_an_empty_event_log_holds(duckdb_engine: Engine) -> None:
    events = Writer().table(duckdb_engine)
    known = bounds(events)
    assert known == Bounds(0, 0, 0, 0, 0, 0, None, 0, 0)
    verdict, _ = judge(events, known, look=DRAINED)
    assert verdict.holds
    assert verdict.is_of_nothing


# -- planted faults, and another engine

DUCKDB: Final = """
with events as (select * from read_parquet('{events}')
), trace as (
  select *, lag(kind) over own as before, lag(boot) over own as before_boot,
    count(*) filter (where kind in ('delivered', 'leased')) over
      (own rows between unbounded preceding and current row) as gifts,
    count(*) filter (where kind = 'accepted') over
      (own rows between unbounded preceding and current row) as accepts,
    lag(kind) over (partition by address, position, messageId, consumer, boot order by id) as mine,
    max(id) filter (where kind = 'enqueued') over own as enqueued_id
  from events where position >= 0
  window own as (partition by address, subscription, position, messageId order by id)
), lives as (
  select address, messageId, count(*) filter (where kind = 'enqueued') as enqueued,
    count(*) filter (where kind in ('accepted', 'settled')) as accepted,
    count(*) filter (where kind in
      ('accepted', 'settled', 'expired', 'deadlettered', 'moved', 'purged')) as ended
  from trace group by address, subscription, position, messageId
), firsts as (
  select *, lag(enqueued_id) over
    (partition by address, consumer, boot, position % 10 order by id) as before_it
  from trace where kind = 'delivered' and gifts = 1 and enqueued_id is not null
), begins as (
  select *, lag(position) over (partition by boot, session order by position) as from_it
  from events where kind in ('enqueued', 'scheduled')
), gaps as (
  select address, unnest(generate_series(from_it + 10, position - 10, 10)) as position
  from begins where position > from_it + 10
)
select 'no loss', messageId from lives where enqueued > ended
union all select 'no duplicate', messageId from lives where accepted > greatest(enqueued, 1)
union all select 'exclusive', messageId from trace
  where kind = 'delivered' and before = 'delivered' and boot = before_boot
union all select 'order', messageId from firsts where before_it > enqueued_id
union all select distinct 'not early', later.messageId from trace later join trace now
  using (address, messageId, boot)
  where later.kind = 'scheduled' and now.kind in ('enqueued', 'delivered')
    and now.at < later.deliverAt
union all select case gifts when 0 then 'given first' else 'by its holder' end, messageId
  from trace where kind = 'accepted' and accepts = 1 and coalesce(mine, '') <> 'delivered'
union all select 'dead letter', gone.messageId from events gone left join events came
  on came.id = gone.id + 1 and came.messageId = gone.messageId and came.address = 'dead'
  where gone.kind = 'deadlettered' and came.id is null
union all select distinct case when events.id is null then 'recorded' else 'given first' end,
  coalesce(events.messageId, gaps.address || '/' || gaps.position)
  from gaps left join events using (address, position)
"""


@pytest.mark.requirement("PIP-64")
@pytest.mark.requirement("PIP-65")
@pytest.mark.requirement("PIP-75")
def test_planted_faults_are_found_exactly(engine: Engine, tmp_path: Path) -> None:
    seed = 3
    checks = [check for check in CHECKS if check != WHOLE]
    busy = Model(seed, [check for check in checks for _ in range(seed)]).run(messages=900)
    events = as_parquet(busy.told, engine, tmp_path)
    verdict, found = judge(events, bounds(events), look=DRAINED)
    assert {
        (row["check"], row["messageId"] or f"{row['address']}/{row['position']}")
        for row in found.rows()
    } == busy.faults
    assert sum(verdict.broken.values()) == len(busy.faults) == len(checks) * seed
    with duckdb.connect() as other:
        rows = other.execute(DUCKDB.format(events=tmp_path / "part.parquet")).fetchall()
    assert set(rows) == busy.faults
    assert len(rows) == len(busy.faults)


@pytest.mark.requirement("PIP-64")
def test_a_sound_event_log_has_no_faults(engine: Engine) -> None:
    busy = Model(7, []).run(messages=700)
    events = busy.told.table(engine)
    verdict, found = judge(events, bounds(events), look=DRAINED)
    assert verdict.holds
    assert not found.rows()
    assert verdict.messages > 700, "those that were dead-lettered have two lives"
    assert set(verdict.judged.values()) - {verdict.messages} <= set(
        range(1, len(busy.told.rows) + 1)
    )
    assert verdict.judged[LOSS] == verdict.judged[RECORDED] == verdict.messages
