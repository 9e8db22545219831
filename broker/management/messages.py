"""Messages in a queue: list, show, delete, move, cancel, and retry of dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from broker.journal import Journal
from broker.management.content import content_of, properties_of, text_of
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import Response
from broker.message import NEVER, Message
from broker.routing.entries.dead_letter import EXPIRED, ORIGINAL_QUEUE, returned
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import stored_position
from broker.routing.errors import RoutingError
from broker.routing.queues.held_entries import cause_of, held_in
from broker.routing.queues.message_events import MOVED, PURGED, depart
from broker.routing.queues.node import QUEUE, TOPIC, Node
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import (
    check_loaded,
    entry_of,
    goes_on,
    order_of,
    peek,
    with_held,
)
from broker.routing.router import Router
from broker.routing.selector import Selector, parse_selector
from storage.batch import Batch

MESSAGE: Final = "message"

SCAN_MAX: Final = 10_000
"""Messages that one request looks at, whatever a selector makes of them."""

CHANGED_MAX: Final = 1000
"""Messages that one request moves or deletes."""

ID_CHARACTERS: Final = 255
NUMBER_DIGITS: Final = 18

WAITING: Final = "waiting"
SCHEDULED: Final = "scheduled"
HELD: Final = "held"
"""It belongs in a dead-letter or expiry node, and could not be moved: nobody gets it."""

CHOICE: Final = ("queue", "subscription", "identities", "selector", "all", "after", "count")
"""The arguments that say which messages are meant."""

Place = Callable[[QueueEntry], tuple[Node, Message]]
"""Where an entry's message is to go, and as what; Refused where it cannot go anywhere."""


@dataclass(frozen=True, kw_only=True)
class MessageRecord(EntityRecord):
    """A message in a queue. Its identity is a number within that queue.

    Times are milliseconds since 1970, null where there is none. `reason` is why a held message
    is to be moved (rejected, delivery-limit or expired), null for any other.
    """

    queue: str
    state: str
    subject: str
    priority: int
    durable: bool
    message_format: int
    size: int
    delivery_count: int
    expires_at: int | None
    deliver_at: int | None
    reason: str | None


def record_of(entry: QueueEntry, state: str) -> MessageRecord:
    """What a list tells of `entry`."""
    message = entry.message
    cause = cause_of(entry)
    properties = properties_of(message)
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
        expires_at=int(message.expires_at_ms) if message.expires_at_ms != NEVER else None,
        deliver_at=int(message.deliver_at_ms) if state == SCHEDULED else None,
        reason=None if cause is None else cause.reason,
    )


def identity_of(entry: QueueEntry) -> str:
    """The number that names `entry` within its queue."""
    return str(int(stored_position(entry)))


def number_in(identity: str) -> int:
    """The number that an identity is."""
    if not (identity.isascii() and identity.isdigit() and len(identity) <= NUMBER_DIGITS):
        raise Refused(BAD_REQUEST, f"{identity:.50} is no identity: that of a message is a number")
    return int(identity)


def queue_of(router: Router, *, name: str, subscription: str) -> Queue:
    """That of the `subscription` of that identity, or the one called `name`; Refused for none."""
    if subscription:
        found = router.subscriptions.identified(subscription)
        if found is not None:
            return found.queue
        raise Refused(NOT_FOUND, f"no subscription {subscription}")
    queue = router.find_named(name, QUEUE)
    if not isinstance(queue, Queue):
        raise Refused(NOT_FOUND, f"no queue {name}")
    return queue


