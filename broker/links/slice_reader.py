"""Reads a slice of a lease for a receiver: all messages in order, then a drain is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.links.access import LEASE, lease_resource, named_resource
from broker.links.slices import LeaseSlice
from broker.routing.addresses.identity import identity_of
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer
from broker.routing.errors import LeaseGone, NoSuchNode

if TYPE_CHECKING:
    from broker.links.attach import ConsumeRequest
    from broker.links.peer import Peer


def read_slice(peer: Peer, request: ConsumeRequest, wanted: LeaseSlice) -> SliceReader:
    """Return a reader of the slice `wanted`; raise LinkFault or RoutingError if not allowed.

    The attach names the address of the lease: its queue's, or the identity of its subscription.
    """
    container = peer.container
    if not request.copies:
        raise LinkFault(INVALID_FIELD, "a slice is read with distribution-mode copy")
    router = container.router
    peer.demand(LEASE, named_resource(router, request.address or ""))
    leases = router.leases
    lease = leases.find(wanted.lease)
    if not peer.may(LEASE, lease_resource(lease)).allowed:
        # it is one of another queue, of which the client must not learn
        raise LeaseGone(f"gone: there is no lease {wanted.lease:.255}")
    entries = leases.slice_of(
        wanted.lease, wanted.fencing_token, wanted.batch_number, index=wanted.index
    )
    subscription = lease.subscription
    address = lease.queue.address
    if subscription is not None and subscription.identity is not None:
        address = identity_of(subscription.identity)
    if request.address != address:
        raise NoSuchNode(f"lease {wanted.lease:.255} is one of {address}")
    return SliceReader(entries)


@final
class SliceReader:
    """The position of a receiver in a slice, which it can read on even if the lease ends."""

    def __init__(self, entries: list[QueueEntry]) -> None:
        self._entries: Final = entries
        self._next = 0

    def show(self, consumer: Consumer, *, drain: bool) -> None:
        """Send copies while there is room; after the last one, a drain is complete."""
        while self._next < len(self._entries):
            if not consumer.has_room():
                return
            entry = self._entries[self._next]
            self._next += 1
            consumer.browsed(entry)
        if drain:
            consumer.nothing_waits()
