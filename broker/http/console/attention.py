"""Conditions of a broker that need an operator, found in one survey for all viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Final, final

from broker.amqp.deadlines import NO_DEADLINE
from broker.http.console.sampling import Sampler
from broker.http.console.values import duration_text
from broker.links.container import Container
from broker.management.connections import STALLED_MS, link_record
from broker.management.stretches import in_portions
from broker.routing.addresses.identity import identity_of
from broker.routing.queues.message_totals import NO_MESSAGE, oldest_arrival_ms

VALID_MS: Final = 5000
"""Time in ms for which a survey serves all viewers."""

NAMED_MAX: Final = 5
"""Names that one concern shows: those with the most messages."""

OLD_MS: Final = 3_600_000
"""Age in ms of a ready message from which on it is a concern."""

CERTIFICATE_DAYS: Final = 30
"""Days before the end of a certificate from which on it is a concern."""

DAY_S: Final = 86_400

FULL: Final = 0.9
"""Share of the memory from which on it is a concern."""

METRICS: Final = "metrics"
QUEUES: Final = "queues"
SUBSCRIPTIONS: Final = "subscriptions"
MESSAGES: Final = "messages"
CONNECTIONS: Final = "connections"
STORE: Final = "store"
"""The parts of management whose right to view a concern needs."""


@dataclass(frozen=True, kw_only=True)
class Concern:
    """A condition: `names` are entities of the list `page`, `query` is the filter of that list."""

    part: str
    text: str
    page: str
    query: str = ""
    names: Sequence[str] = ()


@final
class Attention:
    """The concerns of one broker. A survey looks at all nodes and links, in stretches."""

    def __init__(self, container: Container, sampler: Sampler) -> None:
        self._container: Final = container
        self._sampler: Final = sampler
        self._turn: Final = asyncio.Lock()
        self._valid_until_ms = -1
        self._found: list[Concern] = []

    async def concerns(self) -> Sequence[Concern]:
        """Return the concerns, those of an earlier survey if that is still valid."""
        async with self._turn:
            clock = self._container.clock
            if int(clock.now_ms()) >= self._valid_until_ms:
                self._found = await self._survey()
                self._valid_until_ms = int(clock.now_ms()) + VALID_MS
        return self._found

    async def _survey(self) -> list[Concern]:
        return [
            *await self._of_queues(),
            *await self._of_subscriptions(),
            *await self._of_clients(),
            *self._of_broker(),
        ]

    async def _of_queues(self) -> list[Concern]:
        router = self._container.router
        targets: set[str] = set()
        queues = list(router.queues.values())
        async for nodes in in_portions([*queues, *router.topics.values()]):
            targets.update(node.policy.dead_letter for node in nodes)
        leased = {lease.queue.address for lease in router.leases.all().values()}
        lonely, dead = _Tally(), _Tally()
        oldest: tuple[int, str] | None = None
        async for portion in in_portions(queues):
            for queue in portion:
                if queue.backlogs.waiting == 0:
                    continue
                arrived_ms = int(oldest_arrival_ms(queue))
                if arrived_ms != NO_MESSAGE and (oldest is None or arrived_ms < oldest[0]):
                    oldest = arrived_ms, queue.address
                if not queue.consumers.attached and queue.address not in leased:
                    tally = dead if queue.address in targets else lonely
                    tally.add(int(queue.backlogs.waiting), queue.address)
        found = [
            *lonely.concern(QUEUES, "/queues", "queues have ready messages and no consumer"),
            *dead.concern(QUEUES, "/queues", "dead-letter queues have messages"),
        ]
        if oldest is not None and (age_ms := int(router.clock.wall_ms()) - oldest[0]) >= OLD_MS:
            text = f"the oldest ready message of a queue has waited for {duration_text(age_ms)}"
            found.append(Concern(part=QUEUES, text=text, page="/queues", names=[oldest[1]]))
        return found

    async def _of_subscriptions(self) -> list[Concern]:
        lonely = _Tally()
        named = self._container.router.subscriptions.named
        async for portion in in_portions(list(named.items())):
            for identity, subscription in portion:
                queue = subscription.queue
                if queue.backlogs.waiting > 0 and not queue.consumers.attached:
                    lonely.add(int(queue.backlogs.waiting), identity_of(identity))
        text = "subscriptions have ready messages and no consumer"
        return lonely.concern(SUBSCRIPTIONS, "/subscriptions", text)

    async def _of_clients(self) -> list[Concern]:
        stalled = blocked = 0
        async for links in in_portions(self._container.links()):
            records = [link_record(each) for each in links]
            stalled += sum(
                each is not None and each.oldest_unsettled_ms >= STALLED_MS for each in records
            )
        async for peers in in_portions(self._container.peers()):
            blocked += sum(peer.blocked_since_ms != NO_DEADLINE for peer in peers)
        found = []
        if stalled:
            text = f"{stalled:,} links have not settled a delivery for a minute"
            found.append(Concern(part=CONNECTIONS, text=text, page="/links", query="stalled=true"))
        if blocked:
            text = f"{blocked:,} clients do not read what the broker sends"
            order = "sort=-output_blocked_ms"
            found.append(Concern(part=CONNECTIONS, text=text, page="/connections", query=order))
        return found

    def _of_broker(self) -> list[Concern]:
        container = self._container
        found = [*self._of_certificates()]
        if dead := self._sampler.dead_lettered():
            text = f"{dead:,} messages became dead letters in the last ten minutes"
            found.append(Concern(part=MESSAGES, text=text, page="/dead-letters"))
        if container.stats.quarantined > 0:
            text = f"{container.stats.quarantined:,} stored messages are damaged"
            found.append(Concern(part=STORE, text=text, page="/quarantined-messages"))
        memory = container.router.memory
        if int(memory.total()) > FULL * int(memory.limit):
            text = f"Memory is used to more than {FULL:.0%}: producers wait at 100%"
            found.append(Concern(part=METRICS, text=text, page="/queues", query="sort=-bytes"))
        return found

    def _of_certificates(self) -> list[Concern]:
        now_s = int(self._container.clock.wall_ms()) // 1000
        found = []
        for name, listener in self._container.stats.listeners.items():
            days = (int(listener.certificate_end_s) - now_s) // DAY_S
            if listener.certificate_end_s and days < CERTIFICATE_DAYS:
                text = f"the certificate of the listener {name} ends in {max(0, days)} days"
                found.append(Concern(part=METRICS, text=text, page="/config"))
        return found


@final
class _Tally:
    """The number of some entities, and those of them with the most messages."""

    def __init__(self) -> None:
        self._count = 0
        self._most: list[tuple[int, str]] = []

    def add(self, messages: int, name: str) -> None:
        """Count an entity."""
        self._count += 1
        self._most = nlargest(NAMED_MAX, [*self._most, (messages, name)])

    def concern(self, part: str, page: str, text: str) -> list[Concern]:
        """Return the concern about these entities; none if there are none."""
        if self._count == 0:
            return []
        return [
            Concern(
                part=part,
                text=f"{self._count:,} {text}",
                page=page,
                query="sort=-messages",
                names=[name for _, name in self._most],
            )
        ]
