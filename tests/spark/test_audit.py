"""The audit finds exactly the faults of an event log; DuckDB and a model agree with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import duckdb
import pytest
from pyspark.sql import SparkSession

from pyspark_amqp.jobs.audit import (
    CHECKS,
    DUPLICATE,
    EARLY,
    EXCLUSIVE,
    LOSS,
    ORDER,
    Bounds,
    Look,
    Scope,
    bounds,
    judge,
)
from tests.spark.event_logs import START, Model, Writer

pytestmark = pytest.mark.spark

DRAINED: Final = Look(drained=True)

Story = Callable[[Writer, str], None]


def consumed(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "accepted"):
        told.note(kind, address=q)


def leased_and_settled(told: Writer, q: str) -> None:
    for kind in ("enqueued", "leased", "settled"):
        told.note(kind, address=q)


def not_consumed(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)


def delivered_only(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("delivered", address=q)


def accepted_twice(told: Writer, q: str) -> None:
    consumed(told, q)
    told.note("accepted", address=q)


def accepted_and_settled(told: Writer, q: str) -> None:
    leased_and_settled(told, q)
    told.note("accepted", address=q)


def began_before_the_journal(told: Writer, q: str) -> None:
    told.note("delivered", address=q)
    told.note("accepted", address=q)


def rejected(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "rejected", "deadlettered"):
        told.note(kind, address=q)


def rejected_and_nobody_takes_it(told: Writer, q: str) -> None:
    rejected(told, q)
    told.note("purged", address=q, reason="no dead-letter node takes it")


def expired(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("expired", address=q)


def moved_by_an_operator(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("moved", address=q, reason="to queue other")


def gone_with_its_queue(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("purged", "", address=q, position=-1, reason="1 messages, with their queue")


def come_after_its_queue_was_made_anew(told: Writer, q: str) -> None:
    gone_with_its_queue(told, q)
    told.note("enqueued", 2, address=q)


def two_subscribers_without_a_name(told: Writer, q: str) -> None:
    for kind in ("enqueued", "enqueued", "delivered", "delivered", "accepted", "accepted"):
        told.note(kind, address=q)


def one_of_two_subscribers_never_got_it(told: Writer, q: str) -> None:
    for kind in ("enqueued", "enqueued", "delivered", "accepted"):
        told.note(kind, address=q)


def given_to_two(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "delivered", "accepted"):
        told.note(kind, address=q)


def released_between(told: Writer, q: str) -> None:
    for kind in ("enqueued", "delivered", "released", "delivered", "modified", "delivered"):
        told.note(kind, address=q)
    told.note("accepted", address=q)


def leased_and_given(told: Writer, q: str) -> None:
    for kind in ("enqueued", "leased", "delivered", "accepted"):
        told.note(kind, address=q)


def positions_begun_anew(told: Writer, q: str) -> None:
    consumed(told, q)
    consumed(told, q)


def out_of_order(told: Writer, q: str) -> None:
    for number in (1, 2, 3):
        told.note("enqueued", number, address=q)
    for number in (2, 1, 3):
        told.note("delivered", number, address=q, consumer="c")
        told.note("accepted", number, address=q, consumer="c")


def out_of_order_at_two_consumers(told: Writer, q: str) -> None:
    for number in (1, 2):
        told.note("enqueued", number, address=q)
    for number in (2, 1):
        told.note("delivered", number, address=q, consumer=f"c{number}")
        told.note("accepted", number, address=q, consumer=f"c{number}")


def urgent_ones_first(told: Writer, q: str) -> None:
    told.note("enqueued", 1, address=q, position=14)
    told.note("enqueued", 2, address=q, position=29)
    for number, position in ((2, 29), (1, 14)):
        told.note("delivered", number, address=q, position=position, consumer="c")
        told.note("accepted", number, address=q, position=position, consumer="c")


def a_later_one_again_before_it(told: Writer, q: str) -> None:
    for number in (1, 2, 3):
        told.note("enqueued", number, address=q)
    for number in (1, 2):
        told.note("delivered", number, address=q, consumer="c")
    told.note("released", 1, address=q, consumer="c")
    for number in (3, 1):
        told.note("delivered", number, address=q, consumer="c")
    for number in (1, 2, 3):
        told.note("accepted", number, address=q, consumer="c")


def scheduled(told: Writer, q: str, ahead: timedelta) -> None:
    told.note("scheduled", address=q, position=4, deliver_at=told.now + ahead)


def on_time(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(0))
    consumed(told, q)


def too_early(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(seconds=1))
    consumed(told, q)


def still_scheduled(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(days=1))


def due_and_never_came(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(0))


def due_and_cancelled(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(0))
    told.note("purged", address=q, position=4)


def without_an_id(told: Writer, q: str) -> None:
    told.note("scheduled", "", address=q, deliver_at=told.now + timedelta(seconds=1))
    told.note("enqueued", "", address=q)
    told.note("expired", "", address=q)


def shared_by_two_from_before_the_journal(told: Writer, q: str) -> None:
    """At a topic, two subscribers without names have one place; their beginnings were trimmed."""
    for kind in ("delivered", "delivered", "accepted", "accepted"):
        told.note(kind, address=q)


STORIES: Final[list[tuple[Story, set[str]]]] = [
    (consumed, set()),
    (leased_and_settled, set()),
    (not_consumed, {LOSS}),
    (delivered_only, {LOSS}),
    (accepted_twice, {DUPLICATE}),
    (accepted_and_settled, {DUPLICATE}),
    (began_before_the_journal, set()),
    (rejected, set()),
    (rejected_and_nobody_takes_it, set()),
    (expired, set()),
    (moved_by_an_operator, set()),
    (gone_with_its_queue, set()),
    (come_after_its_queue_was_made_anew, {LOSS}),
    (two_subscribers_without_a_name, set()),
    (one_of_two_subscribers_never_got_it, {LOSS}),
    (given_to_two, {EXCLUSIVE}),
    (released_between, set()),
    (leased_and_given, {EXCLUSIVE}),
    (positions_begun_anew, set()),
    (out_of_order, {ORDER}),
    (out_of_order_at_two_consumers, set()),
    (urgent_ones_first, set()),
    (a_later_one_again_before_it, set()),
    (on_time, set()),
    (too_early, {EARLY}),
    (still_scheduled, set()),
    (due_and_never_came, {LOSS}),
    (due_and_cancelled, set()),
    (without_an_id, set()),
    (shared_by_two_from_before_the_journal, set()),
]


@pytest.mark.requirement("PIP-63")
def test_stories(spark: SparkSession) -> None:
    """Each story has an address of its own; whatever is open in the end is lost."""
    told = Writer()
    for story, _ in STORIES:
        story(told, story.__name__)
    events = told.frame(spark)
    found = judge(events, bounds(events), look=DRAINED)[1].collect()
    verdicts: dict[str, set[str]] = {story.__name__: set() for story, _ in STORIES}
    for row in found:
        verdicts[row["address"]].add(row["check"])
    assert verdicts == {story.__name__: expected for story, expected in STORIES}
    assert len(found) == sum(len(expected) for _, expected in STORIES)


# -- where a restart makes the difference


def delivered_before_and_after(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("delivered", address=q)
    told.restart()
    told.note("delivered", address=q)
    told.note("accepted", address=q)


def leased_before_and_given_after(told: Writer, q: str) -> None:
    told.note("enqueued", address=q)
    told.note("leased", address=q)
    told.restart()
    told.note("delivered", address=q)
    told.note("accepted", address=q)


def not_stored(told: Writer, q: str) -> None:
    told.note("enqueued", address=q, reason="not stored")
    told.restart()


def another_clock(told: Writer, q: str) -> None:
    scheduled(told, q, timedelta(hours=1))
    told.restart()
    consumed(told, q)


RESTARTED: Final[list[tuple[Story, set[str]]]] = [
    (delivered_before_and_after, set()),
    (leased_before_and_given_after, {EXCLUSIVE}),
    (not_stored, set()),
    (another_clock, set()),
]


@pytest.mark.requirement("PIP-63")
def test_stories_with_a_restart(spark: SparkSession) -> None:
    told = Writer()
    for story, _ in RESTARTED:
        story(told, story.__name__)
    told.note("purged", "", address="elsewhere", position=-1)
    events = told.frame(spark)
    found = judge(events, bounds(events), look=DRAINED)[1].collect()
    assert sorted((row["address"], row["check"]) for row in found) == [
        ("leased_before_and_given_after", EXCLUSIVE)
    ]


# -- what is open


@pytest.mark.requirement("PIP-63")
def test_what_is_open_is_lost_only_where_it_is_not_in_the_queue(spark: SparkSession) -> None:
    told = Writer()
    told.note("enqueued", 1)
    told.note("enqueued", 2)
    told.note("enqueued", 3)
    told.note("delivered", 3)
    told.note("enqueued", 4)
    told.note("delivered", 4)
    told.note("modified", 4)
    events = told.frame(spark)
    known = bounds(events)
    waiting = spark.createDataFrame(
        [("q", None, 14)], "address STRING, subscription STRING, position BIGINT"
    )
    verdict, found = judge(events, known, look=Look(waiting))
    assert [(row["messageId"], row["check"]) for row in found.collect()] == [("ID:2", LOSS)]
    assert verdict.open == {"there": 1, "missing": 1, "given": 1, "held": 1}
    assert not verdict.holds
    verdict, found = judge(events, known, look=Look(waiting, last=1))
    assert verdict.open == {"there": 1, "moving": 3}
    assert verdict.holds, "nobody has missed what came after the look"
    verdict, found = judge(events, known)
    assert verdict.holds
    assert found.count() == 0
    assert verdict.judged[LOSS] == 0, "nothing can be said about four open messages"


@pytest.mark.requirement("PIP-63")
def test_where_a_look_proves_nothing_nothing_is_lost(spark: SparkSession) -> None:
    told = Writer()
    told.note("enqueued", 1, address="topic")
    told.note("enqueued", 2, address="topic", subscription="durable/c/n")
    told.note("enqueued", 3, reason="not stored")
    told.note("scheduled", 4, position=4, deliver_at=told.now)
    waiting = spark.createDataFrame(
        [("q", None, 5)], "address STRING, subscription STRING, position BIGINT"
    )
    look = Look(waiting, last=told.id, topics=frozenset({"topic"}))
    events = told.frame(spark)
    verdict, found = judge(events, bounds(events), look=look)
    assert [row["messageId"] for row in found.collect()] == ["ID:2"], "it has a name"
    assert verdict.open == {"unseen": 2, "missing": 1}
    assert verdict.judged[LOSS] == verdict.messages - 2
    told.now += timedelta(seconds=10)
    told.note("enqueued", 5)
    events = told.frame(spark)
    later = judge(events, bounds(events), look=look)[1].collect()
    assert {row["messageId"] for row in later} == {"ID:2", "ID:3", "ID:4"}, (
        "the broker that was looked into goes on, and what is scheduled is late"
    )
    told.restart()
    told.note("enqueued", 6)
    events = told.frame(spark)
    later = judge(events, bounds(events), look=look)[1].collect()
    assert {row["messageId"] for row in later} == {"ID:2", "ID:4"}, "it may have been another"


@pytest.mark.requirement("PIP-63")
def test_only_what_is_asked_for_is_judged(spark: SparkSession) -> None:
    told = Writer()
    accepted_twice(told, "a")
    accepted_twice(told, "b")
    middle = told.now
    accepted_twice(told, "c")
    events = told.frame(spark)
    known = bounds(events)
    scopes = [
        (Scope(addresses=("a", "c")), {"a", "c"}),
        (Scope(since=middle), {"c"}),
        (Scope(until=middle, addresses=("b",)), {"b"}),
        (Scope(since=START + timedelta(days=1)), set()),
    ]
    for scope, expected in scopes:
        found = judge(events, known, scope=scope)[1].collect()
        assert {row["address"] for row in found} == expected, scope


@pytest.mark.requirement("PIP-63")
def test_a_trimmed_event_log_is_no_loss(spark: SparkSession) -> None:
    told = Writer()
    not_consumed(told, "before")
    for number in range(2, 10):
        consumed_as(told, number)
    not_consumed(told, "after")
    told.rows.pop(5)
    events = told.frame(spark)
    known = bounds(events)
    assert (known.rows, known.missing) == (len(told.rows), 1)
    assert known.sees_from > 6, "where in a block of ids the gap is, is not looked for"
    found = judge(events, known, look=DRAINED)[1].collect()
    assert found == []
    exact = replace(known, sees_from=7)
    found = judge(events, exact, look=DRAINED)[1].collect()
    assert [row["address"] for row in found] == ["after"]


def consumed_as(told: Writer, number: int) -> None:
    for kind in ("enqueued", "delivered", "accepted"):
        told.note(kind, number)


def test_an_event_log_whose_oldest_rows_are_gone_has_no_gap(spark: SparkSession) -> None:
    told = Writer(id=100)
    consumed(told, "q")
    known = bounds(told.frame(spark))
    assert (known.first, known.last, known.missing, known.sees_from) == (101, 103, 0, 101)


def test_an_empty_event_log_holds(spark: SparkSession) -> None:
    events = Writer().frame(spark)
    known = bounds(events)
    assert known == Bounds(0, 0, 0, 0, 0, 0, None, 0, 0)
    verdict, _ = judge(events, known, look=DRAINED)
    assert verdict.holds
    assert verdict.is_of_nothing


# -- planted faults, and another engine

DUCKDB: Final = """
with trace as (
  select *, lag(kind) over own as before, lag(boot) over own as before_boot,
    count(*) filter (where kind in ('delivered', 'leased')) over
      (own rows between unbounded preceding and current row) as gifts,
    max(id) filter (where kind = 'enqueued') over own as enqueued_id
  from read_parquet('{events}') where position >= 0
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
"""


@pytest.mark.requirement("PIP-64")
@pytest.mark.requirement("PIP-65")
def test_planted_faults_are_found_exactly(spark: SparkSession, tmp_path: Path) -> None:
    seed = 3
    plant = [check for check in CHECKS for _ in range(seed)]
    busy = Model(seed, plant).run(messages=700)
    folder = str(tmp_path / "events")
    busy.told.frame(spark).coalesce(1).write.parquet(folder)
    events = spark.read.parquet(folder)
    verdict, found = judge(events, bounds(events), look=DRAINED)
    assert {(row["check"], row["messageId"]) for row in found.collect()} == busy.faults
    assert sum(verdict.broken.values()) == len(busy.faults) == 5 * seed
    with duckdb.connect() as other:
        rows = other.execute(DUCKDB.format(events=f"{folder}/*.parquet")).fetchall()
    assert set(rows) == busy.faults
    assert len(rows) == len(busy.faults)


@pytest.mark.requirement("PIP-64")
def test_a_sound_event_log_has_no_faults(spark: SparkSession) -> None:
    busy = Model(7, []).run(messages=700)
    events = busy.told.frame(spark)
    verdict, found = judge(events, bounds(events), look=DRAINED)
    assert verdict.holds
    assert found.count() == 0
    assert verdict.judged[LOSS] == 700
