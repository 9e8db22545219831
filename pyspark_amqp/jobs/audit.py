"""The audit's checks of lives: five properties, and the messages that violate them.

Statements from tables to tables. `events` has the columns of `rows.columns.EVENT_LOG_COLUMNS`.
`custody.py` has the other checks, `verdict.py` puts them together.

A message is *unclear* if its rows may be those of several messages, or of a life that began before
the event log: it is of a subscriber of a topic without a name, its first row is not a beginning, or
rows are missing among its own.

- no loss: each life that began has ended, or the message is where it should be. Not judged if it
  began before the event log, or before a hole in it; if it was not stored and the broker restarted,
  or may have; if it waits for a subscriber of a topic that has no name; or if it was in motion, so
  that a look into its queue proves nothing.
- no duplicate: there are no more accepts than lives. Not judged if it is unclear.
- not early: no message is in a queue, or given, before its delivery time. Not judged over a
  restart, which means another clock, for messages without an id, and for those that an operator
  made ready.
- order: a consumer gets messages of one priority in the order of their arrival, the first time each
  is given. Not judged if no row shows when it arrived.
- exclusive: no message is given while a consumer or a lease has it. Not judged over a restart,
  except for leases, and if it is unclear.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pyspark_amqp.engines.engine import Table
from pyspark_amqp.jobs.extent import Bounds
from pyspark_amqp.jobs.findings import DUPLICATE, EARLY, EXCLUSIVE, LOSS, ORDER
from pyspark_amqp.jobs.lives import given_twice, lives
from pyspark_amqp.jobs.statements import query

ENDED: Final = "ended"
BEFORE: Final = "before"
GONE: Final = "gone"
THERE: Final = "there"
MISSING: Final = "missing"
UNSEEN: Final = "unseen"

PLACE: Final = {"address": "STRING", "subscription": "STRING", "position": "BIGINT"}
"""Columns of the messages that a look has seen, with Spark's types."""

SECOND_LOOK_S: Final = 3.0
"""Seconds until a second look, and until a message that has become due is overdue.

The broker reports an expired message up to a second later, and rows of messages that are not
durable are written with the next commit. So missing messages are looked for again.
"""


@dataclass(frozen=True)
class Scope:
    """The messages to judge: those first seen in [since, until), at `addresses` (empty: any)."""

    since: datetime | None = None
    until: datetime | None = None
    addresses: tuple[str, ...] = ()

    def of(self, messages: Table) -> Table:
        """Return the rows of `messages`, which have `address` and `firstAt`, that it takes."""
        found = messages
        if self.since is not None:
            found = query("SELECT * FROM {found} WHERE firstAt >= {at}", found=found, at=self.since)
        if self.until is not None:
            found = query("SELECT * FROM {found} WHERE firstAt < {at}", found=found, at=self.until)
        return at_addresses(found, self.addresses)


def at_addresses(found: Table, addresses: tuple[str, ...]) -> Table:
    """Return the rows of `found` at one of the addresses; all rows if none is given."""
    if not addresses:
        return found
    named = found.engine.table({"address": "STRING"}, [(each,) for each in set(addresses)])
    return query(
        "SELECT * FROM {found} SEMI JOIN {named} USING (address)", found=found, named=named
    )


EVERYTHING: Final = Scope()


@dataclass(frozen=True)
class Look:
    """The contents of the queues, known apart from the event log.

    `waiting` has the columns PLACE of messages that were seen in queues, when the event log's last
    row was `last`. `topics` are addresses at which other messages may wait that cannot be seen.
    `drained` says that queues were empty in the end and no consumer had a message, so each open
    message is lost. Without either nothing is known, so nothing is lost.
    """

    waiting: Table | None = None
    last: int | None = None
    topics: frozenset[str] = frozenset()
    drained: bool = False

    @property
    def tells(self) -> bool:
        """Return whether a loss can be seen."""
        return self.drained or self.waiting is not None


NO_LOOK: Final = Look()


# -- the five checks


