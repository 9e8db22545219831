"""The report job: throughput, latency, backlog and redeliveries by address.

Statements from the event log to the numbers; `report_page.py` writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from pyspark_amqp.engines.engine import Record, Table
from pyspark_amqp.jobs.statements import query

STEPS: Final = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600)
"""Seconds that one point of a curve may cover."""

POINTS: Final = 120
"""Maximum points of a curve, approximately."""

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}

STAGES: Final = ("queued", "processed", "total")
"""Times of a message: enqueued to first given, last given to accepted, and enqueued to accepted."""


@dataclass(frozen=True)
class Span:
    """The times of an event log's first and last row, and the seconds of one point of a curve."""

    begin: datetime
    end: datetime
    step: int


def span_of(events: Table) -> Span | None:
    """Return the span of an event log, None if it has no rows."""
    statement = "SELECT min(e.at) AS begin, max(e.at) AS end FROM {events} e"
    (found,) = query(statement, events=events).rows()
    if found["begin"] is None:
        return None
    seconds = (found["end"] - found["begin"]) / timedelta(seconds=1)
    step = next((each for each in STEPS if seconds / each <= POINTS), STEPS[-1])
    return Span(found["begin"], found["end"], step)


CURVES: Final = """
SELECT address, timestamp_micros(us) AS at, enqueued, given, accepted,
  greatest(sum(enqueued - gone) OVER (
    PARTITION BY address ORDER BY us ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ), 0) AS backlog
FROM (
  SELECT address, us,
    count_if(kind = 'enqueued') AS enqueued,
    count_if(kind IN {given}) AS given,
    count_if(kind IN {accepted}) AS accepted,
    sum(CASE
      WHEN position = {bulk}
        THEN coalesce(try_cast(regexp_extract(reason, '^([0-9]+) messages', 1) AS BIGINT), 0)
      WHEN {is_end} THEN 1
      ELSE 0
    END) AS gone
  FROM (SELECT *, unix_micros(e.at) - unix_micros(e.at) % {step_us} AS us FROM {events} e) e
  GROUP BY address, us
) counted
ORDER BY address, us
"""
"""A row for each address and each step, unless they have no events.

It counts the messages that were enqueued, given and accepted, and those that waited or were being
processed at its end (`backlog`). The row of a deleted or purged queue begins its reason with a
number of messages.
"""


def curves(events: Table, step: int) -> Table:
    """Return the rows of CURVES for steps of `step` seconds."""
    return query(CURVES, events=events, step_us=step * 1_000_000)


MESSAGES: Final = """
SELECT *,
  CASE WHEN firstAt >= enqueuedAt THEN unix_micros(firstAt) - unix_micros(enqueuedAt) END
    AS queued,
  CASE WHEN acceptedAt >= lastAt THEN unix_micros(acceptedAt) - unix_micros(lastAt) END
    AS processed,
  CASE WHEN acceptedAt >= enqueuedAt THEN unix_micros(acceptedAt) - unix_micros(enqueuedAt) END
    AS total
FROM (
  SELECT {key},
    count_if(kind = 'enqueued') AS enqueued,
    count_if(kind = 'released') AS released,
    count_if(kind = 'modified') AS modified,
    count_if(kind = 'expired') AS expired,
    count_if(kind = 'deadlettered') AS deadlettered,
    count_if(kind IN {given}) AS given,
    count_if(kind IN {accepted}) AS accepted,
    max(id) AS lastId,
    min(CASE WHEN kind = 'enqueued' THEN e.at END) AS enqueuedAt,
    min(CASE WHEN kind IN {given} THEN e.at END) AS firstAt,
    max(CASE WHEN kind IN {given} THEN e.at END) AS lastAt,
    max(CASE WHEN kind IN {accepted} THEN e.at END) AS acceptedAt
  FROM {events} e
  WHERE position > {bulk}
  GROUP BY {key}
) messages
"""
"""A row for each message, with the microseconds of its STAGES.

A time between two events is unknown without either, or if they are reversed.
"""

BY_ADDRESS: Final = """
SELECT address,
  sum(enqueued) AS enqueued,
  sum(given) AS given,
  sum(accepted) AS accepted,
  sum(released) AS released,
  sum(modified) AS modified,
  sum(expired) AS expired,
  sum(deadlettered) AS deadlettered,
  sum(greatest(given - 1, 0)) AS redelivered,
  max(given) AS mostGiven,
  {percentiles}
FROM {messages}
GROUP BY address
ORDER BY enqueued DESC, address
""".replace(
    "{percentiles}",
    ",\n  ".join(
        f"percentile_approx({stage}, {share}, 10000) / 1000 AS {stage}_{name}"
        for stage in STAGES
        for name, share in PERCENTILES.items()
    ),
)
"""A row for each address: what became of its messages, and percentiles in ms."""

BEHIND: Final = {
    "redelivered": ("given > 1", "given DESC"),
    "deadlettered": ("deadlettered > 0", "lastId DESC"),
    "expired": ("expired > 0", "lastId DESC"),
    "slowest": ("total IS NOT NULL", "total DESC"),
}
"""The messages behind a number of the page: a condition of MESSAGES, and an order."""

BEHIND_MAX: Final = 10
"""Maximum messages that the page lists for a number of an address."""

FIRST_OF: Final = """
SELECT address, subscription, position, messageId, given, enqueuedAt, total
FROM (
  SELECT *, row_number() OVER (
      PARTITION BY address ORDER BY {order}, position, subscription, messageId NULLS FIRST
    ) AS place
  FROM {messages} WHERE {condition}
) ranked
WHERE place <= {most}
ORDER BY address, place
"""


def messages_of(events: Table) -> Table:
    """Return the rows of MESSAGES."""
    return query(MESSAGES, events=events)


def by_address(messages: Table) -> Table:
    """Return the rows of BY_ADDRESS for those of MESSAGES."""
    return query(BY_ADDRESS, messages=messages)


def behind(messages: Table, name: str) -> list[Record]:
    """Return the first messages of each address that a number of BEHIND counts."""
    condition, order = BEHIND[name]
    statement = FIRST_OF.replace("{condition}", condition).replace("{order}", order)
    return query(statement, messages=messages, most=BEHIND_MAX).rows()


@dataclass(frozen=True)
class Report:
    """The results, in this process: a row for each address, and one for each point of a curve.

    `behind` has the first messages behind the numbers of BEHIND.
    """

    span: Span
    addresses: list[Record]
    points: list[Record]
    behind: dict[str, list[Record]] = field(default_factory=dict)


def gather(events: Table) -> Report | None:
    """Run the statements; return None if the event log is empty."""
    span = span_of(events)
    if span is None:
        return None
    messages = messages_of(events).kept()
    try:
        return Report(
            span,
            by_address(messages).rows(),
            curves(events, span.step).rows(),
            {name: behind(messages, name) for name in BEHIND},
        )
    finally:
        messages.release()


def total(report: Report, name: str) -> int:
    """Return the sum of a number over all addresses."""
    return sum(row[name] or 0 for row in report.addresses)


def summary(report: Report) -> dict[str, object]:
    """Return the totals that the command prints."""
    return {
        "addresses": len(report.addresses),
        **{name: total(report, name) for name in ("enqueued", "accepted", "redelivered")},
        "since": report.span.begin.isoformat(),
        "until": report.span.end.isoformat(),
    }
