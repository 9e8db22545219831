"""Messages that wait for their delivery time, by the queue or subscription that holds them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from broker.links.container import Container
from broker.management.stretches import in_portions
from broker.routing.addresses.identity import identity_of
from broker.routing.queues.queue import Queue

QUEUE: Final = "queue"
SUBSCRIPTION: Final = "subscription"

EXAMINED_MAX: Final = 2000
"""Held messages of a queue up to which their times are read: more would take more than 5 ms."""

SHOWN_MAX: Final = 500
"""Maximum places on the page, those with the next messages."""

PERIOD_MS: Final = 300_000
PERIODS: Final = 12
"""The periods of the next hour for which messages are counted."""


@dataclass(frozen=True, kw_only=True)
class ScheduledPlace:
    """A queue or subscription with scheduled messages, the first and the last of them in ms.

    If too many messages are held to read their times, `messages` is the number of all that are
    held, and the times are None.
    """

    kind: str
    name: str
    messages: int
    first_at: int | None
    last_at: int | None


@dataclass(frozen=True, kw_only=True)
class ScheduledPeriod:
    """A part of the next hour, which begins in `minutes` minutes; the messages due in it."""

    minutes: int
    messages: int


@dataclass(frozen=True, kw_only=True)
class ScheduledMessages:
    """All places with scheduled messages, at most SHOWN_MAX, and the next hour."""

    places: Sequence[ScheduledPlace]
    is_cut: bool
    hour: Sequence[ScheduledPeriod]


async def scheduled_messages(container: Container) -> ScheduledMessages:
    """Return the places with scheduled messages, the one with the next message first."""
    router = container.router
    holding: list[tuple[str, str, Queue]] = []
    async for queues in in_portions(list(router.queues.values())):
        holding += [(QUEUE, each.address, each) for each in queues if each.state.held()]
    async for named in in_portions(list(router.subscriptions.named.items())):
        holding += [
            (SUBSCRIPTION, identity_of(identity), subscription.queue)
            for identity, subscription in named
            if subscription.queue.state.held()
        ]
    counts = [0] * PERIODS
    places: list[ScheduledPlace] = []
    examined = 0
    for kind, name, queue in holding:
        place = _place(kind, name, queue, now_ms=int(router.clock.wall_ms()), counts=counts)
        if place.messages:
            places.append(place)
        examined += 1 + place.messages
        if examined >= EXAMINED_MAX:
            examined = 0
            await asyncio.sleep(0)
    places.sort(key=lambda place: (place.first_at or 0, place.name))
    return ScheduledMessages(
        places=places[:SHOWN_MAX],
        is_cut=len(places) > SHOWN_MAX,
        hour=[
            ScheduledPeriod(minutes=number * PERIOD_MS // 60_000, messages=messages)
            for number, messages in enumerate(counts)
        ],
    )


def _place(kind: str, name: str, queue: Queue, *, now_ms: int, counts: list[int]) -> ScheduledPlace:
    """Return a place, and count its messages in the periods of the next hour."""
    held = int(queue.state.held())
    if held > EXAMINED_MAX:
        return ScheduledPlace(kind=kind, name=name, messages=held, first_at=None, last_at=None)
    times = [int(entry.message.deliver_at_ms) for entry in queue.state.scheduled()]
    for at_ms in times:
        period = max(0, at_ms - now_ms) // PERIOD_MS
        if period >= PERIODS:
            break
        counts[period] += 1
    return ScheduledPlace(
        kind=kind,
        name=name,
        messages=len(times),
        first_at=times[0] if times else None,
        last_at=times[-1] if times else None,
    )