STATED: Final = """
SELECT {key}, enqueued, scheduled, accepted, ended, given, deliverAt, settlements, holders, named,
  lastId, acceptedId, beganId, giftId, stream,
  nameless > 0
    OR NOT (firstId >= {sees_from} OR lastId < {hole_from})
    OR firstBeginId IS DISTINCT FROM firstId AS isUnclear,
  CASE
    WHEN (enqueued <= ended AND ended > 0) OR (isOfOne AND endId > lastBeginId) OR bulkId > begun
      THEN 'ended'
    WHEN {is_not_stored} AND lastBeginId < {boot_from} THEN 'gone'
    WHEN isThere THEN 'there'
    WHEN NOT (enqueued > ended AND begun >= {sees_from}) THEN 'before'
    WHEN lastId > {looked} THEN 'moving'
    WHEN lastId = leasedId THEN 'given'
    WHEN lastId = deliveredId AND lastId >= {boot_from} THEN 'given'
    WHEN lastId = modifiedId AND lastId >= {boot_from} THEN 'held'
    WHEN {has_looked} AND subscription = '' AND isTopic THEN 'unseen'
    WHEN {has_looked} AND {is_not_stored} AND NOT {is_same_broker} THEN 'unseen'
    ELSE 'missing'
  END AS state
FROM (
  SELECT lives.*, bulkId, isThere, isTopic,
    coalesce(enqueuedId, lastId) AS begun,
    subscription <> '' OR (named > 0 AND nameless = 0) AS isOfOne
  FROM {lives} lives
  LEFT JOIN {bulk_ends} bulk_ends USING (address, subscription)
  LEFT JOIN {waiting} waiting USING (address, subscription, position)
  LEFT JOIN {topics} topics USING (address)
) joined
"""
"""Messages of `lives` with a `state`: where each message is whose life has not ended.

`ended`: no life is open, or its whole queue was deleted or purged. A queue has one message at a
place: so behind an end, a life without an end of its own has ended with an earlier queue, or an
earlier broker (`isOfOne`). `gone`: not stored, and its broker process has ended. `there`: it was
seen in its queue. `before`: it began before the event log, or before a hole, which may have its
end. `moving`: it has rows since the look. `given`: a consumer or a lease has it, by the event log.
`held`: it waits for another attempt. `unseen`: the look may have missed it, as it waits at a topic,
or was not stored and nothing proves that the broker has not restarted: a row written behind the
look is the only proof that it was at the same broker process. `missing`: it should be in its queue;
without a look, nothing is known.
"""

BULK_ENDS: Final = """
SELECT address, subscription, max(id) AS bulkId
FROM {events} WHERE position = {bulk} GROUP BY address, subscription
"""

THERE_NOW: Final = """
SELECT DISTINCT address, coalesce(subscription, '') AS subscription, position, TRUE AS isThere
FROM {waiting}
"""


def with_state(events: Table, seen: Table, known: Bounds, look: Look) -> Table:
    """Return messages of `lives` with their state."""
    engine = events.engine
    looked = known.last if look.last is None else look.last
    bulk_ends = {"address": "STRING", "subscription": "STRING", "bulkId": "BIGINT"}
    return query(
        STATED,
        lives=seen,
        bulk_ends=query(BULK_ENDS, events=events) if known.bulks else engine.table(bulk_ends, []),
        waiting=engine.table({**PLACE, "isThere": "BOOLEAN"}, [])
        if look.waiting is None
        else query(THERE_NOW, waiting=look.waiting),
        topics=engine.table(
            {"address": "STRING", "isTopic": "BOOLEAN"}, [(each, True) for each in look.topics]
        ),
        has_looked=look.waiting is not None,
        looked=looked,
        is_same_broker=known.last > looked,
        sees_from=known.sees_from,
        hole_from=known.hole_from,
        boot_from=known.boot_from,
    )


LOST: Final = """
SELECT {check} AS check, {key}, lastId AS id, 'it is nowhere' AS detail
FROM {stated}
WHERE CASE WHEN {drained} THEN state NOT IN {settled} ELSE state = 'missing' END
"""


def lost(stated: Table, *, drained: bool) -> Table:
    """Return messages that have begun, have not ended, and are nowhere."""
    return query(LOST, stated=stated, check=LOSS, drained=drained, settled=(ENDED, GONE, BEFORE))


OVERDUE: Final = """
WITH never AS (
  SELECT * FROM {stated}
  WHERE scheduled > 0 AND enqueued = 0 AND ended = 0
    AND state NOT IN ('ended', 'gone')
    AND messageId <> ''
    AND lastId >= {sees_from}
    AND deliverAt < {due}
), came AS (
  SELECT {by_id}, max(id) AS cameId
  FROM (SELECT {by_id}, id FROM {events} WHERE kind = 'enqueued') enqueued
  SEMI JOIN never USING ({by_id})
  GROUP BY {by_id}
)
SELECT {check} AS check, {key}, lastId AS id, 'its delivery time came, and it did not' AS detail
FROM never LEFT JOIN came USING ({by_id})
WHERE cameId IS NULL OR cameId < lastId
"""


def overdue(events: Table, stated: Table, known: Bounds, look: Look) -> Table:
    """Return scheduled messages that were due by the event log's last row and never came."""
    assert known.ends_at is not None, "who has a message has a row"
    due = known.ends_at - timedelta(seconds=0 if look.drained else SECOND_LOOK_S)
    return query(
        OVERDUE, events=events, stated=stated, check=LOSS, due=due, sees_from=known.sees_from
    )


