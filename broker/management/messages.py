"""Messages in a queue: list, show, delete, move, copy, cancel, deliver early, retry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from broker.journal import Journal
from broker.management.content import content_of, properties_of, text_of
from broker.management.dead_letter_move import move_of
from broker.management.entity import (
    Caller,
    Denied,
    Entity,
    EntityRecord,
    Operation,
    attributes_of,
)
from broker.management.later import Later
from broker.management.message_scan import (
    CHOICE,
    HELD,
    PAUSED,
    SCHEDULED,
    WAITING,
    ChosenMessages,
    MessageScan,
    identities_in,
    identity_of,
    loaded_entry,
    number_in,
    scan_of,
    selector_of,
)
from broker.management.move_rights import (
    ReturnRights,
    demand_browsing,
    demand_source,
    demand_target,
)
from broker.management.page import Page, read_page
from broker.management.request import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import Response
from broker.management.scheduled import ScheduledPage, place_after
from broker.message import NEVER, Message
from broker.routing.entries.dead_letter import EXPIRED, origin_of, returned
from broker.routing.entries.entry import QueueEntry
from broker.routing.errors import RoutingError
from broker.routing.queues.message_events import MOVED, PURGED, depart
from broker.routing.queues.node import QUEUE, TOPIC, Node
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import (
    deliver_now,
)
from broker.routing.queues.schedule import Timeline
from broker.routing.router import Router
from storage.batch import DISCHARGE, Batch

MESSAGE: Final = "message"

ID_CHARACTERS: Final = 255

Place = Callable[[QueueEntry], tuple[Node, Message]]
"""Returns the node to move an entry's message to, and the message to put there; else Refused."""


@dataclass(frozen=True, kw_only=True)
class MessageRecord(EntityRecord):
    """A message in a queue. Its identity is a number within that queue.

    `state` is waiting, scheduled, paused or held. `deliver_at` of a paused message is known to the
    list of these alone. Times are milliseconds since 1970, null if there is none. `reason` is why a
    held message is to be moved, or why a dead letter was moved (rejected, delivery-limit or
    expired), and `source` the address that a dead letter was sent to; both are null for any other
    message. `delivery_count` is that of the header of the next delivery, and
    `former_delivery_count` that of a dead letter before it was moved.
    """

    queue: str
    state: str
    subject: str
    priority: int
    durable: bool
    message_format: int
    size: int
    delivery_count: int
    former_delivery_count: int | None
    expires_at: int | None
    deliver_at: int | None
    source: str | None
    reason: str | None


def record_of(entry: QueueEntry, state: str) -> MessageRecord:
    """Return the attributes of `entry`; the state is HELD if it is held back, else `state`."""
    message = entry.message
    cause = entry.queue.state.cause_of(entry)
    properties = properties_of(message)
    move = move_of(message)
    reason = None if move is None else move.reason
    return MessageRecord(
        name=text_of(properties.get("message_id"), ID_CHARACTERS),
        identity=identity_of(entry),
        type=MESSAGE,
        queue=entry.queue.address,
        state=state if cause is None else HELD,
        subject=text_of(properties.get("subject"), ID_CHARACTERS),
        priority=int(message.priority),
        durable=message.durable,
        message_format=int(message.message_format),
        size=int(message.size),
        delivery_count=int(entry.delivery_count),
        former_delivery_count=None if move is None else move.delivery_count,
        expires_at=int(message.expires_at_ms) if message.expires_at_ms != NEVER else None,
        deliver_at=int(message.deliver_at_ms) if state == SCHEDULED else None,
        source=None if move is None else move.source,
        reason=reason if cause is None else cause.reason,
    )


def queue_of(router: Router, *, name: str, subscription: str) -> Queue:
    """Return the queue of the subscription of that identity, or queue `name`; else Refused."""
    if subscription:
        found = router.subscriptions.identified(subscription)
        if found is not None:
            return found.queue
        raise Refused(NOT_FOUND, f"no subscription {subscription}")
    queue = router.find_named(name, QUEUE)
    if not isinstance(queue, Queue):
        is_topic = router.find_named(name, TOPIC) is not None
        hint = ", only a topic: messages are in its subscriptions" if is_topic else ""
        raise Refused(NOT_FOUND, f"no queue {name}{hint}")
    return queue


