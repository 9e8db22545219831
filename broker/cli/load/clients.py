"""The clients of the load, one for each role; each has a connection of its own."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, final

from proton import Message

from broker.cli.load.connection import LoadConnection
from broker.cli.load.links import IncomingMessages, OutgoingMessages
from broker.cli.load.load_message import TIME, LoadMessage, time_ns_of
from broker.cli.load.outcomes import SingleOutcomes, TransactedOutcomes
from broker.cli.load.plan import NO_LIMIT, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cli.load.counts import LoadCounts
    from broker.cli.load.outcomes import Outcomes
    from broker.cli.load.plan import LoadPlan, SendingTimes

BURST_BYTES: Final = 1 << 16
"""Bytes of messages to send before the socket is served again."""

BURST_MAX: Final = 256
"""Maximum messages to send before the socket is served again."""

REPLY_ADDRESSES_MAX: Final = 1000
"""Maximum replies that a responder prepares; one for each requester, as a rule."""


class LoadClient(Protocol):
    """A client: a connection and what to do when its socket was read, or a message is due.

    Times are nanoseconds of the monotonic clock.
    """

    @property
    def connection(self) -> LoadConnection:
        """Return the connection, whose bytes the process moves."""

    def begin(self, times: SendingTimes) -> None:
        """Take the times at which messages are due."""

    def work(self, now_ns: int) -> bool:
        """Do all that can be done now; return whether more can be done at once."""

    def next_due_ns(self) -> int | None:
        """Return when the next message is due, or the load ends; None if neither is known."""

    def is_owed(self, now_ns: int) -> bool:
        """Return whether the broker has something to do for this client."""

    def is_done(self) -> bool:
        """Return whether the client has done its part."""


@final
class DueMessages:
    """The messages that a link has to send, each at its time if the link has room for it."""

    def __init__(
        self, out: OutgoingMessages, message: LoadMessage, plan: LoadPlan, counts: LoadCounts
    ) -> None:
        self.out: Final = out
        self._message: Final = message
        self._counts: Final = counts
        self._burst: Final = max(1, min(BURST_MAX, BURST_BYTES // plan.size))
        self._times: SendingTimes | None = None
        self._has_ended = False
        self._waiting = 0
        """How many messages, counted from the first, were due when the link had no room."""

    def begin(self, times: SendingTimes) -> None:
        self._times = times

    def send(self, now_ns: int, count_max: int) -> bool:
        """Send up to `count_max` due messages; return whether more can be sent at once."""
        times, out = self._times, self.out
        out.settle()
        if times is None:
            return False
        at_end = now_ns >= times.end_ns
        due = times.due_by(now_ns) - out.count
        count = 0 if at_end else min(due, self._burst)
        if count > 0:
            room = max(0, min(count_max, out.room))
            count = min(count, room)
            for index in range(out.count, out.count + count):
                out.send(self._message.timed(self._time_ns(times, index)))
            self._counts.sent += count
            if due > room:
                self._waiting = out.count + due - count
        out.complete(at_end=at_end)
        if at_end and not self._has_ended:
            self._has_ended = True
            self._counts.unsent += max(0, due)
        return count == self._burst

    def _time_ns(self, times: SendingTimes, index: int) -> int:
        """Return the time from which the latency of the message `index` counts.

        That is now; but if the broker made the message wait, the time at which it was due.
        """
        now_ns = time.monotonic_ns()
        if not times.is_open_loop:
            return now_ns
        due_ns = times.due_ns(index)
        if index < self._waiting:
            return due_ns
        self._counts.delays.add(now_ns - due_ns)
        return now_ns

    def next_due_ns(self) -> int | None:
        """Return when the next message is due, or the end if it is due as soon as there is room."""
        times, count = self._times, self.out.count
        if times is None or self._has_ended:
            return None
        if self._waiting > count or (count > 0 and not times.is_open_loop):
            return times.end_ns
        return min(times.due_ns(count), times.end_ns)

    def is_owed(self, now_ns: int) -> bool:
        """Return whether a message is due and has no room, or has no outcome."""
        due = 0 if self._times is None else self._times.due_by(now_ns)
        return due > self.out.count or not self.out.is_complete

    def is_done(self) -> bool:
        """Return whether the end was seen, its unsent messages counted, and all outcomes known."""
        return self._has_ended and self.out.is_complete


class PassiveClient:
    """The common part of clients that work only when the broker has sent something."""

    def begin(self, times: SendingTimes) -> None:
        """Do nothing: no message is due by the clock."""

    def next_due_ns(self) -> None:
        return None

    def is_owed(self, now_ns: int) -> bool:  # noqa: ARG002 - active clients need it
        return False

    def is_done(self) -> bool:
        return False


@final
class SendingClient:
    """A client that sends messages to the address of the load."""

    def __init__(self, plan: LoadPlan, counts: LoadCounts, container_id: str) -> None:
        self.connection: Final = LoadConnection(plan, container_id)
        link = self.connection.sender(container_id, plan.address, plan.capability)
        message = LoadMessage(size=plan.size, run_id=plan.run_id, durable=plan.durable)
        out = OutgoingMessages(link, plan.in_flight, _outcomes(plan, counts, self.connection))
        self._due: Final = DueMessages(out, message, plan, counts)
        self.begin: Final = self._due.begin
        self.next_due_ns: Final = self._due.next_due_ns
        self.is_owed: Final = self._due.is_owed
        self.is_done: Final = self._due.is_done

    def work(self, now_ns: int) -> bool:
        return self._due.send(now_ns, NO_LIMIT)


@final
class ReceivingClient(PassiveClient):
    """A client that receives messages from the address of the load."""

    def __init__(self, plan: LoadPlan, counts: LoadCounts, container_id: str) -> None:
        self.connection: Final = LoadConnection(plan, container_id)
        link = self.connection.receiver(container_id, plan.address, plan.capability)
        self._messages: Final = IncomingMessages(link, plan)
        self._counts: Final = counts

    def work(self, now_ns: int) -> bool:
        _count_received(self._messages.take(), self._counts, now_ns)
        return False


@final
class RequestingClient:
    """A client that sends requests and receives the replies on a temporary queue of its own."""

    def __init__(self, plan: LoadPlan, counts: LoadCounts, container_id: str) -> None:
        self.connection: Final = LoadConnection(plan, container_id)
        replies = self.connection.receiver(f"{container_id}-replies", None, "temporary-queue")
        self._replies: Final = IncomingMessages(replies, plan)
        requests = self.connection.sender(container_id, plan.address, plan.capability)
        message = LoadMessage(
            size=plan.size,
            run_id=plan.run_id,
            durable=plan.durable,
            reply_to=replies.remote_source.address,
        )
        out = OutgoingMessages(requests, plan.in_flight, SingleOutcomes(counts))
        self._due: Final = DueMessages(out, message, plan, counts)
        self._in_flight: Final = plan.in_flight
        self._counts: Final = counts
        self._answered = 0
        self.begin: Final = self._due.begin
        self.next_due_ns: Final = self._due.next_due_ns

    @property
    def _unanswered(self) -> int:
        return self._due.out.count - self._answered

    def work(self, now_ns: int) -> bool:
        self._answered += _count_received(self._replies.take(), self._counts, now_ns)
        return self._due.send(now_ns, self._in_flight - self._unanswered)

    def is_owed(self, now_ns: int) -> bool:
        return self._unanswered > 0 or self._due.is_owed(now_ns)

    def is_done(self) -> bool:
        return self._unanswered == 0 and self._due.is_done()


@final
class RespondingClient(PassiveClient):
    """A client that replies to each request with the request's body, through the relay."""

    def __init__(self, plan: LoadPlan, counts: LoadCounts, container_id: str) -> None:
        self.connection: Final = LoadConnection(plan, container_id)
        relay = self.connection.sender(f"{container_id}-replies", None)
        self._out: Final = OutgoingMessages(relay, plan.in_flight, SingleOutcomes(counts))
        requests = self.connection.receiver(container_id, plan.address, plan.capability)
        self._requests: Final = IncomingMessages(requests, plan)
        self._plan: Final = plan
        self._to_send: Final[deque[bytes]] = deque()
        self._prepared: Final[dict[bytes, LoadMessage]] = {}

    def work(self, now_ns: int) -> bool:  # noqa: ARG002 - other clients need it
        for request in self._requests.take():
            self._to_send.append(self._reply_to(request).timed(time_ns_of(request)))
        self._out.settle()
        for _ in range(min(len(self._to_send), max(0, self._out.room))):
            self._out.send(self._to_send.popleft())
        return False

    def _reply_to(self, request: bytearray) -> LoadMessage:
        """Return the reply; requests of one client differ in the time alone, so it is prepared."""
        constant = bytes(request[: -TIME.size])
        prepared = self._prepared.get(constant)
        if prepared is None:
            if len(self._prepared) >= REPLY_ADDRESSES_MAX:
                self._prepared.clear()
            decoded = Message()
            decoded.decode(bytes(request))
            prepared = self._prepared[constant] = LoadMessage(
                size=self._plan.size,
                run_id=self._plan.run_id,
                durable=self._plan.durable,
                to=decoded.reply_to,
            )
        return prepared


CLIENTS: Final[dict[Role, Callable[[LoadPlan, LoadCounts, str], LoadClient]]] = {
    Role.SENDER: SendingClient,
    Role.RECEIVER: ReceivingClient,
    Role.REQUESTER: RequestingClient,
    Role.RESPONDER: RespondingClient,
}


def _outcomes(plan: LoadPlan, counts: LoadCounts, connection: LoadConnection) -> Outcomes:
    if not plan.tx:
        return SingleOutcomes(counts)
    return TransactedOutcomes(connection.coordinator("transactions"), plan.tx, counts)


def _count_received(messages: list[bytearray], counts: LoadCounts, now_ns: int) -> int:
    """Count the messages and their latencies until `now_ns`; return their number."""
    add = counts.latencies.add
    for data in messages:
        add(now_ns - time_ns_of(data))
    counts.received += len(messages)
    return len(messages)
