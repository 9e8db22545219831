"""The figures of `jms-broker top`: two readings of a broker, and what happened between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.cli.requests import Record

QUEUE_FIELDS: Final = (
    *("name", "messages", "acquired", "oldest_ms", "consumers", "producers", "published"),
)
LINK_FIELDS: Final = (
    *("connection", "container_id", "role", "address"),
    *("credit", "unsettled", "oldest_unsettled_ms"),
)

STATE: Final = (
    *("name", "state", "uptime_ms", "queues", "topics", "subscriptions", "connections", "links"),
    *("messages", "acquired", "held", "memory_used", "memory_max", "alarms"),
)
"""The attributes of the broker that are shown as they are."""

RATES: Final = {
    "received_rate": "published",
    "delivered_rate": "delivered",
    "settled_rate": "acknowledged",
}
"""The counter of the broker that each of its rates is the growth of."""


@dataclass(frozen=True, kw_only=True)
class BrokerReading:
    """The records of a broker at one time; `at_s` is in seconds of a steady clock.

    Records of queues have the attributes QUEUE_FIELDS, those of links LINK_FIELDS.
    """

    at_s: float
    broker: Record
    queues: Sequence[Record]
    links: Sequence[Record]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The content of a picture of `top`. Rates are messages per second between two readings.

    The rate of a queue is that of messages sent to it; it is None if only one reading has the
    queue. Links are sorted by the age of their oldest unsettled delivery, the oldest first.
    """

    broker: Record
    queues: Sequence[Record]
    links: Sequence[Record]


def figures_of(before: BrokerReading, after: BrokerReading, *, sort: str, limit: int) -> Figures:
    """Return the state at `after` and the rates since `before`.

    `limit` is the maximum number of queues, and of links. `sort` is an attribute of a queue, or
    `rate`; the queue with the highest value is the first.
    """
    elapsed_s = after.at_s - before.at_s
    published_before = {str(each["name"]): each["published"] for each in before.queues}
    queues = [
        {
            **each,
            "rate": _rate(published_before.get(str(each["name"])), each["published"], elapsed_s),
        }
        for each in after.queues
    ]
    queues.sort(key=lambda each: (-_number(each[sort]), str(each["name"])))
    links = sorted(
        after.links,
        key=lambda each: (-_number(each["oldest_unsettled_ms"]), str(each["address"])),
    )
    return Figures(
        broker={
            **{name: after.broker[name] for name in STATE},
            **{
                name: _rate(_counter(before, counter), _counter(after, counter), elapsed_s)
                for name, counter in RATES.items()
            },
        },
        queues=queues[:limit],
        links=links[:limit],
    )


def _rate(before: object, after: object, elapsed_s: float) -> float | None:
    """Return the growth per second, None if it is not known.

    A counter that fell belongs to a queue that was deleted and created anew, or to another broker.
    """
    if not isinstance(before, int) or not isinstance(after, int) or after < before:
        return None
    return round((after - before) / elapsed_s, 1) if elapsed_s > 0 else None


def _counter(reading: BrokerReading, name: str) -> object:
    counters = reading.broker["counters"]
    return counters.get(name) if isinstance(counters, Mapping) else None


def _number(value: object) -> float:
    """Return a value to sort by; a rate that is not known is below all others."""
    return value if isinstance(value, int | float) else -1
