"""What is common to kinds of entities: a type, attributes, and operations by their names."""

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
    """One entity as it is told. The draft wants these three of every kind."""

    name: str
    identity: str
    type: str

    def as_map(self) -> dict[str, object]:
        """Every attribute by its name."""
        return asdict(self)


def attributes_of(record: type[EntityRecord]) -> list[str]:
    """The attributes of a kind of entity, in the order of their declaration."""
    return [each.name for each in fields(record)]


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks: their connection, since an operation may depend on it. `tell` sends a response."""

    peer: Peer
    tell: Callable[[Response], None]


Operation = Callable[[Request, Caller], Response | Later | Told]


class Entity(ABC):
    """One kind of entity.

    `routine` operations are not logged: they change nothing, or are a program's daily work.
    """

    type: str
    attributes: Sequence[str]
    routine: Collection[str] = ("READ",)

    @abstractmethod
    def operations(self) -> Mapping[str, Operation]:
        """What may be done with one entity of this kind."""

    @abstractmethod
    def query(self, request: Request) -> Response | Later:
        """A page of all of them."""
