"""A look at a running broker for the audit: newer rows of the event log, and queues' contents.

The look takes time, and messages move meanwhile. So the event log is read before and after it: a
message that the look did not find counts as missing only if it has no row since before the look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark_amqp.errors import GoneError
from pyspark_amqp.jobs.audit import PLACE
from pyspark_amqp.jobs.statements import query, union
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS
from pyspark_amqp.source import events

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine, Table


def live_events(engine: Engine, options: Mapping[str, str], behind: int = 0) -> Table:
    """Return the rows of the broker's event log with ids above `behind`."""
    given = {**options, "mode": "events", "failOnDataLoss": "false"}
    if behind:
        given["startingPosition"] = str(behind + 1)
    return engine.source(given, list(EVENT_LOG_COLUMNS))


def first_kept(options: Mapping[str, str]) -> int:
    """Return the id of the oldest row that the broker has; 0 if it has none."""
    return events.bounds(read_options({**options, "mode": "events"}, Use.BATCH))[0]


def waiting(
    engine: Engine, options: Mapping[str, str], places: Iterable[tuple[str, str]]
) -> tuple[Table, frozenset[str]]:
    """Return the positions of messages at `places`, and the addresses of topics among these.

    A place is (address, subscription), of which the latter is empty for a queue. A queue that no
    longer exists has no messages. Subscribers of a topic that have no name cannot be looked at.
    """
    found = [engine.table(PLACE, [])]
    topics = set()
    for address, subscription in places:
        at = {"subscription": subscription} if subscription else {"address": address}
        given = {**options, **at, "mode": "browse", "includeBody": "false"}
        asked = read_options(given, Use.BATCH)
        if not subscription and knows(asked, "topic", address):
            topics.add(address)
        kind, name = ("subscription", subscription) if subscription else ("queue", address)
        if not knows(asked, kind, name):
            continue
        named = engine.table(
            {"address": "STRING", "subscription": "STRING"}, [(address, subscription)]
        )
        found.append(
            query(
                "SELECT address, subscription, position FROM {named} CROSS JOIN {seen}",
                named=named,
                seen=engine.source(given, ["position"]),
            )
        )
    return union(found), frozenset(topics)


def knows(options: Options, kind: str, name: str) -> bool:
    """Return whether the broker has the entity. An attach would create a queue; this does not."""
    from pyspark_amqp.wire.broker_client import opened

    with opened(options) as management:
        try:
            management.ask("READ", kind, name)
        except GoneError:
            return False
    return True
