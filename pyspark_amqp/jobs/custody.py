"""The audit's checks of custody: messages are recorded, given, accepted and moved without a break.

Statements from tables to tables. Some need facts that older brokers did not record: their rows are
not judged.

- given first: an accepted message was enqueued, and delivered or leased, before. Not judged if its
  first row is not that of its beginning, unless its place in the order of its queue proves that
  this row is missing.
- by its holder: a message is accepted by the consumer or lease that it was given to last.
- dead letter: a message that was dead-lettered, or has expired, comes to the queue that its row
  names. Not judged if that queue has no event log.
- recorded: for each position that a queue has given in one broker process, between the first and
  the last one, there is a message with rows.
"""

from __future__ import annotations

from typing import Final

from pyspark_amqp.engines.engine import Table
from pyspark_amqp.jobs.extent import Bounds
from pyspark_amqp.jobs.findings import DEAD_LETTER, FIRST, HOLDER, RECORDED
from pyspark_amqp.jobs.lives import lives
from pyspark_amqp.jobs.statements import query

REASON_MAX: Final = 255
"""Characters at which the broker cuts a reason: one as long may not have the whole address."""

GAP_MAX: Final = 1_000_000
"""Maximum positions of one gap that are reported, each as a message."""

PRIORITIES: Final = 10
"""A position is the number of a message in its queue and priority, and the priority as a digit."""


# -- given first, by its holder


ACCEPTED_BY_ANOTHER: Final = """
WITH traced AS (
  SELECT {key}, id, kind,
    lag(kind) OVER (PARTITION BY {key}, consumer, link, {process} ORDER BY id) AS before,
    sum(CASE WHEN kind IN {given} THEN 1 ELSE 0 END) OVER (
      PARTITION BY {key} ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS gifts
  FROM (SELECT * FROM {events} WHERE kind IN {given} OR kind IN {settlements}) events
  SEMI JOIN (SELECT {key} FROM {stated} WHERE {may_be_accepted_by_another}) doubtful USING ({key})
), found AS (
  SELECT {key}, min(id) AS id, min_by(gifts, id) AS gifts
  FROM traced
  WHERE kind IN {accepted} AND NOT coalesce(before IN {given}, FALSE)
  GROUP BY {key}
)
SELECT CASE WHEN gifts > 0 THEN {holder_check} ELSE {first_check} END AS check, {key}, id,
  CASE WHEN gifts > 0 THEN 'another had it' ELSE 'it was given to nobody' END AS detail
FROM found
"""


def accepted_by_another(events: Table, stated: Table) -> Table:
    """Return messages accepted by a consumer or lease that did not have them.

    Few have a delivery that was not settled by its consumer, so only the rows of those are sorted.
    """
    return query(
        ACCEPTED_BY_ANOTHER,
        events=events,
        stated=stated,
        holder_check=HOLDER,
        first_check=FIRST,
    )


# -- dead letter


SENT_AWAY: Final = """
SELECT {key}, id, e.at AS firstAt, id + 1 AS nextId,
  regexp_extract(reason, '(?s)to queue (.*)$', 1) AS target
FROM {events} e
WHERE kind IN {moves}
  AND reason LIKE '%to queue %'
  AND reason NOT LIKE '%, which has no event log'
  AND length(reason) < {reason_max}
  AND id < {last}
  AND id >= {located_from}
  AND id + 1 NOT IN {hidden}
"""


def sent_away(events: Table, known: Bounds) -> Table:
    """Return rows of messages that went to a queue with an event log: its row is the next one."""
    hidden = tuple(hole.first for hole in known.holes) or (0,)
    return query(
        SENT_AWAY,
        events=events,
        reason_max=REASON_MAX,
        last=known.last,
        located_from=known.located_from,
        hidden=hidden,
    )