class Messages(Entity):
    """Messages in queues, without those delivered to consumers that have not settled them."""

    type = MESSAGE
    part = "messages"
    attributes = attributes_of(MessageRecord)

    def __init__(self, router: Router, journal: Journal) -> None:
        self._router: Final = router
        self._journal: Final = journal

    def operations(self) -> Mapping[str, Operation]:
        return {
            "READ": self._read,
            "DELETE": self._delete,
            "MOVE": self._move,
            "COPY": self._copy,
            "RETRY": self._retry,
            "CANCEL": self._cancel,
            "DELIVER": self._deliver,
        }

    def query(self, request: Request) -> Response | Later:
        """Return messages in delivery order; `next` is the value of `after` for the next page.

        Lists waiting and held messages, or those of a given `state` only. States scheduled and
        paused list messages that wait for their delivery time or redelivery delay, the earliest
        first.
        """
        page = read_page(
            *(request, self.attributes),
            *("queue", "subscription", "state", "selector", "after", "scan"),
        )
        if page.offset:
            raise Refused(BAD_REQUEST, "messages have no offset: use the argument after")
        queue = self._queue(request)
        state = request.text("state", "")
        if state not in ("", WAITING, SCHEDULED, PAUSED, HELD):
            states = f"{WAITING}, {SCHEDULED}, {PAUSED} or {HELD}"
            raise Refused(BAD_REQUEST, f"state must be {states}")
        if state in (SCHEDULED, PAUSED):
            return self._timed(request, page, queue, state=state)
        found = MessageScan(request, page.count, state)
        records = [record_of(entry, state or WAITING) for entry in found.entries(queue)]
        return _page_of(page, records, following=found.next)

    def _timed(self, request: Request, page: Page, queue: Queue, *, state: str) -> Response | Later:
        """Return a page of the messages that are scheduled or paused, as `state` says."""
        place = place_after(request)
        found = ScheduledPage(
            count=page.count, scan=scan_of(request), selector=selector_of(request)
        )
        timeline = _timelines(queue).get(state)
        if timeline is None:
            return _page_of(page, [], following=None)

        async def answer() -> Response:
            entries = await found.entries(timeline, place)
            clock = queue.context.clock
            ahead_ms = int(clock.wall_ms() - clock.now_ms())
            records = [
                replace(record_of(entry, PAUSED), deliver_at=at_ms + ahead_ms)
                if state == PAUSED
                else record_of(entry, SCHEDULED)
                for at_ms, _, entry in entries
            ]
            return _page_of(page, records, following=found.next)

        return Later(answer)

    def _queue(self, request: Request) -> Queue:
        """Return the queue that `request` names, or that of the subscription it names."""
        subscription = request.text("subscription", "")
        name = "" if subscription else request.text("queue")
        return queue_of(self._router, name=name, subscription=subscription)

    def _found(self, queue: Queue, identity: str) -> tuple[QueueEntry, str]:
        """Return the entry of that identity and its state; that of a held one is WAITING."""
        number = number_in(identity)
        entry = loaded_entry(queue, number)
        if entry is not None:
            return entry, WAITING
        for state, timeline in _timelines(queue).items():
            found = timeline.find(number)
            if found is not None:
                return found, state
        raise Refused(NOT_FOUND, f"no message {identity} waits in {queue.address}")

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only("queue", "subscription")
        entry, state = self._found(self._queue(request), request.subject())
        return Response(body={**record_of(entry, state).as_map(), **content_of(entry.message)})

    # -- changes

    def _delete(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Delete the messages in `identities` (in any state), or matching `selector`, or `all`."""
        request.only(*CHOICE)
        queue = self._queue(request)
        batch = self._journal.batch
        deleted = 0
        chosen = ChosenMessages(request)
        for entry in chosen.entries(queue):
            depart(entry, PURGED, batch)
            queue.withdraw(entry, batch)
            deleted += 1
        for number in chosen.missing[:]:
            if _cancelled(queue, number, batch):
                chosen.missing.remove(number)
                deleted += 1
        return chosen.response(deleted=deleted)

    def _cancel(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Delete messages that wait for their delivery time (DLY-04)."""
        request.only("queue", "subscription", "identities")
        queue = self._queue(request)
        timeline = _timelines(queue).get(SCHEDULED)
        cancelled = 0
        missing = []
        for identity in identities_in(request):
            number = number_in(identity)
            if timeline is not None and timeline.find(number) is not None:
                cancelled += _cancelled(queue, number, self._journal.batch)
            else:
                missing.append(identity)
        return Response(body={"cancelled": cancelled, "missing": missing})

    def _deliver(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Make messages available before their delivery time."""
        request.only("queue", "subscription", "identities")
        queue, identities = self._queue(request), identities_in(request)
        missing = [
            identity
            for identity in identities
            if not deliver_now(queue, number_in(identity), self._journal.batch)
        ]
        delivered = len(identities) - len(missing)
        return Response(body={"delivered": delivered, "missing": missing, "next": None})

    def _move(self, request: Request, caller: Caller) -> Response:
        """Move messages to the existing queue or topic `to`; `to_type` chooses if both exist."""
        request.only(*CHOICE, "to", "to_type")
        demand_source(self._router, caller, request)
        queue, node = self._queue_and_target(request, caller)
        return self._carry(request, queue, lambda entry: (node, entry.message))

    def _copy(self, request: Request, caller: Caller) -> Response:
        """Put copies of messages to the existing queue or topic `to`; the messages stay.

        A copy has all of its message, also the message-id, and no count of deliveries.
        """
        request.only(*CHOICE, "to", "to_type")
        demand_browsing(self._router, caller, request)
        queue, node = self._queue_and_target(request, caller)
        chosen = ChosenMessages(request)
        copied = 0
        stopped = None
        for entry in chosen.entries(queue):
            try:
                node.put(entry.message, self._journal.batch)
            except RoutingError as refusal:
                stopped = str(refusal)
                break
            copied += 1
        return chosen.response(copied=copied, stopped=stopped)

    def _queue_and_target(self, request: Request, caller: Caller) -> tuple[Queue, Node]:
        """Return the queue of the messages, and the node `to`, to which the caller may send."""
        name, kind = request.text("to"), request.text("to_type", "")
        if kind not in ("", QUEUE, TOPIC):
            raise Refused(BAD_REQUEST, f"to_type must be {QUEUE} or {TOPIC}")
        demand_target(self._router, caller, self._router.parse(name, kind))
        queue = self._queue(request)
        node = self._router.find_named(name, kind)
        if node is None:
            raise Refused(NOT_FOUND, f"no {kind or 'queue or topic'} {name}")
        if node is queue:
            raise Refused(BAD_REQUEST, f"{name} is where they are")
        return queue, node

    def _retry(self, request: Request, caller: Caller) -> Response:
        """Move dead letters back to the queues they came from, as if they had never failed.

        Messages that are held because they could not be moved return to their own queue, which
        needs no right to send. Those that the client may not send to their place stay.
        """
        request.only(*CHOICE)
        demand_source(self._router, caller, request)
        queue = self._queue(request)
        rights = ReturnRights(self._router, caller)
        return self._carry(request, queue, lambda entry: self._origin(entry, rights))

    def _origin(self, entry: QueueEntry, rights: ReturnRights) -> tuple[Node, Message]:
        cause = entry.queue.state.cause_of(entry)
        if cause is EXPIRED:
            raise Refused(CONFLICT, f"{identity_of(entry)} has expired: move or delete it")
        if cause is not None:
            return entry.queue, entry.message
        name, subscription = origin_of(entry.message)
        if not name:
            raise Refused(CONFLICT, f"{identity_of(entry)} does not say where it came from")
        origin: Node | None
        if subscription is None:
            rights.demand_queue(name)
            origin = self._router.find_named(name, QUEUE)
        else:
            # the queue of that name, if there is one, is not where the message was
            found = self._router.subscriptions.identified(subscription)
            if found is not None:
                rights.demand_subscription(found)
            origin = None if found is None else found.queue
            name = subscription or f"a subscription of {name}"
        if origin is None or origin is entry.queue:
            raise Refused(CONFLICT, f"{name}, where {identity_of(entry)} came from, is gone")
        return origin, returned(entry.message)

    def _carry(self, request: Request, queue: Queue, place: Place) -> Response:
        """Move the chosen messages one by one.

        Messages without a node to move to stay: `skipped` is their number, `reason` why the first
        of them stayed. If a node refuses a message, as a full queue does, moving ends, and
        `stopped` says why. Raise Denied if none is moved for lack of a right.
        """
        batch = self._journal.batch
        chosen = ChosenMessages(request)
        moved = 0
        skipped: list[Refused] = []
        stopped = None
        for entry in chosen.entries(queue):
            try:
                node, message = place(entry)
                _put(message, node, batch, leaves=queue)
            except Refused as refusal:
                skipped.append(refusal)
                continue
            except RoutingError as refusal:
                stopped = str(refusal)
                break
            depart(entry, MOVED, batch, reason=f"to {node.kind} {node.address}")
            queue.withdraw(entry, batch)
            moved += 1
        if skipped and not moved and isinstance(skipped[0], Denied):
            raise skipped[0]
        reason = str(skipped[0]) if skipped else None
        return chosen.response(moved=moved, skipped=len(skipped), reason=reason, stopped=stopped)


def _put(message: Message, node: Node, batch: Batch, *, leaves: Queue) -> None:
    """Put `message`, which leaves a queue, into `node`; raise QueueFull if it has no room."""
    # a moved message is not delivered before it is durable (`queue_persistence.py`): after a
    # crash before the commit it would be delivered once more, as new, from the queue that it left
    scope, batch.scope = batch.scope, DISCHARGE
    try:
        if node is leaves:  # a held message counts towards the limits of its queue already
            leaves.add(message, batch)
        else:
            node.put(message, batch)
    finally:
        batch.scope = scope


def _timelines(queue: Queue) -> Mapping[str, Timeline]:
    """Return the messages of a queue that wait for a time, by their state; {} if none ever did."""
    schedule = queue.state.schedule
    return {} if schedule is None else {SCHEDULED: schedule.by_wall, PAUSED: schedule.paused}


def _page_of(page: Page, records: Iterable[MessageRecord], *, following: str | None) -> Response:
    """Return the response with `records`, and where the next page begins."""
    response = page.response(each.as_map() for each in records)
    assert isinstance(response.body, Mapping)
    return replace(response, body={**response.body, "next": following})


def _cancelled(queue: Queue, number: int, batch: Batch) -> bool:
    """Delete the held-back message of that number. Return False if there is none."""
    entry = queue.cancel(number, batch)
    if entry is not None:
        depart(entry, PURGED, batch)
    return entry is not None
