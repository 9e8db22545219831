"""Connections and their links: list, show, close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.amqp.deadlines import NO_DEADLINE
from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.link import Link
from broker.amqp.outgoing_link import OutgoingLink
from broker.links.container import Container
from broker.links.incoming import ProducerEndpoint
from broker.links.outgoing import ConsumerEndpoint
from broker.links.peer import Peer
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of, listed, read_list
from broker.management.page import read_page
from broker.management.request import CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import NO_CONTENT, Response
from broker.management.stretches import in_portions
from broker.routing.addresses.identity import identity_of

CONNECTION: Final = "connection"
LINK: Final = "link"

STALLED_MS: Final = 60_000
"""Age in ms of a delivery from which on a link that has not settled it counts as stalled."""


@dataclass(frozen=True, kw_only=True)
class ConnectionRecord(EntityRecord):
    """An open connection. Its name is the container-id, its identity a number the broker gave it.

    `user` is empty for an anonymous client; `claimed_user` is then the name that the client gave.
    `hostname` is the one that the client connected to, by its own account.
    `unsettled` is the number of unsettled deliveries sent on all its links, `oldest_unsettled_ms`
    the age of the oldest in ms. `output_blocked_ms` is the time in ms for which the client has not
    read its pending output, 0 if it reads.
    """

    user: str
    claimed_user: str
    address: str
    hostname: str
    links: int
    unsettled: int
    oldest_unsettled_ms: int
    output_blocked_ms: int


@dataclass(frozen=True, kw_only=True)
class LinkRecord(EntityRecord):
    """An attached link, as its client sees it: a sender's `address` is the one it sends to.

    `credit` is the credit that the receiving end has granted; `address` is empty for a link to the
    anonymous relay. Of a receiver, `subscription` is the identity of the named subscription that it
    receives from, null without one, `unsettled` is the number of unsettled deliveries, and
    `oldest_unsettled_ms` the age of the oldest in ms. `delivery_count` is that of the link, which
    grows with each delivery and begins again with 0 at 2³² (core 2.6.7).
    """

    connection: str
    container_id: str
    session: int
    role: str
    address: str
    subscription: str | None
    credit: int
    delivery_count: int
    unsettled: int
    oldest_unsettled_ms: int


class Connections(Entity):
    """The open connections."""

    type = CONNECTION
    part = "connections"
    attributes = attributes_of(ConnectionRecord)

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "DELETE": self._close}

    def query(self, request: Request) -> Response:
        """Return a page of connections, by name, then identity; the filter is for the name."""
        page = read_page(request, self.attributes)
        links = _links_by_connection(self._container)
        peers = {_sort_key(peer): peer for peer in self._container.peers()}
        return page.response(
            _record_of(peers[key], links.get(int(peers[key].id), [])).as_map()
            for key in page.choose(peers)
        )

    def listed(self, request: Request) -> Later:
        links: dict[int, list[Link]] = {}
        listing = Listing(
            items=self._container.peers(),
            names_of=lambda peer: (peer.container_id, str(peer.id)),
            record_of=lambda peer: _record_of(peer, links.get(int(peer.id), [])),
            filters={"user": "user", "client_id": "name"},
        )
        wanted = read_list(request, self.attributes, listing)

        async def answer() -> Response:
            async for portion in in_portions(self._container.links()):
                for link in portion:
                    peer = _peer_of(link)
                    if peer is not None:
                        links.setdefault(int(peer.id), []).append(link)
            return await listed(listing, wanted)

        return Later(answer)

    def _found(self, request: Request) -> Peer:
        wanted = request.subject()
        for peer in self._container.peers():
            if str(peer.id) == wanted:
                return peer
        raise Refused(NOT_FOUND, f"no connection {wanted}; a number names it, as in the list")

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        peer = self._found(request)
        links = _links_by_connection(self._container).get(int(peer.id), [])
        return Response(body=_record_of(peer, links).as_map())

    def _close(self, request: Request, caller: Caller) -> Response:
        """Close the connection with `amqp:connection:forced`. The client may reconnect at once."""
        request.only("reason")
        peer = self._found(request)
        if peer.id == caller.connection:
            raise Refused(CONFLICT, "this is the connection that asks")
        reason = request.text("reason", "closed by an administrator")
        peer.connection.close(ConnectionFault(CONNECTION_FORCED, reason))
        return Response(status=NO_CONTENT, description="No Content")


class Links(Entity):
    """The links of all connections, or of one connection."""

    type = LINK
    part = "connections"
    attributes = attributes_of(LinkRecord)

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {}

    def query(self, request: Request) -> Response:
        """Return a page of links, by address; `connection` restricts it to one connection.

        The filter is for the address.
        """
        page = read_page(request, self.attributes, "connection")
        connection = request.text("connection", "")
        records = (link_record(link) for link in self._container.links())
        chosen = {
            f"{record.address}\0{record.identity}": record
            for record in records
            if record is not None and connection in ("", record.connection)
        }
        return page.response(chosen[key].as_map() for key in page.choose(chosen))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=self._container.links(),
            names_of=lambda link: (link.name, _identity_of(link)),
            record_of=link_record,
            filters={name: name for name in ("connection", "role", "address")},
            tests={"stalled": _is_stalled},
        )
        return list_of(request, self.attributes, listing)


def _is_stalled(record: EntityRecord) -> bool:
    """Return whether the client of a link has not settled a delivery for STALLED_MS."""
    return isinstance(record, LinkRecord) and record.oldest_unsettled_ms >= STALLED_MS


def _identity_of(link: Link) -> str:
    """Return the identity of `link`, empty if its connection has ended."""
    peer = _peer_of(link)
    return "" if peer is None else f"{peer.id}/{link.session.channel}/{link.handle}"


def link_record(link: Link) -> LinkRecord | None:
    """Return the attributes of `link`, None if its connection has ended."""
    peer = _peer_of(link)
    if peer is None:
        return None
    owner = link.owner if isinstance(link, IncomingLink | OutgoingLink) else None
    unsettled, oldest_ms = _unsettled(link, now_ms=int(peer.container.clock.now_ms()))
    found = owner.subscription if isinstance(owner, ConsumerEndpoint) else None
    named = None if found is None else found.identity
    return LinkRecord(
        name=link.name,
        identity=_identity_of(link),
        type=LINK,
        connection=str(peer.id),
        container_id=peer.container_id,
        session=int(link.session.channel),
        role="sender" if isinstance(link, IncomingLink) else "receiver",
        address=owner.address() if isinstance(owner, ProducerEndpoint | ConsumerEndpoint) else "",
        subscription=None if named is None else identity_of(named),
        credit=int(link.credit) if isinstance(link, IncomingLink | OutgoingLink) else 0,
        delivery_count=(
            int(link.delivery_count) if isinstance(link, IncomingLink | OutgoingLink) else 0
        ),
        unsettled=unsettled,
        oldest_unsettled_ms=oldest_ms,
    )


def _unsettled(link: Link, *, now_ms: int) -> tuple[int, int]:
    """Return the number of deliveries that the peer has not settled, and the oldest's age in ms."""
    if not isinstance(link, OutgoingLink) or link.owner is None:
        return 0, 0
    sent_ms = int(link.session.unsettled_out.oldest_sent_ms(link.owner))
    return int(link.owner.unsettled), now_ms - sent_ms if sent_ms else 0


