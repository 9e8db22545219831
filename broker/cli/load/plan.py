"""The plan of a load: which clients there are, in which processes, and when messages are due."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.cli.client_tls import ClientTls

SECOND_NS: Final = 1_000_000_000
RUN_ID_BYTES: Final = 8
SIZE_MIN: Final = RUN_ID_BYTES + 8
"""Bytes of a body with the id of its run and the time from which its latency counts."""

NO_LIMIT: Final = 1 << 62
"""More messages than any client sends, and a later time than any of the clock."""


class LoadPattern(Enum):
    """The way of messages between the clients."""

    QUEUE = "queue"
    TOPIC = "topic"
    REQUEST_REPLY = "request-reply"


class Role(Enum):
    """The task of a client."""

    SENDER = "sender"
    RECEIVER = "receiver"
    REQUESTER = "requester"
    RESPONDER = "responder"


FIRST: Final = {
    LoadPattern.QUEUE: Role.SENDER,
    LoadPattern.TOPIC: Role.SENDER,
    LoadPattern.REQUEST_REPLY: Role.REQUESTER,
}
"""The role of the clients that send first."""

SECOND: Final = {
    LoadPattern.QUEUE: Role.RECEIVER,
    LoadPattern.TOPIC: Role.RECEIVER,
    LoadPattern.REQUEST_REPLY: Role.RESPONDER,
}
"""The role of the clients that the messages of the first go to."""


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """The options of a load. `rate` is in messages per second of all senders; None is no limit.

    `size` is the bytes of a body, `tx` the messages of a transaction, 0 without transactions.
    `in_flight` is the maximum number of messages, or of requests, that a sender has sent and that
    are not confirmed, or answered. `run_id` is RUN_ID_BYTES that the run's messages begin with.
    """

    url: str
    tls: ClientTls | None
    address: str
    pattern: LoadPattern
    senders: int
    receivers: int
    processes: int
    rate: float | None
    size: int
    durable: bool
    tx: int
    in_flight: int
    credit: int
    warm_up_s: float
    duration_s: float
    timeout_s: float
    run_id: bytes

    @property
    def capability(self) -> str:
        """Return the capability of the address: the kind of its node."""
        return "topic" if self.pattern is LoadPattern.TOPIC else "queue"

    @property
    def copies(self) -> int:
        """Return how many times each accepted message is received."""
        return self.receivers if self.pattern is LoadPattern.TOPIC else 1

    def shares(self) -> Iterator[Share]:
        """Yield the clients of each process; those that must be attached first come first."""
        yield from self._shares(SECOND[self.pattern], self.receivers)
        yield from self._shares(FIRST[self.pattern], self.senders)

    def _shares(self, role: Role, clients: int) -> Iterator[Share]:
        processes = min(clients, self.processes)
        for number in range(processes):
            yield Share(role, range(number, clients, processes))


@dataclass(frozen=True)
class Share:
    """The clients of one process: their role and their numbers."""

    role: Role
    numbers: range

    @property
    def sends_first(self) -> bool:
        return self.role in FIRST.values()


@final
class SendingTimes:
    """The times at which the messages of one of several senders are due.

    Times are in nanoseconds of the monotonic clock, which all processes of a machine share. Without
    a rate all messages are due at once.
    """

    def __init__(self, plan: LoadPlan, number: int, start_ns: int) -> None:
        """Take the number of the sender. The senders' messages are due in turn."""
        self.end_ns = start_ns + round((plan.warm_up_s + plan.duration_s) * SECOND_NS)
        self._interval_ns: Final = (
            None if plan.rate is None else max(1, round(plan.senders * SECOND_NS / plan.rate))
        )
        self._first_ns: Final = start_ns + (self._interval_ns or 0) * number // plan.senders

    @property
    def is_open_loop(self) -> bool:
        """Return whether messages are due at times that do not depend on the broker."""
        return self._interval_ns is not None

    def due_ns(self, index: int) -> int:
        """Return the time at which the message `index`, counted from 0, is due."""
        return self._first_ns + index * (self._interval_ns or 0)

    def due_by(self, now_ns: int) -> int:
        """Return how many messages are due by `now_ns`; none is due at the end or later."""
        until_ns = min(now_ns, self.end_ns - 1)
        if until_ns < self._first_ns:
            return 0
        if self._interval_ns is None:
            return NO_LIMIT if now_ns < self.end_ns else 0
        return (until_ns - self._first_ns) // self._interval_ns + 1
