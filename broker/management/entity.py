"""The base of all kinds of entities: a type, attributes, and operations by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from broker.links.peer import Peer
from broker.management.later import Later, Told
from broker.management.request import Request
from broker.management.response import Response


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


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The sender of a request: its connection, on which an operation may depend.

    `tell` sends a response to it.
    """

    peer: Peer
    tell: Callable[[Response], None]


Operation = Callable[[Request, Caller], Response | Later | Told]


class Entity(ABC):
    """One kind of entity.

    `routine` operations are not logged: they change nothing, or programs send them all the time.
    """

    type: str
    attributes: Sequence[str]
    routine: Collection[str] = ("READ",)

    @abstractmethod
    def operations(self) -> Mapping[str, Operation]:
        """Return the operations on one entity of this kind, by name."""

    @abstractmethod
    def query(self, request: Request) -> Response | Later:
        """Return a page of the entities of this kind; Refused if the request is invalid."""