def _peer_of(link: Link) -> Peer | None:
    """Return the client of `link`, None if its connection has ended while a list is made."""
    owner = link.session.connection.owner
    return owner if isinstance(owner, Peer) else None


def _links_by_connection(container: Container) -> dict[int, list[Link]]:
    found: dict[int, list[Link]] = {}
    for link in container.links():
        peer = _peer_of(link)
        if peer is not None:
            found.setdefault(int(peer.id), []).append(link)
    return found


def _record_of(peer: Peer, links: list[Link]) -> ConnectionRecord:
    now_ms = int(peer.container.clock.now_ms())
    held = [_unsettled(link, now_ms=now_ms) for link in links]
    blocked_since_ms = int(peer.blocked_since_ms)
    return ConnectionRecord(
        name=peer.container_id,
        identity=str(peer.id),
        type=CONNECTION,
        user=peer.identity.user,
        claimed_user=peer.identity.claimed_user,
        address=peer.entrance.address,
        hostname=peer.hostname,
        links=len(links),
        unsettled=sum(count for count, _ in held),
        oldest_unsettled_ms=max((age_ms for _, age_ms in held), default=0),
        output_blocked_ms=now_ms - blocked_since_ms if blocked_since_ms != NO_DEADLINE else 0,
    )


def _sort_key(peer: Peer) -> str:
    return f"{peer.container_id}\0{peer.id:020}"
