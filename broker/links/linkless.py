"""Clients that send and receive without links, such as those of JMS over HTTP.

Their rights are judged by the functions of `access.py`, as those of AMQP connections are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, final

from mypy_extensions import i64

from broker.links.access import Right
from broker.links.container import Container
from broker.links.peer import Peer
from broker.routing.addresses.address import Address
from broker.routing.errors import NotPermitted
from broker.routing.queues.node import Node
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.resources import Resource


@final
class LinklessClient:
    """The sender of one request, with the members of `Peer` that the checks of rights use.

    `id` is the number of no connection: the temporary nodes of the request belong to it.
    `container_id` is empty. `denied` records a refusal for the operator. Its `identity` is that of
    the login, or of the last `renew`.
    """

    def __init__(
        self,
        container: Container,
        identity: Identity,
        entrance: Entrance,
        *,
        denied: Callable[[Right, Decision], None],
    ) -> None:
        self.container: Final = container
        self.identity = identity
        self.entrance: Final = entrance
        self.id: Final[i64] = container.next_peer_id()
        self.container_id: Final = ""
        self._denied: Final = denied

    def renew(self) -> bool:
        """Take the roles that the user has by now; return False if the login is no longer valid."""
        current = self.container.authenticator.current(self.identity)
        if current is not None:
            self.identity = current
        return current is not None

    def may(self, verb: str, resource: Resource) -> Decision:
        """Decide whether the client may do that."""
        return self.container.decide(self.identity, verb, resource, entrance=self.entrance)

    def demand(self, verb: str, resource: Resource) -> None:
        """Raise NotPermitted unless the client may do that; count and record the refusal."""
        decision = self.may(verb, resource)
        if not decision.allowed:
            self.deny(Right(verb, resource), decision)

    def deny(self, right: Right, decision: Decision) -> NoReturn:
        """Count and record that the client lacks `right`; raise NotPermitted."""
        self.container.stats.denied(right.resource.kind, right.verb)
        self._denied(right, decision)
        raise NotPermitted(decision.text(right.verb, right.resource))

    def limited(self, refusal: str) -> None:
        """Do nothing: the response names the limit, and such refusals are counted."""

    def resolve(self, address: Address, *, create: bool = True) -> Node:
        """Return the node of `address` as `Router.resolve` does, created for this client."""
        container = self.container
        return container.router.resolve(
            address,
            container.journal.batch,
            owner=self.id,
            create=create,
            creator=self.identity.user,
        )


Client = Peer | LinklessClient
"""A client whose rights are checked: of an AMQP connection, or without links."""
