"""The base of all kinds of entities: a type, attributes, and operations by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

from broker.audit.record import AMQP, Actor
from broker.links.access import Right
from broker.management.later import Later, Told
from broker.management.request import FORBIDDEN, NOT_IMPLEMENTED, Refused, Request
from broker.management.response import Response
from broker.security.decision import Decision
from broker.security.identity import Identity
from broker.security.resources import Resource

VIEW: Final = "view"
EDIT: Final = "edit"
"""The verbs of the rights on parts of management."""


@dataclass(frozen=True, kw_only=True)
class EntityRecord:
    """The attributes of one entity.

    The AMQP Management draft requires these three of every kind of entity.
    """

    name: str
    identity: str
    type: str

    def as_map(self) -> dict[str, object]:
        """Return every attribute by name."""
        return asdict(self)


def attributes_of(record: type[EntityRecord]) -> list[str]:
    """Return the names of the attributes of `record`, in the order of their declaration."""
    return [each.name for each in fields(record)]


def actor_of(identity: Identity, *, via: str, address: str) -> Actor:
    """Return a client as audit records name it."""
    return Actor(user=identity.user, roles=tuple(identity.roles), via=via, address=address)


class Denied(Refused):
    """A request for which the client lacks a right."""

    def __init__(
        self, verb: str, resource: Resource, decision: Decision, *, text: str = ""
    ) -> None:
        """`text` is the answer, if it is not that of `decision`."""
        super().__init__(FORBIDDEN, text or decision.text(verb, resource))
        self.verb: Final = verb
        self.resource: Final = resource
        self.decision: Final = decision


def _discard(response: Response) -> None:
    """Drop a response that no client awaits."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The sender of a request.

    `may` decides about its rights. `connection` is the number of its AMQP connection, 0 for none.
    `tell` sends a response to it; an `Executor` sets it. `via` is how it came in, and `request_id`
    the number of its request, both as audit records have them. `renew` renews its login by a token
    and returns the response; None if it has no connection of AMQP.
    """

    identity: Identity
    address: str
    may: Callable[[str, Resource], Decision]
    connection: int = 0
    tell: Callable[[Response], None] = _discard
    via: str = AMQP
    request_id: str | None = None
    renew: Callable[[str], Awaitable[Response]] | None = None

    def actor(self) -> Actor:
        """Return the sender as audit records name it."""
        return actor_of(self.identity, via=self.via, address=self.address)

    def demand(self, verb: str, resource: Resource) -> None:
        """Raise Refused unless the client may do that."""
        decision = self.may(verb, resource)
        if not decision.allowed:
            raise Denied(verb, resource, decision)


Operation = Callable[[Request, Caller], Response | Later | Told]


class Entity(ABC):
    """One kind of entity.

    `part` is the part of management to which it belongs, as access rules name it. `routine`
    operations are not logged: they change nothing, or programs send them all the time.
    """

    type: str
    part: str
    attributes: Sequence[str]
    routine: Collection[str] = ("READ",)

    @abstractmethod
    def operations(self) -> Mapping[str, Operation]:
        """Return the operations on one entity of this kind, by name."""

    def right(self, request: Request) -> Right | None:  # noqa: ARG002
        """Return the right on the entity itself that also allows a request; None if there is none.

        It is for clients that may not edit, or view, all entities of this part of management.
        """
        return None

    def listed(self, request: Request) -> Later:  # noqa: ARG002
        """Return a page of the entities of this kind in any order (`listing.py`)."""
        raise Refused(NOT_IMPLEMENTED, f"no LIST of the type {self.type}: use QUERY")

    @abstractmethod
    def query(self, request: Request) -> Response | Later:
        """Return a page of the entities of this kind; Refused if the request is invalid."""
