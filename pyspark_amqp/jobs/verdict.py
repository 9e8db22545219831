"""The verdict of the audit: which messages it judged by each check, and which violate one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pyspark_amqp.engines.engine import Record, Table
from pyspark_amqp.jobs import audit, custody, extent
from pyspark_amqp.jobs.audit import (
    BEFORE,
    ENDED,
    EVERYTHING,
    GONE,
    MISSING,
    NO_LOOK,
    THERE,
    Look,
    Scope,
)
from pyspark_amqp.jobs.extent import Bounds
from pyspark_amqp.jobs.findings import (
    CHECKS,
    DEAD_LETTER,
    DUPLICATE,
    EARLY,
    EXCLUSIVE,
    FIRST,
    HOLDER,
    LOSS,
    ORDER,
    RECORDED,
    WHOLE,
    with_rows,
)
from pyspark_amqp.jobs.lives import lives
from pyspark_amqp.jobs.statements import query, union

NOT_JUDGED: Final = (BEFORE, GONE)
"""States in which a message is not judged for loss even if all queues were empty in the end."""


@dataclass(frozen=True)
class Verdict:
    """The result: for each check, how many messages were judged, and how many violate it.

    `no hole` counts rows in place of messages.
    """

    known: Bounds
    messages: int
    open: dict[str, int]
    """The number of messages that have not ended, by `state`."""
    judged: dict[str, int]
    broken: dict[str, int]
    looked: bool = False
    """The contents of the queues were known."""

    @property
    def holds(self) -> bool:
        """Return whether no message violates a check, and no row is missing."""
        return not any(self.broken.values())

    @property
    def is_of_nothing(self) -> bool:
        """Return whether there was no message to be judged."""
        return self.holds and self.messages == 0


COUNTED: Final = "SELECT f.check AS check, count(*) AS count FROM {found} f GROUP BY f.check"


def judge(
    events: Table,
    known: Bounds,
    *,
    look: Look = NO_LOOK,
    scope: Scope = EVERYTHING,
) -> tuple[Verdict, Table]:
    """Return the verdict, and the messages that violate a check, a row for each such check."""
    seen = scope.of(lives(events))
    stated = audit.with_state(events, seen, known, look).kept()
    try:
        by_state = _counted(stated, known)
        judged = _judged(by_state, look=look)
        parts = _offenders(events, known, stated, look=look, scope=scope)
        if _sum(by_state, "givenAgain"):
            parts.append(audit.given_to_two(events, stated, known))
        if _sum(by_state, "doubtful"):
            parts.append(custody.accepted_by_another(events, stated))
        if known.moves:
            sent = scope.of(custody.sent_away(events, known))
            parts.append(custody.never_arrived(events, sent))
        judged |= _judged_apart(events, known, scope)
        found = union(parts).kept()
        counted = {each["check"]: each["count"] for each in query(COUNTED, found=found).rows()}
    finally:
        stated.release()
    counted[WHOLE] = known.missing
    judged[WHOLE] = known.rows + known.missing
    judged[FIRST] += counted.get(FIRST, 0)
    judged[RECORDED] += counted.get(RECORDED, 0)
    verdict = Verdict(
        known=known,
        messages=_sum(by_state, "messages"),
        open={each["state"]: each["messages"] for each in by_state if each["state"] != ENDED},
        judged={check: judged[check] for check in CHECKS},
        broken={check: counted.get(check, 0) for check in CHECKS},
        looked=look.tells,
    )
    return verdict, with_rows(found, events)


BY_STATE: Final = """
SELECT state,
  count(*) AS messages,
  count_if(accepted > 0 AND NOT isUnclear) AS accepted,
  count_if(accepted > 0 AND NOT isUnclear AND {is_accepted_once}) AS acceptedOnce,
  count_if(given > 0 AND NOT isUnclear) AS given,
  count_if(given > 0 AND {is_in_order_known}) AS ordered,
  count_if(named > 0 AND beganId >= {sees_from}) AS recorded,
  count_if({may_be_given_to_two}) AS givenAgain,
  count_if({may_be_accepted_by_another}) AS doubtful
FROM {stated}
WHERE scheduled = 0 OR enqueued + ended > 0
GROUP BY state
"""
"""Counts of messages by their state.

A scheduled message has another position, and counts, once it has come into its queue.
"""


def _counted(stated: Table, known: Bounds) -> list[Record]:
    return query(BY_STATE, stated=stated, sees_from=known.sees_from).rows()


def _judged(by_state: list[Record], *, look: Look) -> dict[str, int]:
    """Return how many messages each check has judged, as far as their states say it."""
    known = (ENDED, THERE, MISSING) if look.tells else (ENDED,)
    return {
        **dict.fromkeys(CHECKS, 0),
        LOSS: sum(
            each["messages"]
            for each in by_state
            if each["state"] in known or (look.drained and each["state"] not in NOT_JUDGED)
        ),
        DUPLICATE: _sum(by_state, "accepted"),
        ORDER: _sum(by_state, "ordered"),
        EXCLUSIVE: _sum(by_state, "given"),
        FIRST: _sum(by_state, "acceptedOnce"),
        HOLDER: _sum(by_state, "acceptedOnce"),
        RECORDED: _sum(by_state, "recorded"),
    }


def _judged_apart(events: Table, known: Bounds, scope: Scope) -> dict[str, int]:
    """Return how many messages were judged by the checks that take some rows alone."""
    apart = {}
    if known.scheduled:
        apart[EARLY] = audit.timed(events, scope)
    if known.moves:
        apart[DEAD_LETTER] = scope.of(custody.sent_away(events, known))
    return {
        check: query("SELECT count(*) AS count FROM {judged}", judged=judged).rows()[0]["count"]
        for check, judged in apart.items()
    }


def _sum(rows: Iterable[Record], name: str) -> int:
    return sum(int(each[name]) for each in rows)


def _offenders(
    events: Table, known: Bounds, stated: Table, *, look: Look, scope: Scope
) -> list[Table]:
    """Return messages that violate a check, of all checks that do not depend on counts."""
    parts = [audit.accepted_again(stated), audit.out_of_order(stated)]
    if look.tells:
        parts.append(audit.lost(stated, drained=look.drained))
    if known.scheduled:
        parts.append(audit.early(events, scope))
        if look.tells:
            parts.append(audit.overdue(events, stated, known, look))
    if known.holes:
        parts.append(extent.holes_of(events, known))
    lacking = custody.gaps(events, known)
    if lacking is not None:
        parts.append(custody.unrecorded(events, scope.of(lacking)))
    return parts