class Messages(Entity):
    """What waits in queues. What a consumer holds is its own until it says what became of it."""

    type = MESSAGE
    attributes = attributes_of(MessageRecord)

    def __init__(self, router: Router, journal: Journal) -> None:
        self._router: Final = router
        self._journal: Final = journal

    def operations(self) -> Mapping[str, Operation]:
        return {
            "READ": self._read,
            "DELETE": self._delete,
            "MOVE": self._move,
            "RETRY": self._retry,
            "CANCEL": self._cancel,
        }

    def query(self, request: Request) -> Response:
        """In the order in which they would go; `next` is where to go on, `after` it.

        Those that wait and those that are held; with a `state` only these. State scheduled lists
        those that wait for their delivery time, the next one first.
        """
        page = read_page(
            request, self.attributes, "queue", "subscription", "state", "selector", "after"
        )
        if page.offset:
            raise Refused(BAD_REQUEST, "of messages there is no offset: say after which")
        queue = self._queue(request)
        state = request.text("state", "")
        if state not in ("", WAITING, SCHEDULED, HELD):
            raise Refused(BAD_REQUEST, f"state is {WAITING}, {SCHEDULED} or {HELD}")
        listed = None
        if state == SCHEDULED:
            listed = queue.scheduled()
        elif state == HELD:
            listed = sorted(held_in(queue), key=order_of)
        found = _Scan(request, page.count, listed, with_held_ones=state == "")
        entries = list(found.entries(queue))
        response = page.response(record_of(entry, state or WAITING).as_map() for entry in entries)
        assert isinstance(response.body, Mapping)
        return replace(response, body={**response.body, "next": found.next})

    def _queue(self, request: Request) -> Queue:
        """The queue of that name, or of the subscription of that identity."""
        subscription = request.text("subscription", "")
        name = "" if subscription else request.text("queue")
        return queue_of(self._router, name=name, subscription=subscription)

    def _found(self, queue: Queue, identity: str) -> tuple[QueueEntry, str]:
        """The entry of that identity and its state, be it waiting, held or scheduled."""
        number = number_in(identity)
        entry = _entry_of(queue, number)
        if entry is not None:
            return entry, WAITING
        for scheduled in queue.scheduled():
            if identity_of(scheduled) == str(number):
                return scheduled, SCHEDULED
        raise Refused(NOT_FOUND, f"no message {identity} waits in {queue.address}")

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only("queue", "subscription")
        entry, state = self._found(self._queue(request), request.subject())
        return Response(body={**record_of(entry, state).as_map(), **content_of(entry.message)})

    # -- changes

    def _delete(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Those that are named, in whatever state, or that a selector is true of, or `all`."""
        request.only(*CHOICE)
        queue = self._queue(request)
        batch = self._journal.batch
        deleted = 0
        chosen = _Chosen(request)
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
        """Drop messages that wait for their delivery time (DLY-04)."""
        request.only("queue", "subscription", "identities")
        queue = self._queue(request)
        scheduled = {identity_of(entry) for entry in queue.scheduled()}
        cancelled = 0
        missing = []
        for identity in _identities(request):
            if str(number_in(identity)) in scheduled:
                cancelled += _cancelled(queue, number_in(identity), self._journal.batch)
            else:
                missing.append(identity)
        return Response(body={"cancelled": cancelled, "missing": missing})

    def _move(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """To the queue or topic `to`, which is there; `to_type` says which where both are."""
        request.only(*CHOICE, "to", "to_type")
        queue = self._queue(request)
        name, kind = request.text("to"), request.text("to_type", "")
        if kind not in ("", QUEUE, TOPIC):
            raise Refused(BAD_REQUEST, f"to_type is {QUEUE} or {TOPIC}")
        node = self._router.find_named(name, kind)
        if node is None:
            raise Refused(NOT_FOUND, f"no {kind or 'queue or topic'} {name}")
        if node is queue:
            raise Refused(BAD_REQUEST, f"{name} is where they are")
        return self._carry(request, queue, lambda entry: (node, entry.message))

    def _retry(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Dead letters go back to the queues they came from, as if they had never failed.

        So do messages that are held because they could not be moved: theirs is the queue itself.
        """
        request.only(*CHOICE)
        queue = self._queue(request)
        return self._carry(request, queue, self._origin)

    def _origin(self, entry: QueueEntry) -> tuple[Node, Message]:
        cause = cause_of(entry)
        if cause is EXPIRED:
            raise Refused(CONFLICT, f"{identity_of(entry)} has expired: move or delete it")
        if cause is not None:
            return entry.queue, entry.message
        name = _original_queue(entry.message)
        if not name:
            raise Refused(CONFLICT, f"{identity_of(entry)} does not say where it came from")
        origin = self._router.find_named(name, QUEUE)
        if origin is None or origin is entry.queue:
            raise Refused(CONFLICT, f"{name}, where {identity_of(entry)} came from, is gone")
        return origin, returned(entry.message)

    def _carry(self, request: Request, queue: Queue, place: Place) -> Response:
        """Move the chosen ones one by one.

        Those that have no place to go to stay: `skipped` says how many, `reason` why the first
        of them. Where a place is full this ends, and `stopped` says why.
        """
        batch = self._journal.batch
        chosen = _Chosen(request)
        moved = 0
        skipped: list[str] = []
        stopped = None
        for entry in chosen.entries(queue):
            try:
                node, message = place(entry)
                if node is queue:  # it is held there, and so has its room already
                    queue.add(message, batch)
                else:
                    node.put(message, batch)
            except Refused as refusal:
                skipped.append(str(refusal))
                continue
            except RoutingError as refusal:
                stopped = str(refusal)
                break
            depart(entry, MOVED, batch, reason=f"to {node.kind} {node.address}")
            queue.withdraw(entry, batch)
            moved += 1
        reason = skipped[0] if skipped else None
        return chosen.response(moved=moved, skipped=len(skipped), reason=reason, stopped=stopped)


def _original_queue(message: Message) -> str:
    if message.opaque:
        return ""
    for key, value in message.annotations().pairs:
        if str(key) == ORIGINAL_QUEUE and isinstance(value, str):
            return value
    return ""


class _Scan:
    """A walk along a queue: entries behind `after` that a selector is true of.

    Stops after `count` of them, and after SCAN_MAX in any case. `listed` are the
    entries to walk along in place of those that wait, `with_held_ones` or without.
    """

    def __init__(
        self,
        request: Request,
        count: int,
        listed: list[QueueEntry] | None = None,
        *,
        with_held_ones: bool = True,
    ) -> None:
        text = request.text("selector", "")
        after = request.text("after", "")
        self._selector: Final[Selector | None] = parse_selector(text) if text else None
        self._after: Final = number_in(after) if after else -1
        self._count: Final = count
        self._listed: Final = listed
        self._with_held_ones: Final = with_held_ones
        self.next: str | None = None
        # whether what comes next is not in memory
        self._is_cut = False

    def entries(self, queue: Queue) -> Iterator[QueueEntry]:
        """Those that are meant. They may be withdrawn meanwhile."""
        looked_at = self._walk(queue)
        left = self._count
        for number, entry in enumerate(looked_at):
            if left == 0 or number == SCAN_MAX:
                return
            self.next = identity_of(entry)
            if self._selector is None or self._selector.matches(entry.message):
                left -= 1
                yield entry
        if not self._is_cut:
            self.next = None

    def _walk(self, queue: Queue) -> list[QueueEntry]:
        if self._listed is None:
            at_most = SCAN_MAX if self._selector is not None else self._count
            found = peek(queue.backlogs, self._after, at_most + 1)
            self._is_cut = bool(found) and goes_on(queue.backlogs, found[-1])
            held = held_in(queue) if self._with_held_ones else []
            if held:
                is_cut = self._is_cut or len(found) > at_most
                most = at_most + 1
                found = with_held(found, held, self._after, at_most=most, is_cut=is_cut)
            return found
        if self._after < 0:
            return self._listed
        numbers = [int(stored_position(entry)) for entry in self._listed]
        start = numbers.index(self._after) + 1 if self._after in numbers else 0
        return self._listed[start:]


class _Chosen:
    """The messages that a change is for: those named, or else the first that a scan finds."""

    def __init__(self, request: Request) -> None:
        self._identities: Final = request.texts("identities", at_most=CHANGED_MAX)
        if not (self._identities or request.flag("all") or request.text("selector", "")):
            raise Refused(BAD_REQUEST, "say which messages: identities, selector, or all")
        count = request.number("count", CHANGED_MAX, low=1, high=CHANGED_MAX)
        self._scan: Final = _Scan(request, count)
        self.missing: Final[list[int]] = []

    def entries(self, queue: Queue) -> Iterator[QueueEntry]:
        """Those that are there. They may be withdrawn meanwhile."""
        if not self._identities:
            yield from self._scan.entries(queue)
            return
        chosen = list(dict.fromkeys(number_in(identity) for identity in self._identities))
        check_loaded(queue.backlogs, chosen)
        for number in chosen:
            entry = _entry_of(queue, number)
            if entry is None:
                self.missing.append(number)
            else:
                yield entry

    def response(self, **done: object) -> Response:
        """What has been done, which of those named were not there, and where to go on."""
        missing = [str(number) for number in self.missing]
        return Response(body={**done, "missing": missing, "next": self._scan.next})


def _entry_of(queue: Queue, number: int) -> QueueEntry | None:
    """Return the waiting or held entry of that number; NotLoaded if it has to be loaded."""
    held = None if queue.schedule is None else queue.schedule.held.get(number)
    return entry_of(queue.backlogs, number) if held is None else held


def _cancelled(queue: Queue, number: int, batch: Batch) -> bool:
    """Whether there was a held-back message of that number, which is gone now."""
    entry = queue.cancel(number, batch)
    if entry is not None:
        depart(entry, PURGED, batch)
    return entry is not None


def _identities(request: Request) -> list[str]:
    found = request.texts("identities", at_most=CHANGED_MAX)
    if not found:
        raise Refused(BAD_REQUEST, "identities names the messages")
    return found
