"""Acquirers of lease batches, without an HTTP request."""

from __future__ import annotations

from broker.routing.batches.lease import Acquirer, BatchLease, Wanted
from broker.routing.batches.lease_batch import LeaseBatch
from broker.routing.errors import RoutingError
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from tests.support.routing import Routing, bodies

HOUR_MS = 3_600_000


class RecordingAcquirer(Acquirer):
    """Records the batches and refusals that it receives."""

    def __init__(self) -> None:
        self.batches: list[LeaseBatch | None] = []
        self.refusals: list[RoutingError] = []

    def acquired(self, lease_batch: LeaseBatch | None) -> None:
        self.batches.append(lease_batch)

    def refused(self, why: RoutingError) -> None:
        self.refusals.append(why)


def opened(
    routing: Routing,
    queue: Queue | None = None,
    *,
    name: str = "l",
    selector: str = "",
    ttl_ms: int = HOUR_MS,
) -> BatchLease:
    """Return a lease opened by name; one that exists is opened again."""
    return routing.router.leases.open(
        name,
        routing.queue() if queue is None else queue,
        selector=parse_selector(selector) if selector else None,
        ttl_ms=ttl_ms,
        batch=routing.batch,
    )


def ask(
    routing: Routing, lease: BatchLease, batch_number: int = 0, **wanted: int
) -> RecordingAcquirer:
    """Request a batch, the lease's next one unless `batch_number` is given, and do not wait."""
    acquirer = RecordingAcquirer()
    routing.router.leases.acquire(
        lease.name,
        lease.fencing_token,
        batch_number or lease.batch_number + 1,
        wanted=Wanted(**wanted),
        acquirer=acquirer,
    )
    return acquirer


def acquire(
    routing: Routing, lease: BatchLease, batch_number: int = 0, **wanted: int
) -> list[bytes]:
    """Return the bodies of that batch, after the queues have dispatched; [] without a batch."""
    acquirer = ask(routing, lease, batch_number, **wanted)
    routing.pump()
    assert len(acquirer.batches) == 1, acquirer.refusals
    found = acquirer.batches[0]
    return [] if found is None else bodies(found.entries)
