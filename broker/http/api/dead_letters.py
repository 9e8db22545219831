"""Dead-letter queues, and where their messages came from and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from broker.http.api.endpoint import Call, CallResult
from broker.links.container import Container
from broker.management.dead_letter_move import move_of
from broker.management.entity import VIEW
from broker.management.stretches import in_portions
from broker.routing.queues.paging import NotLoaded
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import peek
from broker.security.resources import MANAGEMENT, Resource

MESSAGES: Final = Resource(MANAGEMENT, "messages")

EXAMINED_MAX: Final = 500
"""Maximum messages of a queue that are examined."""

UNKNOWN: Final = "(unknown)"


@dataclass(kw_only=True)
class DeadLetterOrigin:
    """Dead letters of one source and reason; times are in ms since 1970, 0 if unknown."""

    source: str
    reason: str
    messages: int = 0
    first_at: int = 0
    last_at: int = 0

    def add(self, moved_at: int) -> None:
        """Count a message that became a dead letter at a time."""
        self.messages += 1
        if moved_at:
            self.first_at = min(self.first_at or moved_at, moved_at)
            self.last_at = max(self.last_at, moved_at)


@dataclass(frozen=True, kw_only=True)
class DeadLetterQueue:
    """A queue to which dead letters of others go.

    `origins` are those of the first `examined` messages that are in memory.
    """

    name: str
    messages: int
    examined: int
    origins: Sequence[DeadLetterOrigin]


async def dead_letter_queues(container: Container) -> list[DeadLetterQueue]:
    """Return the queues that others name as their dead-letter queue, by name."""
    router = container.router
    names: set[str] = set()
    async for portion in in_portions([*router.queues.values(), *router.topics.values()]):
        names.update(each.policy.dead_letter for each in portion)
    names.discard("")
    found = [router.queues.get(name) for name in sorted(names)]
    return [await _examined(queue) for queue in found if queue is not None]


async def _examined(queue: Queue) -> DeadLetterQueue:
    try:
        entries = peek(queue.backlogs, -1, EXAMINED_MAX)
    except NotLoaded:
        entries = []
    origins: dict[tuple[str, str], DeadLetterOrigin] = {}
    async for portion in in_portions(entries):
        for entry in portion:
            move = move_of(entry.message)
            source = (move.source if move else "") or UNKNOWN
            reason = (move.reason if move else "") or UNKNOWN
            origin = origins.setdefault(
                (source, reason), DeadLetterOrigin(source=source, reason=reason)
            )
            origin.add(move.moved_at if move else 0)
    return DeadLetterQueue(
        name=queue.address,
        messages=int(queue.backlogs.waiting),
        examined=len(entries),
        origins=sorted(origins.values(), key=lambda each: -each.messages),
    )


async def list_dead_letters(call: Call) -> CallResult:
    """Return the dead-letter queues with their origins."""
    call.demand(VIEW, MESSAGES)
    found = await dead_letter_queues(call.site.container)
    return CallResult(body={"items": [asdict(each) for each in found], "next": None})
