"""Explain why the consumers of a queue get no messages, by what is in it now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.links.container import Container
from broker.management.entity import Caller, Operation
from broker.management.flow_reasons import (
    FLOWS,
    GROUP_HELD,
    STANDS_BY,
    TEXTS,
    ConsumerFacts,
    QueueFacts,
    reason_of_all,
    reason_of_consumer,
    reason_of_queue,
)
from broker.management.later import Later
from broker.management.messages import queue_of
from broker.management.request import Request
from broker.management.response import Response
from broker.management.stretches import PORTION, in_portions
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.groups import Group
from broker.routing.entries.participants import Consumer
from broker.routing.queues.paging import NotLoaded
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import peek
from broker.security.resources import MANAGEMENT, Resource

FLOW: Final = "flow"

VIEWED: Final = ("queues", "subscriptions", "connections")
"""The parts of management that a client must be allowed to view: the response names all three."""

EXAMINED_MAX: Final = 500
"""Maximum ready messages that are compared with the consumers, the first ones."""

CONSUMERS_MAX: Final = 100
"""Maximum consumers that a response explains; the others are counted."""


class Flows:
    """The operation EXPLAIN of the type `flow`."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"EXPLAIN": self._explain}

    def _explain(self, request: Request, caller: Caller) -> Later:
        """Explain the flow from a `queue`, or from the `subscription` of that identity.

        The response has the counts of messages, `reason` with its `explanation`, and `consumers`,
        each with its client, link, `selector`, `reason` and `explanation`. If another consumer is
        `served` in its place, `served` names that one, and `group` what it has.
        """
        request.only("queue", "subscription")
        for part in VIEWED:
            caller.demand("view", Resource(MANAGEMENT, part))
        subscription = request.text("subscription", "")
        name = "" if subscription else request.text("queue")
        queue = queue_of(self._container.router, name=name, subscription=subscription)

        async def answer() -> Response:
            return Response(body=await self._told(queue))

        return Later(answer)

    async def _told(self, queue: Queue) -> Mapping[str, object]:
        state, schedule = queue.state, queue.state.schedule
        facts = QueueFacts(
            ready=int(queue.backlogs.waiting),
            scheduled=0 if schedule is None else int(schedule.by_wall.size()),
            acquired=int(state.acquired),
            paused=0 if schedule is None else int(schedule.paused.size()),
            held=0 if schedule is None else int(schedule.held.size()),
            consumers=len(queue.consumers.attached),
            is_draining=state.holds_deliveries(),
            is_blocked=state.holds_too_much(),
        )
        entries = _first_entries(queue)
        attached = list(queue.consumers.attached)
        reason = reason_of_queue(facts)
        consumers = [
            await self._consumer(queue, each, entries, shared=reason)
            for each in attached[:CONSUMERS_MAX]
        ]
        if reason == FLOWS:
            reason = reason_of_all([str(each["reason"]) for each in consumers])
        return {
            "queue": queue.address,
            "ready": facts.ready,
            "unsettled": facts.acquired,
            "scheduled": facts.scheduled,
            "paused": facts.paused,
            "held": facts.held,
            "examined": len(entries),
            "reason": reason,
            "explanation": TEXTS[reason],
            "consumers": consumers,
            "not_listed": len(attached) - len(consumers),
        }

    async def _consumer(
        self, queue: Queue, consumer: Consumer, entries: list[QueueEntry], *, shared: str
    ) -> Mapping[str, object]:
        """Return why a consumer gets no message; `shared` is the reason of all, FLOWS for none.

        A consumer that stands by does so whatever the queue holds, so that is its reason.
        """
        now_ms = self._container.clock.now_ms()
        wanted = consumer.filter
        selected = free = offered = 0
        foreign: Group | None = None
        # one evaluation of a selector may take as long as a stretch
        async for portion in in_portions(entries, PORTION if wanted is None else 1):
            for entry in portion:
                if wanted is not None and not wanted.passes(entry.message):
                    continue
                selected += 1
                if entry.group is not None and not entry.group.may_go_to(consumer.number):
                    foreign = foreign or entry.group
                    continue
                free += 1
                offered += entry.may_go_to(consumer.number, now_ms)
        own = reason_of_consumer(
            ConsumerFacts(
                has_credit=consumer.has_credit(),
                has_room=consumer.has_room(),
                stands_by=queue.consumers.shuts_out(consumer),
                examined=len(entries),
                selected=selected,
                free=free,
                offered=offered,
            )
        )
        reason = own if shared == FLOWS or own == STANDS_BY else shared
        group = foreign if reason == GROUP_HELD else None
        label = consumer.label()
        return {
            "container_id": label.container_id,
            "link": label.link,
            "session": label.session,
            "selected": selected,
            "selector": _selector_of(consumer),
            "group": None if group is None else group.name,
            "served": _served_instead(queue, reason, group),
            "reason": reason,
            "explanation": TEXTS[reason],
        }


def _selector_of(consumer: Consumer) -> str | None:
    """Return the selector of a consumer as its client wrote it, None without one."""
    wanted = consumer.filter
    return None if wanted is None or wanted.selector is None else wanted.selector.text


def _served_instead(queue: Queue, reason: str, group: Group | None) -> str | None:
    """Return `CONTAINER-ID/LINK` of the consumer that has the queue or `group`; None if none has.

    That of the queue only if `reason` is that other consumers stand by.
    """
    served: Consumer | None = None
    if reason == STANDS_BY and queue.consumers.exclusivity is not None:
        served = queue.consumers.exclusivity.sole
    elif group is not None:
        attached = queue.consumers.attached
        served = next((each for each in attached if each.number == group.owner), None)
    if served is None:
        return None
    label = served.label()
    return f"{label.container_id}/{label.link}"


def _first_entries(queue: Queue) -> list[QueueEntry]:
    """Return the first messages that are ready, none if they are not in memory."""
    try:
        return peek(queue.backlogs, -1, EXAMINED_MAX)
    except NotLoaded:
        return []