NEVER_ARRIVED: Final = """
SELECT {check} AS check, {key}, id, concat('it did not come to ', target) AS detail
FROM {sent} sent
ANTI JOIN (
  SELECT id AS nextId, address AS target, messageId FROM {events} WHERE kind IN {begins}
) came USING (nextId, target, messageId)
"""


def never_arrived(events: Table, sent: Table) -> Table:
    """Return messages of `sent_away` that did not come to the queue that their row names."""
    return query(NEVER_ARRIVED, events=events, sent=sent, check=DEAD_LETTER)


# -- recorded


BEGINNINGS: Final = """
SELECT id, e.at AS at, address, subscription, boot, session,
  position % {priorities} AS priority,
  CAST(floor(position / {priorities}) AS BIGINT) AS place
FROM {events} e
WHERE kind IN {begins} AND position > {bulk} AND session <> '' AND id >= {sees_from}
"""

INCOMPLETE: Final = """
SELECT boot, session, priority FROM {beginnings}
GROUP BY boot, session, priority
HAVING max(place) - min(place) + 1 > count(*)
"""
"""The sequences with gaps: a queue numbers its messages of a priority without one."""

GAPS: Final = """
SELECT address, subscription, id, beforeId, lacking * {priorities} + priority AS position, firstAt
FROM (
  SELECT address, subscription, id, beforeId, priority, firstAt,
    explode(sequence(before + 1, least(place - 1, before + {gap_max}))) AS lacking
  FROM (
    SELECT b.*, b.at AS firstAt, lag(place) OVER own AS before, lag(id) OVER own AS beforeId
    FROM {beginnings} b SEMI JOIN {incomplete} incomplete USING (boot, session, priority)
    WINDOW own AS (PARTITION BY boot, session, priority ORDER BY place)
  ) numbered
  WHERE place > before + 1
) spread
"""


def gaps(events: Table, known: Bounds) -> Table | None:
    """Return positions between those of two messages that no message began at; None for none.

    Each has the ids of the rows around it, and `firstAt` of the later one. A queue gives a position
    to each message that is enqueued or scheduled.
    """
    beginnings = query(BEGINNINGS, events=events, priorities=PRIORITIES, sees_from=known.sees_from)
    lacking = query(INCOMPLETE, beginnings=beginnings).rows()
    if not lacking:
        return None
    columns = {"boot": "STRING", "session": "STRING", "priority": "BIGINT"}
    incomplete = events.engine.table(columns, [tuple(row.values()) for row in lacking])
    return query(
        GAPS,
        beginnings=beginnings,
        incomplete=incomplete,
        priorities=PRIORITIES,
        gap_max=GAP_MAX,
    )


UNRECORDED: Final = """
SELECT CASE WHEN isSeen THEN {first_check} ELSE {recorded_check} END AS check,
  address, subscription, position, coalesce(messageId, '') AS messageId,
  coalesce(lastId, id) AS id,
  CASE WHEN isSeen THEN 'it was never enqueued'
    ELSE 'no row tells of this message, but of one behind it' END AS detail
FROM (
  SELECT address, subscription, position, id, max(isSeen) AS isSeen,
    max_by(messageId, CASE WHEN isSeen THEN lastId END) AS messageId,
    max(CASE WHEN isSeen THEN lastId END) AS lastId
  FROM (
    SELECT lacking.*, messageId, lastId, coalesce(lastId > beforeId, FALSE) AS isSeen
    FROM {lacking} lacking
    LEFT JOIN (
      SELECT address, subscription, position, messageId, lastId FROM {lives}
      WHERE enqueued = 0 AND scheduled = 0
    ) begunless USING (address, subscription, position)
  ) joined
  GROUP BY address, subscription, position, id
) found
"""


def unrecorded(events: Table, lacking: Table) -> Table:
    """Return the messages at positions of `gaps`: those with other rows, and those without any."""
    return query(
        UNRECORDED,
        lacking=lacking,
        lives=lives(events),
        first_check=FIRST,
        recorded_check=RECORDED,
    )
