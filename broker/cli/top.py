"""`jms-broker top`: the rates, the queues and the slow consumers of a running broker."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from enum import Enum
from typing import Annotated, Final

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from broker.cli.figures import LINK_FIELDS, QUEUE_FIELDS, BrokerReading, Figures, figures_of
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of, shown, table
from broker.cli.requests import PAGE, Requests

READ_MAX: Final = PAGE
"""Maximum queues of a reading: one page of a list."""

QUEUE_COLUMNS: Final = (
    *("name", "messages", "acquired", "oldest_ms", "rate", "published"),
    *("consumers", "producers"),
)
HEAD: Final = (
    ("state", "uptime_ms", "connections", "links", "queues", "topics", "subscriptions"),
    ("received_rate", "delivered_rate", "settled_rate"),
    ("messages", "acquired", "held", "memory_used", "memory_max", "alarms"),
)


class Sort(Enum):
    """The figure of a queue by which the queues are sorted."""

    MESSAGES = "messages"
    ACQUIRED = "acquired"
    RATE = "rate"
    AGE = "age"


FIGURE: Final = {
    Sort.MESSAGES: "messages",
    Sort.ACQUIRED: "acquired",
    Sort.RATE: "rate",
    Sort.AGE: "oldest_ms",
}
READ_BY: Final = {
    Sort.MESSAGES: "-messages",
    Sort.ACQUIRED: "-acquired",
    Sort.RATE: "-published",
    Sort.AGE: "-oldest_ms",
}
"""The order in which the broker chooses the queues of a reading. It has no rates: the busiest are
looked for among the queues to which most messages were sent."""


@at_broker
def top(
    at: BrokerAt,
    sort: Annotated[
        Sort,
        typer.Option(
            help="Sort queues by messages ready for delivery, by messages delivered and not"
            " settled, by messages sent to them per second, or by the age of their oldest ready"
            " message."
        ),
    ] = Sort.MESSAGES,
    limit: Annotated[
        int, typer.Option(min=1, max=READ_MAX, help="Maximum queues, and links, to show.")
    ] = 15,
    interval: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two readings of the broker.")
    ] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print the figures of one interval, and end.")
    ] = False,
    json: Json = False,
) -> None:
    """Show rates, the fullest or busiest queues and the slowest consumers until ^C.

    A terminal shows the newest figures; a pipe gets all, one after another.
    """
    with at.opened() as broker:
        every = _figures(broker, sort, limit, interval)
        if once:
            _print(next(every), as_json=json)
        elif json or not sys.stdout.isatty():
            for figures in every:
                _print(figures, as_json=json)
        else:
            _show(every)


def _figures(broker: Requests, sort: Sort, limit: int, interval_s: float) -> Iterator[Figures]:
    """Yield the figures of each interval, without end."""
    before = _read(broker, sort, limit)
    while True:
        broker.pause(interval_s)
        after = _read(broker, sort, limit)
        yield figures_of(before, after, sort=FIGURE[sort], limit=limit)
        before = after


def _read(broker: Requests, sort: Sort, limit: int) -> BrokerReading:
    state = broker.ask("READ", "broker", "broker")
    at_s = time.monotonic()
    return BrokerReading(
        at_s=at_s,
        broker=state,
        queues=broker.listed("queue", READ_BY[sort], READ_MAX, QUEUE_FIELDS),
        links=broker.listed("link", "-oldest_unsettled_ms", limit, LINK_FIELDS),
    )


def _print(figures: Figures, *, as_json: bool) -> None:
    if as_json:
        print(json_of(asdict(figures)), flush=True)
    else:
        # a pipe gets whole names; a terminal has its own width
        width = None if sys.stdout.isatty() else 200
        Console(width=width).print(_page(figures))
        sys.stdout.flush()


def _show(every: Iterator[Figures]) -> None:
    """Show the newest figures on the whole screen of the terminal until ^C."""
    with Live(Text("reading …"), screen=True, auto_refresh=False) as live:
        for figures in every:
            live.update(_page(figures), refresh=True)


def _page(figures: Figures) -> Group:
    head = [
        "   ".join(f"{name.replace('_', ' ')} {shown(figures.broker[name])}" for name in line)
        for line in HEAD
    ]
    queues = table(figures.queues, QUEUE_COLUMNS, title="queues")
    links = table(figures.links, LINK_FIELDS, title="links, the oldest unsettled delivery first")
    name = Text(shown(figures.broker["name"]), style="bold")
    return Group(name, *map(Text, head), queues, links)
