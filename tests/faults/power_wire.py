"""The promises to clients and their moments: a broker's conversations, read from its trace.

Every moment is the index of an event. A cut at `c` happens before event `c`: every event with a
smaller index has happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from broker.amqp.outcomes import Accepted, Declared, DeliveryState, Rejected, TransactionalState
from broker.amqp.performatives import Attach, Detach, Open
from broker.amqp.terminus import UNSETTLED_STATE, Coordinator, Source, Target
from tests.conformance.frames import Frame, read_frame
from tests.faults.power_trace import Event, Heard, Said
from tests.scenario.simulation_transactions import command_of
from tests.support.frames import Disposition, Transfer, body_of

NEVER: Final = 1 << 60
"""The index of an event that has not happened."""

NUMBER_SIZE: Final = 7
"""Number of digits of the message number with which a body begins."""

TOPIC: Final = "topic"


class HistoryError(Exception):
    """Something happened that the workload never intends, so that the run proves nothing."""


@dataclass(eq=False)
class Transaction:
    """Messages sent and retired together. `discharged` is when the broker read the discharge."""

    fails: bool = False
    discharged: int = NEVER
    confirmed: int = NEVER
    sent: list[Copy] = field(default_factory=list)
    retired: list[Copy] = field(default_factory=list)


@dataclass(eq=False)
class Copy:
    """One message in one queue, and the moments at which facts about it became known."""

    queue: str
    number: int
    encoded: bytes
    offered: int
    "The broker has read all of it; it may not be stored before."
    order: int
    "Its rank among those of its queue: when it was offered, or when its transaction ended."
    promised: int = NEVER
    "Its sender has been told that it is accepted."
    given: int = NEVER
    "It has been sent to a consumer."
    taken: int = NEVER
    "The broker has read an outcome that ends it: it may be gone from here on."
    gone: int = NEVER
    "A consumer has been told that it is gone for good."
    is_scheduled: bool = False
    within: Transaction | None = None
    group: int = 0
    "The publication that it is a copy of, 0 for none: all copies are created together."


@dataclass(eq=False)
class Subscribed:
    """A durable subscription; `queue` is the history's name for the queue of its messages."""

    queue: str
    address: str
    asked: int
    answered: int = NEVER
    leaving: int = NEVER
    left: int = NEVER


