"""Messages that wait for their delivery time, by the queue or subscription that holds them."""

from __future__ import annotations

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
    """A queue or subscription with `held` messages.

    `times` are the delivery times in ms since 1970, in order; None if too many are held to read
    them.
    """

    kind: str
    name: str
    held: int
    times: Sequence[int] | None

    @property
    def order(self) -> tuple[bool, int]:
        """The key by which places are sorted: the next message first."""
        return self.times is not None, self.times[0] if self.times else 0


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
    now_ms = int(router.clock.wall_ms())
    places: list[ScheduledPlace] = []
    async for queues in in_portions(list(router.queues.values())):
        places += [_place(QUEUE, each.address, each) for each in queues if each.state.held()]
    async for named in in_portions(list(router.subscriptions.named.items())):
        places += [
            _place(SUBSCRIPTION, identity_of(identity), subscription.queue)
            for identity, subscription in named
            if subscription.queue.state.held()
        ]
    counts = [0] * PERIODS
    chosen = []
    async for portion in in_portions(places):
        for place in portion:
            _count(place, now_ms, counts)
        chosen += [place for place in portion if place.times is None or place.times]
    chosen.sort(key=lambda place: place.order)
    return ScheduledMessages(
        places=chosen[:SHOWN_MAX],
        is_cut=len(chosen) > SHOWN_MAX,
        hour=[
            ScheduledPeriod(minutes=number * PERIOD_MS // 60_000, messages=messages)
            for number, messages in enumerate(counts)
        ],
    )


def _count(place: ScheduledPlace, now_ms: int, counts: list[int]) -> None:
    """Count the messages of a place in the periods of the next hour."""
    for at_ms in place.times or ():
        period = max(0, at_ms - now_ms) // PERIOD_MS
        if period >= len(counts):
            return
        counts[period] += 1


def _place(kind: str, name: str, queue: Queue) -> ScheduledPlace:
    held = int(queue.state.held())
    times = None
    if held <= EXAMINED_MAX:
        times = [int(entry.message.deliver_at_ms) for entry in queue.state.scheduled()]
    return ScheduledPlace(kind=kind, name=name, held=held, times=times)
