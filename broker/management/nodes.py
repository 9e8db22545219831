"""Queues and topics: list, show, create, delete, purge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.journal import Journal
from broker.links.access import Right, node_resource
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import CREATED, NO_CONTENT, Response
from broker.routing.addresses.address import check_new
from broker.routing.entries.record_mapping import stored_position
from broker.routing.queues.message_events import PURGED, depart
from broker.routing.queues.message_totals import NO_MESSAGE, oldest_arrival_ms
from broker.routing.queues.node import QUEUE, TOPIC, Node
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import purge
from broker.routing.router import Router
from broker.routing.topics.topic import Topic

PURGE_MAX: Final = 10_000
"""Maximum messages removed by one request, because other requests wait meanwhile. To remove
more, a client sends the request again."""


@dataclass(frozen=True, kw_only=True)
class NodeRecord(EntityRecord):
    """A queue or topic. A topic's figures are the sums over its subscriptions.

    `connection` identifies the connection that owns a temporary node. Counts of messages:
    `messages` are ready for delivery; `acquired` are delivered to consumers that have not settled
    them; `held` wait for their delivery time, after a failure, or to be moved to a dead-letter or
    expiry node; `staged` arrive with the commits of sinks. `oldest_ms` is the age of the oldest
    ready message in ms, 0 if there is none, or if it is not known.
    `duplicate_ids` ids are remembered now, of at most `duplicate_window`; by them `duplicates`
    messages were found to be repeats.
    """

    temporary: bool
    connection: str | None
    messages: int
    acquired: int
    held: int
    staged: int
    oldest_ms: int
    bytes: int
    consumers: int
    producers: int
    published: int
    subscriptions: int
    dead_letter: str
    expiry: str
    max_delivery_count: int
    max_messages: int
    max_bytes: int
    duplicate_window: int
    duplicate_ids: int
    duplicates: int


def oldest_ms_of(queue: Queue) -> int:
    """Return the age of the oldest ready message in ms, 0 if there is none or it is not known."""
    arrived_ms = oldest_arrival_ms(queue)
    if arrived_ms == NO_MESSAGE:
        return 0
    return max(0, int(queue.context.clock.wall_ms() - arrived_ms))


def record_of(node: Node) -> NodeRecord:
    """Return the attributes of `node`."""
    queues = [node] if isinstance(node, Queue) else []
    subscriptions = node.subscriptions if isinstance(node, Topic) else []
    policy = node.policy
    remembered = node.duplicates
    counted = [*queues, *subscriptions]
    return NodeRecord(
        name=node.address,
        identity=node.address,
        type=node.kind,
        temporary=node.is_temporary,
        connection=str(node.owner) if node.is_temporary else None,
        messages=sum(queue.backlogs.waiting for queue in counted),
        acquired=sum(queue.state.acquired for queue in counted),
        held=sum(queue.state.held() for queue in counted),
        staged=int(node.staged),
        oldest_ms=max(map(oldest_ms_of, counted), default=0),
        bytes=sum(queue.state.bytes for queue in counted),
        consumers=sum(len(queue.consumers.attached) for queue in counted),
        producers=len(node.producers),
        published=node.published,
        subscriptions=len(subscriptions),
        dead_letter=policy.dead_letter,
        expiry=policy.expiry,
        max_delivery_count=policy.max_delivery_count,
        max_messages=policy.max_messages,
        max_bytes=policy.max_bytes,
        duplicate_window=policy.duplicate_window,
        duplicate_ids=0 if remembered is None else remembered.size(),
        duplicates=0 if remembered is None else remembered.repeats,
    )


QUEUE_NUMBERS: Final[Mapping[str, Callable[[Queue], int]]] = {
    "messages": lambda queue: int(queue.backlogs.waiting),
    "acquired": lambda queue: int(queue.state.acquired),
    "held": lambda queue: int(queue.state.held()),
    "oldest_ms": oldest_ms_of,
    "bytes": lambda queue: int(queue.state.bytes),
    "consumers": lambda queue: len(queue.consumers.attached),
    "producers": lambda queue: len(queue.producers),
    "published": lambda queue: int(queue.published),
}
"""Attributes of a queue by which a list of 100,000 queues is sorted without their records."""

VERBS: Final = {"READ": "view", "DELETE": "delete", "PURGE": "purge"}
"""The right on the node itself that allows an operation. The role `application` has none."""


class Nodes(Entity):
    """The nodes of one kind. A queue and a topic of the same name are two entities (DST-01)."""

    attributes = attributes_of(NodeRecord)

    def __init__(self, kind: str, router: Router, journal: Journal) -> None:
        self.type = kind
        self.part = "topics" if kind == TOPIC else "queues"
        self._router: Final = router
        self._journal: Final = journal

    def operations(self) -> Mapping[str, Operation]:
        return {
            "CREATE": self._create,
            "READ": self._read,
            "DELETE": self._delete,
            "PURGE": self._purge,
        }

    def right(self, request: Request) -> Right | None:
        verb = VERBS.get(request.operation)
        if verb is None or self._router.prefixes.kind_in(request.subject()) not in ("", self.type):
            return None
        address = self._router.parse(request.subject(), self.type)
        return Right(verb, node_resource(address.of_kind(self.type)))

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        chosen = page.choose(self._router.names(self.type))
        return page.response(record_of(self._found(name)).as_map() for name in chosen)

    def listed(self, request: Request) -> Later:
        names = self._router.names(self.type)
        listing = Listing(
            items=names,
            names_of=lambda name: (name, name),
            record_of=self._record_at,
            value_of=self._number_at,
            filters={"temporary": "temporary"},
        )
        return list_of(request, self.attributes, listing)

    def _record_at(self, name: str) -> NodeRecord | None:
        router = self._router
        node = router.topics.get(name) if self.type == TOPIC else router.queues.get(name)
        return None if node is None else record_of(node)

    def _number_at(self, name: str, attribute: str) -> int | None:
        number = QUEUE_NUMBERS.get(attribute)
        queue = self._router.queues.get(name) if self.type == QUEUE else None
        return None if number is None or queue is None else number(queue)

    def _found(self, name: str) -> Node:
        node = self._router.find_named(name, self.type)
        if node is None:
            raise Refused(NOT_FOUND, f"no {self.type} {name}")
        return node

    def _create(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        if request.name is None:
            raise Refused(BAD_REQUEST, "CREATE needs a name")
        address = self._router.parse(request.name, self.type)
        name = check_new(address.text)
        if self._router.find(address) is not None:
            raise Refused(CONFLICT, f"there is a {self.type} {name}")
        node = self._router.create(address, self._journal.batch)
        return Response(status=CREATED, description="Created", body=record_of(node).as_map())

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        return Response(body=record_of(self._found(request.subject())).as_map())

    def _delete(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Delete a node, unless `if_unused` or `if_empty` is set and it is in use or not empty."""
        request.only("if_unused", "if_empty")
        node = self._found(request.subject())
        record = record_of(node)
        if request.flag("if_unused") and (record.consumers or record.producers):
            raise Refused(
                CONFLICT,
                f"{node.address} has {record.consumers} consumers and {record.producers} producers",
            )
        messages = record.messages + record.acquired + record.held + record.staged
        if request.flag("if_empty") and messages:
            raise Refused(CONFLICT, f"{node.address} holds {messages} messages")
        self._router.delete(node, self._journal.batch)
        return Response(status=NO_CONTENT, description="No Content")

    def _purge(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Remove up to PURGE_MAX messages; `left` is the number that can still be removed."""
        request.only()
        node = self._found(request.subject())
        queues = [node] if isinstance(node, Queue) else []
        queues += node.subscriptions if isinstance(node, Topic) else []
        purged = 0
        for queue in queues:
            purged += purge(queue, PURGE_MAX - purged, self._journal.batch)
            purged += self._cancel_all(queue, PURGE_MAX - purged)
        left = sum(queue.backlogs.waiting + queue.state.held() for queue in queues)
        return Response(body={"purged": purged, "left": int(left)})

    def _cancel_all(self, queue: Queue, at_most: int) -> int:
        """Remove up to `at_most` messages that are held back; return the number removed."""
        schedule = queue.state.schedule
        found = [] if schedule is None else schedule.some(at_most)
        for entry in found:
            depart(entry, PURGED, self._journal.batch)
            queue.cancel(stored_position(entry), self._journal.batch)
        return len(found)
