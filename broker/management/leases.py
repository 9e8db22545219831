"""Leases: batches of messages held by a program rather than by one of its connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from broker.journal import Journal
from broker.links.access import CREATE, node_resource, subscription_resource
from broker.links.access import LEASE as LEASING
from broker.links.bridge_status import BRIDGE_PREFIX
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later, Spawn, Told
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import (
    BAD_REQUEST,
    CONFLICT,
    GONE,
    NOT_FOUND,
    Refused,
    Request,
    checked_number,
)
from broker.management.response import Response
from broker.management.stretches import PORTION, long_change, one_by_one
from broker.routing.addresses.identity import KEY_BYTES_MAX, fits_a_key, identity_in, identity_of
from broker.routing.batches.lease import Acquirer, BatchLease, Wanted
from broker.routing.batches.lease_batch import SLICES_MAX, LeaseBatch, accept
from broker.routing.entries.entry import QueueEntry
from broker.routing.errors import LeaseFenced, LeaseGone, NoSuchLeaseBatch, RoutingError
from broker.routing.queues.node import QUEUE
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from broker.routing.selector import Selector, parse_selector
from broker.routing.topics.subscription import Subscription

LEASE: Final = "lease"

LEASE_BATCH_MESSAGES_MAX: Final = 100_000
"""Maximum messages per batch: they stay in memory, and are settled in one commit."""

SETTLED_AT_ONCE: Final = 2000
"""Messages that are settled without other work in between: that takes less than a millisecond."""

WAIT_MAX_MS: Final = 30_000
"""Maximum time in ms that a request waits for messages; one request per lease can wait."""

TTL_DEFAULT_MS: Final = 3_600_000
TTL_MAX_MS: Final = 10 * 365 * 24 * 3_600_000
NUMBER_MAX: Final = 2**63 - 1

STATUS: Final = {LeaseGone: GONE, LeaseFenced: CONFLICT, NoSuchLeaseBatch: NOT_FOUND}


@dataclass(frozen=True, kw_only=True)
class LeaseRecord(EntityRecord):
    """A lease. `subscription` is a subscription's identity, null for a lease on a queue.

    `batch` is the last batch that was acquired, 0 if none was; all batches up to `settled` are
    settled. `expires_at_ms` is wall time, 0 for a lease that never expires (`ttl_ms` 0).
    `messages` is the number of messages in batches that are not settled.
    """

    address: str
    subscription: str | None
    selector: str | None
    fencing_token: int
    ttl_ms: int
    expires_at_ms: int
    batch: int
    settled: int
    messages: int


def record_of(lease: BatchLease, router: Router) -> LeaseRecord:
    """Return the attributes of `lease`."""
    subscription = lease.subscription
    identity = None if subscription is None else subscription.identity
    return LeaseRecord(
        name=lease.name,
        identity=lease.name,
        type=LEASE,
        address=lease.queue.address,
        subscription=None if identity is None else identity_of(identity),
        selector=None if lease.selector is None else lease.selector.text,
        fencing_token=int(lease.fencing_token),
        ttl_ms=int(lease.ttl_ms),
        expires_at_ms=int(router.leases.expires_at_ms(lease)),
        batch=int(lease.batch_number),
        settled=int(lease.settled),
        messages=int(lease.held()),
    )


class LeaseRequester(Acquirer):
    """The acquirer for a request: responds through `tell`, for the batch of number `number`."""

    def __init__(self, number: int, tell: Callable[[Response], None]) -> None:
        self._number: Final = number
        self._tell: Final = tell

    def acquired(self, lease_batch: LeaseBatch | None) -> None:
        sizes = [] if lease_batch is None else lease_batch.sizes()
        self._tell(
            Response(
                body={
                    "batch": self._number,
                    "messages": sum(sizes),
                    "slices": sizes,
                    "bytes": 0 if lease_batch is None else int(lease_batch.bytes),
                }
            )
        )

    def refused(self, why: RoutingError) -> None:
        self._tell(Response(status=STATUS.get(type(why), CONFLICT), description=str(why)))


class LeaseEntity(Entity):
    """All leases. Every change that a response reports is durable."""

    type = LEASE
    part = "leases"
    attributes = attributes_of(LeaseRecord)
    routine = ("ACQUIRE", "SETTLE", "RENEW", "READ")

    def __init__(self, router: Router, journal: Journal, spawn: Spawn | None = None) -> None:
        self._router: Final = router
        self._journal: Final = journal
        self._spawn: Final = spawn

    def operations(self) -> Mapping[str, Operation]:
        return {
            name: _telling(operation)
            for name, operation in (
                ("OPEN", self._open),
                ("ACQUIRE", self._acquire),
                ("SETTLE", self._settle),
                ("RENEW", self._renew),
                ("RELEASE", self._release),
                ("READ", self._read),
            )
        }

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        leases = self._router.leases.all()
        return page.response(
            record_of(leases[name], self._router).as_map() for name in page.choose(leases)
        )

    def listed(self, request: Request) -> Later:
        leases, router = self._router.leases.all(), self._router
        listing = Listing(
            items=list(leases.values()),
            names_of=lambda lease: (lease.name, lease.name),
            record_of=lambda lease: record_of(lease, router),
        )
        return list_of(request, self.attributes, listing)

    def _open(self, request: Request, caller: Caller) -> Response:
        """Begin a lease, or take it over and fence off the program that had it."""
        request.only("address", "subscription", "selector", "ttl_ms")
        name = _checked_name(request.subject())
        ttl_ms = request.number("ttl_ms", TTL_DEFAULT_MS, high=TTL_MAX_MS)
        selector = _selector(request)
        queue, subscription = self._source(request, caller)
        lease = self._router.leases.open(
            name,
            queue,
            subscription=subscription,
            selector=selector,
            ttl_ms=ttl_ms,
            batch=self._journal.batch,
        )
        return Response(
            body={
                "fencing_token": int(lease.fencing_token),
                "batch": int(lease.batch_number),
                "settled": int(lease.settled),
                "now_ms": int(self._router.clock.wall_ms()),
            }
        )

    def _source(self, request: Request, caller: Caller) -> tuple[Queue, Subscription | None]:
        """Return the queue of `address`, or of `subscription` together with that subscription.

        Raise Refused unless the caller may lease from it.
        """
        address, identity = request.text("address", ""), request.text("subscription", "")
        if bool(address) == bool(identity):
            raise Refused(BAD_REQUEST, "a lease is one of an address, or of a subscription")
        if address:
            parsed = self._router.parse(address, QUEUE)
            caller.demand(LEASING, node_resource(parsed))
            if self._router.find(parsed) is None:
                caller.demand(CREATE, node_resource(parsed))
            node = self._router.resolve(parsed, self._journal.batch)
            assert isinstance(node, Queue)
            return node, None
        named = identity_in(identity)
        if named is not None:
            # before the subscription is looked for: a refusal does not tell whether it exists
            caller.demand(LEASING, subscription_resource(named))
        subscription = self._router.subscriptions.identified(identity)
        if subscription is not None:
            return subscription.queue, subscription
        raise Refused(NOT_FOUND, f"no subscription {identity}")

    def _acquire(self, request: Request, caller: Caller) -> Told:
        """Acquire the next batch, or report again one that was acquired and is not settled."""
        request.only(
            *("fencing_token", "batch", "max_messages", "max_bytes"),
            *("slices", "arrived_until_ms", "wait_ms"),
        )
        batch_number = _required(request, "batch", low=1)
        wanted = Wanted(
            max_messages=request.number(
                "max_messages", 10_000, low=1, high=LEASE_BATCH_MESSAGES_MAX
            ),
            max_bytes=request.number("max_bytes", 0, high=NUMBER_MAX),
            slices=request.number("slices", 4, low=1, high=int(SLICES_MAX)),
            arrived_until_ms=request.number("arrived_until_ms", 0, high=NUMBER_MAX),
            wait_ms=request.number("wait_ms", 0, high=WAIT_MAX_MS),
        )
        self._router.leases.acquire(
            request.subject(),
            _required(request, "fencing_token"),
            batch_number,
            wanted=wanted,
            acquirer=LeaseRequester(batch_number, caller.tell),
        )
        return Told()

    def _settle(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Accept all messages of the batches up to `batch`, in one commit."""
        request.only("fencing_token", "batch")
        leases, journal = self._router.leases, self._journal
        name, fencing_token = request.subject(), _required(request, "fencing_token")
        batches = leases.begin_settling(
            name, fencing_token, _required(request, "batch"), batch=journal.batch
        )
        entries = sum(len(lease_batch.entries) for lease_batch in batches)
        if entries > SETTLED_AT_ONCE and self._spawn is not None and journal.hold_now():
            # the response is sent once the page is durable that is held from now on
            self._spawn(self._settle_in_stretches(batches))
        else:
            for lease_batch in batches:
                accept(lease_batch.entries, journal.batch)
        return Response(body={"settled": int(leases.find(name).settled)})

    async def _settle_in_stretches(self, batches: list[LeaseBatch]) -> None:
        """Accept the messages of these batches, with other work of the loop in between."""
        with long_change(self._journal):
            for lease_batch in batches:
                async for portion in one_by_one(taken_from(lease_batch.entries)):
                    accept(portion, self._journal.batch)

    def _renew(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Postpone the lease's expiry. Nothing is stored: a restart begins its whole ttl anew."""
        request.only("fencing_token")
        leases = self._router.leases
        lease = leases.renew(request.subject(), _required(request, "fencing_token"))
        return Response(body={"expires_at_ms": int(leases.expires_at_ms(lease))})

    def _release(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """End the lease. Its messages return to their places, with no delivery counted."""
        request.only("fencing_token")
        fencing_token = request.number("fencing_token", -1, high=NUMBER_MAX)
        returned = self._router.leases.release(
            request.subject(), self._journal.batch, fencing_token=fencing_token
        )
        return Response(body={"messages": int(returned)})

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        lease = self._router.leases.find(request.subject())
        return Response(body=record_of(lease, self._router).as_map())


def taken_from(entries: list[QueueEntry]) -> Iterator[list[QueueEntry]]:
    """Yield `entries` in portions, in order, and take them out of the list.

    To free them all at once at the end would take long.
    """
    entries.reverse()
    while entries:
        portion = entries[-PORTION:]
        del entries[-PORTION:]
        portion.reverse()
        yield portion


def _telling(operation: Operation) -> Operation:
    """Return `operation`, with errors of leases turned into the status codes of STATUS."""

    def told(request: Request, caller: Caller) -> Response | Later | Told:
        try:
            return operation(request, caller)
        except (LeaseGone, LeaseFenced, NoSuchLeaseBatch) as why:
            raise Refused(STATUS[type(why)], str(why)) from None

    return told


def _checked_name(name: str) -> str:
    if not name or not fits_a_key(name):
        raise Refused(BAD_REQUEST, f"the name of a lease has 1 to {KEY_BYTES_MAX} bytes, no NUL")
    if name.startswith(BRIDGE_PREFIX):
        raise Refused(BAD_REQUEST, f"the names of leases of bridges begin with {BRIDGE_PREFIX}")
    return name


def _selector(request: Request) -> Selector | None:
    text = request.text("selector", "")
    return parse_selector(text) if text.strip() else None


def _required(request: Request, name: str, *, low: int = 0) -> int:
    if request.arguments.get(name) is None:
        raise Refused(BAD_REQUEST, f"{request.operation} needs {name}")
    return checked_number(name, request.arguments[name], 0, low=low, high=NUMBER_MAX)
