"""`jms-broker events`: the event log of a running broker."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.managing import BrokerAt, Count, Json, at_broker
from broker.cli.printing import Record, print_as_they_come

if TYPE_CHECKING:
    from broker.cli.requests import Requests

COLUMNS: Final = (
    *("id", "at", "kind", "address", "subscription", "message_id", "position"),
    *("consumer", "link", "delivery_count", "reason"),
)

PAGE: Final = 500
FOLLOW_S: Final = 0.5
"""Seconds between two requests for further events, if the event log is followed."""

UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Kind(Enum):
    """A kind of event in the life of a message."""

    ENQUEUED = "enqueued"
    SCHEDULED = "scheduled"
    DELIVERED = "delivered"
    ACCEPTED = "accepted"
    RELEASED = "released"
    MODIFIED = "modified"
    REJECTED = "rejected"
    EXPIRED = "expired"
    DEAD_LETTERED = "deadlettered"
    MOVED = "moved"
    PURGED = "purged"
    LEASED = "leased"
    SETTLED = "settled"


def moment(text: str, now: datetime) -> int:
    """Return the time that `text` means, in µs since 1970.

    `text` is an age (`90s`, `15m`, `2h`, `7d` before `now`) or ISO 8601, in the machine's own zone
    if it names none. Raise ValueError if it is neither, OverflowError if the time is out of range.
    """
    ago = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if ago is not None:
        found = now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    else:
        found = datetime.fromisoformat(text).astimezone()
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _moment(text: str | None, option: str) -> int:
    if text is None:
        return 0
    try:
        return moment(text, datetime.now(UTC))
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is neither like 15m nor like 2026-01-31T12:00", param_hint=option
        ) from None


@at_broker
def events(
    at: BrokerAt,
    address: Annotated[
        str | None, typer.Argument(help="Only what happened there.", show_default=False)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Not before: 15m or 2h ago, or 2026-01-31T12:00.", show_default=False),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Before that time, written alike.", show_default=False)
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option(help="Only events of that kind.", show_default=False)
    ] = None,
    behind: Annotated[int, typer.Option(min=0, help="Only events with larger ids.")] = 0,
    count: Count = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what happens from now on, until ^C.")
    ] = False,
    json: Json = False,
) -> None:
    """Print what happened to messages, the oldest event first.

    Only addresses with event_log = true in the broker's settings have an event log.
    """
    chosen: dict[str, object] = {
        "address": address,
        "kind": None if kind is None else kind.value,
        "since_us": _moment(since, "--since"),
        "until_us": _moment(until, "--until"),
    }
    with at.opened() as broker:
        events = _events(broker, chosen, behind=behind, follow=follow)
        if count is not None:
            events = (event for _, event in zip(range(count), events, strict=False))
        print_as_they_come(events, COLUMNS, as_json=json)


def _events(
    broker: Requests, chosen: dict[str, object], *, behind: int, follow: bool
) -> Iterator[Record]:
    """Yield the events that match `chosen`, page by page; if `follow`, without end."""
    while True:
        body = broker.ask_for(
            "QUERY", "events", properties={"count": PAGE}, more={**chosen, "behind": behind}
        )
        names, rows, on = body["attributeNames"], body["results"], body["next"]
        assert isinstance(names, list)
        assert isinstance(rows, list)
        assert isinstance(on, int)
        for row in rows:
            record = dict(zip(names, row, strict=True))
            yield {**record, "at": time_of(int(record["at_us"]))}
        behind = on
        if body["complete"]:
            if not follow:
                return
            time.sleep(FOLLOW_S)


def time_of(at_us: int) -> str:
    """Return `at_us` (µs since 1970) as it is printed: ISO 8601 in UTC, to the microsecond."""
    found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")