class History:
    """All messages that were offered, promised, given and taken, and the subscriptions."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.copies: Final[list[Copy]] = []
        self.by_name: Final[dict[tuple[str, int], Copy]] = {}
        self.transactions: Final[list[Transaction]] = []
        self.subscriptions: Final[dict[str, Subscribed]] = {}
        conversations: dict[str, _Conversation] = {}
        for at, event in enumerate(events):
            if isinstance(event, Said | Heard):
                key = event.connection
                if key not in conversations:
                    conversations[key] = _Conversation(self)
                conversations[key].take(at, event)

    def published(self, message: Copy, is_topic: bool, at: int) -> list[Copy]:
        """Add a copy of `message` to each queue that it reaches; return these copies."""
        if not is_topic:
            return [self.add(message)]
        return [
            self.add(
                Copy(
                    each.queue,
                    message.number,
                    message.encoded,
                    message.offered,
                    message.order,
                    is_scheduled=message.is_scheduled,
                    within=message.within,
                    group=at,
                )
            )
            for each in self.subscriptions.values()
            if each.address == message.queue and each.answered < at and each.leaving > at
        ]

    def add(self, copy: Copy) -> Copy:
        if (copy.queue, copy.number) in self.by_name:
            raise HistoryError(f"{copy.number} was sent to {copy.queue} twice")
        self.by_name[copy.queue, copy.number] = copy
        self.copies.append(copy)
        return copy


def subscription_queue(container_id: str | None, name: str) -> str:
    """Return the history's name for a subscription's queue; the store uses names of its own."""
    return f"{container_id}|{name}"


class _Conversation:
    """One connection with one session; its bytes may be split anywhere."""

    def __init__(self, history: History) -> None:
        self._history: Final = history
        self._unread: Final = {Said: bytearray(), Heard: bytearray()}
        self._container_id = ""
        self._incoming: Final[dict[int, Attach]] = {}
        "Links by the client's handle, as the client attached them."
        self._pieces: Final[dict[int, list[bytes]]] = {}
        self._arriving: Final[dict[int, Transfer]] = {}
        self._owed: Final[dict[int, list[Copy] | Transaction | None]] = {}
        "Deliveries that the broker has not settled, by delivery-id; None stands for a declare."
        self._open: Final[dict[bytes, Transaction]] = {}
        self._given: Final[dict[int, Copy]] = {}
        self._giving: Final[dict[int, tuple[int, list[bytes]]]] = {}
        self._handles: Final[dict[int, str]] = {}
        "Names of links by the broker's handle."

    def take(self, at: int, event: Said | Heard) -> None:
        unread = self._unread[type(event)]
        unread += event.data
        for frame in _frames(unread):
            if isinstance(event, Heard):
                self._heard(at, frame)
            else:
                self._said(at, frame)

    # -- what the client wrote

    def _heard(self, at: int, frame: Frame) -> None:
        body = frame.body
        if isinstance(body, Open):
            self._container_id = body.container_id
        elif isinstance(body, Attach):
            self._attached(at, body)
        elif isinstance(body, Detach):
            subscribed = self._subscribed(self._incoming.pop(int(body.handle), None))
            if subscribed is not None and body.closed:
                subscribed.leaving = at
        elif isinstance(body, Transfer):
            self._sent(at, body)
        elif isinstance(body, Disposition):
            for number in range(body.first, (body.last or body.first) + 1):
                if number in self._given:
                    self._settled(at, self._given[number], body.state)

    def _attached(self, at: int, attach: Attach) -> None:
        self._incoming[int(attach.handle)] = attach
        source = attach.source
        if not isinstance(source, Source) or source.durable != UNSETTLED_STATE:
            return
        queue = subscription_queue(self._container_id, attach.name)
        known = self._history.subscriptions.get(queue)
        if known is None or known.left < at:
            self._history.subscriptions[queue] = Subscribed(queue, source.address or "", at)

    def _subscribed(self, attach: Attach | None) -> Subscribed | None:
        if attach is None:
            return None
        queue = subscription_queue(self._container_id, attach.name)
        return self._history.subscriptions.get(queue)

    def _sent(self, at: int, transfer: Transfer) -> None:
        handle = transfer.handle
        first = self._arriving.setdefault(handle, transfer)
        pieces = self._pieces.setdefault(handle, [])
        pieces.append(transfer.payload)
        if transfer.more:
            return
        del self._arriving[handle], self._pieces[handle]
        delivery_id = first.delivery_id
        assert delivery_id is not None
        payload = b"".join(pieces)
        target = self._incoming[handle].target
        if isinstance(target, Coordinator):
            self._owed[delivery_id] = self._command(at, payload)
            return
        assert isinstance(target, Target)
        encoded = without_header(payload)
        message = Copy(
            target.address or "",
            int(body_of(payload)[:NUMBER_SIZE]),
            encoded,
            offered=at,
            order=at,
            is_scheduled=b"x-opt-delivery-time" in encoded,
            within=self._transaction(first.state),
        )
        copies = self._history.published(message, TOPIC in target.capabilities, at)
        if message.within is not None:
            message.within.sent += copies
        self._owed[delivery_id] = copies

    def _command(self, at: int, payload: bytes) -> Transaction | None:
        command = command_of(payload)
        if command is None:
            return None
        txn_id, fails = command
        transaction = self._open[txn_id]
        transaction.discharged = at
        transaction.fails = fails
        for copy in transaction.sent:
            copy.order = NEVER if fails else at
        for copy in transaction.retired if not fails else ():
            copy.taken = at
        return transaction

    def _transaction(self, state: object) -> Transaction | None:
        return self._open[state.txn_id] if isinstance(state, TransactionalState) else None

    def _settled(self, at: int, copy: Copy, state: DeliveryState | None) -> None:
        if isinstance(state, TransactionalState):
            if isinstance(state.outcome, Accepted):
                self._open[state.txn_id].retired.append(copy)
        elif isinstance(state, Accepted):
            copy.taken = at

    # -- what the broker wrote

    def _said(self, at: int, frame: Frame) -> None:
        body = frame.body
        if isinstance(body, Attach):
            self._handles[int(body.handle)] = body.name
            subscribed = self._named(body.name)
            if subscribed is not None and subscribed.answered == NEVER:
                subscribed.answered = at
        elif isinstance(body, Detach):
            subscribed = self._named(self._handles.pop(int(body.handle), ""))
            if subscribed is not None and body.closed:
                subscribed.left = at
        elif isinstance(body, Transfer):
            self._gave(at, body)
        elif isinstance(body, Disposition) and body.role is not False:
            for number in range(body.first, (body.last or body.first) + 1):
                if number in self._owed:
                    self._told(at, number, body.state)

    def _named(self, name: str) -> Subscribed | None:
        return self._history.subscriptions.get(subscription_queue(self._container_id, name))

    def _gave(self, at: int, transfer: Transfer) -> None:
        handle = transfer.handle
        if handle not in self._giving:
            assert transfer.delivery_id is not None
            self._giving[handle] = (transfer.delivery_id, [])
        number, pieces = self._giving[handle]
        pieces.append(transfer.payload)
        if transfer.more:
            return
        del self._giving[handle]
        name = self._handles[handle]
        subscribed = self._named(name)
        queue = name if subscribed is None else subscribed.queue
        which = int(body_of(b"".join(pieces))[:NUMBER_SIZE])
        copy = self._history.by_name[queue, which]
        copy.given = min(copy.given, at)
        self._given[number] = copy

    def _told(self, at: int, number: int, state: DeliveryState | None) -> None:
        owed = self._owed[number]
        if isinstance(state, Declared):
            transaction = self._open[state.txn_id] = Transaction()
            self._history.transactions.append(transaction)
        elif isinstance(owed, Transaction):
            owed.confirmed = at
            self._ended(at, owed, state)
        elif isinstance(owed, list) and isinstance(state, Accepted):
            for copy in owed:
                copy.promised = at
        elif isinstance(owed, list) and isinstance(state, Rejected):
            raise HistoryError(f"{[copy.number for copy in owed]} were rejected")
        del self._owed[number]

    def _ended(self, at: int, transaction: Transaction, state: DeliveryState | None) -> None:
        if transaction.fails:
            return
        if not isinstance(state, Accepted):
            raise HistoryError("a transaction could not be committed")
        for copy in transaction.sent:
            copy.promised = at
        for copy in transaction.retired:
            copy.gone = at


def without_header(payload: bytes) -> bytes:
    """Return the sections after the header, which a store keeps unchanged."""
    if payload[:3] != b"\x00\x53\x70":
        return payload
    code = payload[3]
    if code == 0x45:
        return payload[4:]
    return (
        payload[5 + payload[4] :] if code == 0xC0 else payload[8 + int.from_bytes(payload[4:8]) :]
    )


def _frames(unread: bytearray) -> Iterable[Frame]:
    """Yield the complete frames at the start of `unread`, and remove them from it."""
    while len(unread) >= 8:
        if unread[:4] == b"AMQP":
            del unread[:8]
            continue
        size = int.from_bytes(unread[:4])
        if len(unread) < size:
            return
        raw = bytes(unread[:size])
        del unread[:size]
        yield read_frame(raw)