ACCEPTED_AGAIN: Final = """
SELECT {check} AS check, {key}, acceptedId AS id,
  concat(accepted, ' accepts, enqueued ', enqueued) AS detail
FROM {stated}
WHERE NOT isUnclear AND NOT {is_accepted_once}
"""


def accepted_again(stated: Table) -> Table:
    """Return messages that were accepted more often than they began."""
    return query(ACCEPTED_AGAIN, stated=stated, check=DUPLICATE)


DUE: Final = """
SELECT {by_id},
  min(deliverAt) AS due,
  min(id) AS scheduledId,
  min(e.at) AS scheduledAt,
  min_by(boot, id) AS scheduledBoot
FROM (SELECT * FROM {events} WHERE kind = 'scheduled' AND messageId <> '') e
ANTI JOIN (
  SELECT DISTINCT {by_id} FROM {events}
  WHERE kind = 'enqueued' AND reason LIKE '%made ready by an operator'
) hurried USING ({by_id})
GROUP BY {by_id}
"""
"""The messages with an id that were scheduled, each with its first delivery time.

Those that an operator made ready before it are left out.
"""

CAME: Final = """
SELECT e.*, due, scheduledId, scheduledBoot
FROM (SELECT * FROM {events} WHERE kind = 'enqueued' OR kind IN {given}) e
JOIN {due} due USING ({by_id})
WHERE id > scheduledId
"""
"""The rows of scheduled messages that are in their queue, or given."""


def _came(events: Table) -> Table:
    return query(CAME, events=events, due=query(DUE, events=events))


TIMED: Final = """
SELECT due.* FROM (SELECT *, scheduledAt AS firstAt FROM {due}) due
LEFT JOIN (SELECT {by_id}, min_by(boot, id) AS cameBoot FROM {came} GROUP BY {by_id}) came
  USING ({by_id})
WHERE cameBoot IS NULL OR cameBoot = scheduledBoot
"""


def timed(events: Table, scope: Scope) -> Table:
    """Return the scheduled messages that `early` can judge: they did not come after a restart."""
    return scope.of(query(TIMED, due=query(DUE, events=events), came=_came(events)))


CAME_EARLY: Final = """
SELECT {by_id}, min_by(position, id) AS position, min_by(due, id) AS due,
  min_by(came.at, id) AS firstAt, min(id) AS firstId
FROM {came} came
WHERE boot = scheduledBoot AND came.at < due
GROUP BY {by_id}
"""

EARLY_ONES: Final = """
SELECT {check} AS check, {key}, firstId AS id, concat('due ', CAST(due AS STRING)) AS detail
FROM {found}
"""


def early(events: Table, scope: Scope) -> Table:
    """Return the first row of each message that was in a queue, or given, before its time."""
    found = scope.of(query(CAME_EARLY, came=_came(events)))
    return query(EARLY_ONES, found=found, check=EARLY)


OUT_OF_ORDER: Final = """
SELECT {check} AS check, {key}, giftId AS id,
  concat('came in row ', beganId, ', given after that of ', beforeIt) AS detail
FROM (
  SELECT *, lag(beganId) OVER (PARTITION BY stream ORDER BY giftId) AS beforeIt
  FROM {stated}
  WHERE {is_in_order_known}
) given
WHERE beforeIt > beganId
"""
"""Messages first given to a consumer after a message that had arrived later.

The ids of the rows that began their lives are in the order of the queue, even if positions change.
Only messages of one priority, the last digit of a position, are compared.
"""


def out_of_order(stated: Table) -> Table:
    """Return messages that were given out of their order."""
    return query(OUT_OF_ORDER, stated=stated, check=ORDER)


GIVEN_TO_TWO: Final = """
SELECT {check} AS check, {key}, id, 'given while somebody had it' AS detail FROM {found}
"""


def given_to_two(events: Table, stated: Table, known: Bounds) -> Table:
    """Return messages that were given while a consumer or a lease had them.

    Few are given more than once, so only the rows of those are sorted.
    """
    traced = query(
        "SELECT * FROM {events} SEMI JOIN (SELECT {key} FROM {stated} WHERE {may_be_given_to_two})"
        " again USING ({key})",
        events=events,
        stated=stated,
    )
    return query(GIVEN_TO_TWO, found=given_twice(traced, known.sees_from), check=EXCLUSIVE)


PLACES: Final = """
SELECT DISTINCT address, subscription FROM {stated} WHERE state = 'missing'
ORDER BY address, subscription
"""


def places_to_look(events: Table, known: Bounds, scope: Scope) -> list[tuple[str, str]]:
    """Return (address, subscription) of the messages that should be in their queues."""
    stated = with_state(events, scope.of(lives(events)), known, NO_LOOK)
    rows = query(PLACES, stated=stated).rows()
    return [(row["address"], row["subscription"]) for row in rows]
