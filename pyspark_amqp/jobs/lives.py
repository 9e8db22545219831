"""The life of each message by the event log: statements from event log rows to a row a message.

A message is identified by its address, subscription, position and JMSMessageID. Several messages
may share these: plain subscribers of a topic have no name, and positions begin anew with a queue.
So lives are counted: a message is lost if fewer lives have ended than begun, never because two rows
differ.
"""

from __future__ import annotations

from typing import Final

from pyspark_amqp.engines.engine import Table
from pyspark_amqp.jobs.statements import query

LIVES: Final = """
SELECT {key},
  count_if(kind = 'enqueued') AS enqueued,
  count_if(kind = 'scheduled') AS scheduled,
  count_if(kind IN {accepted}) AS accepted,
  count_if({is_end}) AS ended,
  count_if(kind IN {given}) AS given,
  count_if(kind IN {settlements}) AS settlements,
  sum(CASE WHEN kind IN {given} THEN {holder} WHEN kind IN {settlements} THEN -{holder} END)
    AS holders,
  count_if(kind IN {begins} AND session LIKE 'subscriber/%') AS nameless,
  count_if(kind IN {begins} AND session <> '') AS named,
  min(e.at) AS firstAt,
  max(deliverAt) AS deliverAt,
  min(id) AS firstId,
  max(id) AS lastId,
  min(CASE WHEN kind IN {begins} THEN id END) AS firstBeginId,
  max(CASE WHEN kind IN {begins} THEN id END) AS lastBeginId,
  min(CASE WHEN kind = 'enqueued' THEN id END) AS beganId,
  max(CASE WHEN kind = 'enqueued' THEN id END) AS enqueuedId,
  max(CASE WHEN kind IN {begins} AND reason LIKE 'not stored%' THEN id END) AS notStoredId,
  max(CASE WHEN kind IN {accepted} THEN id END) AS acceptedId,
  max(CASE WHEN {is_end} THEN id END) AS endId,
  max(CASE WHEN kind = 'leased' THEN id END) AS leasedId,
  max(CASE WHEN kind = 'delivered' THEN id END) AS deliveredId,
  max(CASE WHEN kind = 'modified' THEN id END) AS modifiedId,
  min(CASE WHEN kind IN {given} THEN id END) AS giftId,
  min_by(
    xxhash64(address, subscription, consumer, link, session, boot, position % 10),
    CASE WHEN kind IN {given} THEN id END
  ) AS stream
FROM {events} e
WHERE position > {bulk}
GROUP BY {key}
"""
"""How the lives of each message went, and where it is now.

All columns are numbers and times, above all ids of rows: Spark aggregates these in a hash table,
but would have to sort the event log for texts, such as the last row's kind. `holders` is 0 if each
delivery was settled by the consumer or lease that had it. `nameless` counts messages for
subscribers of a topic without a name; the rows of older brokers name no queue, and `named` does not
count them. A reason begins with "not stored" if the message ends with its broker process. `stream`
identifies the messages of one priority that one consumer gets from one queue or subscription; among
a million streams, two have the same hash with a probability of 3 in 10^8.
"""

GIVEN_TWICE: Final = """
SELECT {key}, min(id) AS id
FROM (
  SELECT *,
    lag(kind) OVER own AS before,
    lag(boot) OVER own AS beforeBoot,
    lag(id) OVER own AS beforeId,
    sum(CASE WHEN kind = 'enqueued' THEN 1 WHEN {is_end} THEN -1 ELSE 0 END) OVER (
      PARTITION BY {key} ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS open
  FROM {events}
  WINDOW own AS (PARTITION BY {key} ORDER BY id)
) traced
WHERE kind IN {given}
  AND open <= 1
  AND (before = 'leased' OR (before = 'delivered' AND beforeBoot = boot))
  AND (beforeId >= {sees_from} OR id < {sees_from})
GROUP BY {key}
"""
"""For each message the first row (`id`) that gave it while a consumer or lease had it.

Rows with ids below `sees_from` may be missing, so rows on both sides of that id prove nothing.
"""


def lives(events: Table) -> Table:
    """Return a row for each message."""
    return query(LIVES, events=events)


def given_twice(events: Table, sees_from: int) -> Table:
    """Return the messages that were given while a consumer or lease had them."""
    return query(GIVEN_TWICE, events=events, sees_from=sees_from)
