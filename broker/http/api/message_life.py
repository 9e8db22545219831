"""The life of one message, by the rows of the event log that name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.http.api.endpoint import Call, CallResult, query_of, rows_of
from broker.http.api.entities import named
from broker.http.api.problems import failure_of
from broker.management.entity import Caller
from broker.management.events import EVENTS
from broker.management.executor import Executor
from broker.management.request import FAILURES_FROM
from broker.management.response import Response

ROWS: Final = 1000
"""Rows of the event log that one request returns, of those that are searched."""

SEARCHED_MAX: Final = 20
"""Maximum requests for one message."""

EARLIER_US: Final = 60_000_000
"""The search begins this many µs before the message's creation-time, for clocks of clients."""


@dataclass(frozen=True, kw_only=True)
class MessageLife:
    """Rows of the event log that name a message, and why there may be others.

    `failure` is the response of management if the log cannot be read.
    """

    rows: list[Mapping[str, object]]
    note: str
    failure: Response | None = None


async def life_of(
    executor: Executor, caller: Caller, *, address: str, message_id: str, created_ms: int
) -> MessageLife:
    """Return the events of a message at an address, the oldest first, as `caller` may see them.

    `created_ms` is the creation-time that its sender has set, 0 if it is unknown.
    """
    if not message_id:
        return MessageLife(rows=[], note="The message has no message-id, by which events name it.")
    arguments: dict[str, object] = {"address": address}
    if created_ms > 0:
        arguments["since_us"] = max(0, created_ms * 1000 - EARLIER_US)
    found: list[Mapping[str, object]] = []
    for _ in range(SEARCHED_MAX):
        response = await executor.execute(caller, query_of(EVENTS, arguments, count=ROWS))
        if response.status >= FAILURES_FROM:
            return MessageLife(rows=found, note=response.description, failure=response)
        found += [row for row in rows_of(response) if row["message_id"] == message_id]
        assert isinstance(response.body, Mapping)
        if response.body["complete"]:
            return MessageLife(rows=found, note="" if found else "The event log has no row of it.")
        arguments["behind"] = response.body["next"]
    searched = ROWS * SEARCHED_MAX
    return MessageLife(rows=found, note=f"Only the first {searched:,} rows were searched.")


async def read_life(call: Call) -> CallResult:
    """Return the events of a message by its message-id."""
    address, created_ms = call.arguments["address"], call.arguments.get("created_at", 0)
    assert isinstance(created_ms, int)
    life = await life_of(
        call.site.executor,
        call.caller,
        address=str(address),
        message_id=named(call),
        created_ms=created_ms,
    )
    if life.failure is not None:
        raise failure_of(life.failure)
    return CallResult(body={"events": life.rows, "note": life.note})
