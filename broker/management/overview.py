"""The broker as a whole: what it is, how long it has run, and how much it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.links.container import Container
from broker.management.alarms import alarms_of
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.page import read_page
from broker.management.request import Request
from broker.management.response import Response
from broker.management.stretches import in_portions
from storage.api import Store

BROKER: Final = "broker"

RUNNING: Final = "running"
DRAINING: Final = "draining"
STOPPING: Final = "stopping"


@dataclass(frozen=True, kw_only=True)
class BrokerRecord(EntityRecord):
    """The broker. Its name is its container-id, its identity `broker`.

    `started_at` is wall time in ms since 1970. Sizes are bytes. `messages` are ready for delivery
    in all queues and subscriptions, `acquired` are delivered and not settled, `held` wait for a
    time or to be moved. `alarms` are those that hold now. `counters` are totals since the start.
    """

    version: str
    build: str
    state: str
    started_at: int
    uptime_ms: int
    queues: int
    topics: int
    subscriptions: int
    connections: int
    links: int
    leases: int
    sinks: int
    messages: int
    acquired: int
    held: int
    bytes: int
    memory_max: int
    memory_used: int
    alarms: Sequence[str]
    counters: Mapping[str, int]


@dataclass(kw_only=True)
class BacklogSums:
    """Sums over queues."""

    messages: int = 0
    acquired: int = 0
    held: int = 0
    bytes: int = 0


class Overview(Entity):
    """The broker: there is one entity."""

    type = BROKER
    part = "metrics"
    attributes = attributes_of(BrokerRecord)

    def __init__(self, container: Container, store: Store) -> None:
        self._container: Final = container
        self._store: Final = store
        self._began_ms: Final = int(container.clock.now_ms())
        self._started_at: Final = int(container.clock.wall_ms())

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read}

    def query(self, request: Request) -> Later:
        page = read_page(request, self.attributes)

        async def answer() -> Response:
            record = await self._record()
            return page.response(record.as_map() for _ in page.choose([record.name]))

        return Later(answer)

    def _read(self, request: Request, caller: Caller) -> Later:  # noqa: ARG002
        request.only()

        async def answer() -> Response:
            return Response(body=(await self._record()).as_map())

        return Later(answer)

    async def _sums(self) -> BacklogSums:
        """Return the sums over all queues, and those of subscriptions."""
        router = self._container.router
        sums = BacklogSums()
        async for portion in in_portions([*router.queues.values(), *router.subscriptions.of]):
            for queue in portion:
                sums.messages += int(queue.backlogs.waiting)
                sums.acquired += int(queue.state.acquired)
                sums.held += int(queue.state.held())
                sums.bytes += int(queue.state.bytes)
        return sums

    async def _record(self) -> BrokerRecord:
        container, sums = self._container, await self._sums()
        router = container.router
        return BrokerRecord(
            name=container.name,
            identity=BROKER,
            type=BROKER,
            version=str(container.product.get("version", "")),
            build=str(container.product.get("build", "")),
            state=_state(container),
            started_at=self._started_at,
            uptime_ms=int(container.clock.now_ms()) - self._began_ms,
            queues=len(router.queues),
            topics=len(router.topics),
            subscriptions=len(router.subscriptions.named),
            connections=int(container.peer_count()),
            links=int(container.link_count()),
            leases=len(router.leases.all()),
            sinks=len(router.staging_area.sinks),
            messages=sums.messages,
            acquired=sums.acquired,
            held=sums.held,
            bytes=sums.bytes,
            memory_max=int(router.memory.limit),
            memory_used=int(router.memory.total()),
            alarms=[name for name, holds in alarms_of(container, self._store).items() if holds],
            counters=container.stats.as_dict(),
        )


def _state(container: Container) -> str:
    if container.closing:
        return STOPPING
    return DRAINING if container.drain.keeps_clients_out() else RUNNING
