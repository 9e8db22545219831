"""A process of the load: it moves the bytes of its clients, and reports ten times a second."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from select import select
from typing import TYPE_CHECKING, Final, final

from proton import ProtonException

from broker.cli.ending import EXIT_FAILURE, ClientError
from broker.cli.load.clients import CLIENTS
from broker.cli.load.connection import LoadConnection
from broker.cli.load.counts import Busy, LoadCounts, LoadSample
from broker.cli.load.plan import NO_LIMIT, SECOND_NS, SendingTimes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection as Pipe

    from broker.cli.load.clients import LoadClient
    from broker.cli.load.plan import LoadPlan, Share

SAMPLE_NS: Final = SECOND_NS // 10


@dataclass(frozen=True)
class Ready:
    """A report: all clients of the process are attached."""


@dataclass(frozen=True)
class Finished:
    """A report, the last one: the clients have done their part."""


@dataclass(frozen=True)
class Failed:
    """A report, the last one: the process cannot go on, and why."""

    text: str
    exit_status: int


@dataclass(frozen=True)
class BeginLoad:
    """An order: measure from `start_ns` of the monotonic clock."""

    start_ns: int


@dataclass(frozen=True)
class Stop:
    """An order: send nothing more; end when all outcomes are known."""


def run_process(pipe: Pipe, plan: LoadPlan, number: int, share: Share) -> None:
    """Run the clients of `share` until the parent says stop. Report to the parent by `pipe`."""
    # ^C reaches all processes of a terminal; the parent then tells them what to do
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        Worker(pipe, plan, number, share).run()
    except ClientError as error:
        failed = Failed(str(error), error.exit_status)
    except (OSError, ProtonException) as error:
        failed = Failed(f"a {share.role.value} failed: {error}", EXIT_FAILURE)
    else:
        return
    with suppress(OSError):  # the parent has ended
        pipe.send(failed)


@final
class DueClients:
    """The clients by the time at which their next message is due."""

    def __init__(self) -> None:
        self._queue: Final[list[tuple[int, int, LoadClient]]] = []
        self._noted: Final[dict[LoadClient, int | None]] = {}

    def note(self, client: LoadClient) -> None:
        """Note when the next message of `client` is due; forget what was noted before."""
        due_ns = client.next_due_ns()
        if due_ns != self._noted.get(client):
            self._noted[client] = due_ns
            if due_ns is not None:
                heappush(self._queue, (due_ns, id(client), client))

    def next_ns(self) -> int:
        """Return the time at which a message may be due; later than all if none is."""
        return self._queue[0][0] if self._queue else NO_LIMIT

    def by(self, now_ns: int) -> set[LoadClient]:
        """Return the clients with a message that is due by `now_ns`."""
        due = set()
        while self._queue and self._queue[0][0] <= now_ns:
            due_ns, _, client = heappop(self._queue)
            if due_ns == self._noted[client]:
                self._noted[client] = None
                due.add(client)
        return due


@final
class Worker:
    """The clients of one process, all of one role.

    A client works when its socket was read or takes bytes again, and when its next message is due.
    """

    def __init__(self, pipe: Pipe, plan: LoadPlan, number: int, share: Share) -> None:
        """Connect and attach all clients. Raise ClientError if the broker refuses one."""
        self._pipe: Final = pipe
        self._plan: Final = plan
        self._number: Final = number
        self._share: Final = share
        self._parent: Final = os.getppid()
        self._counts: Final = LoadCounts()
        self._busy: Final = Busy()
        self._sending_times: Final[list[SendingTimes]] = []
        create, run = CLIENTS[share.role], plan.run_id.hex()
        self._clients: Final[list[LoadClient]] = [
            create(plan, self._counts, f"jms-broker-load-{run}-{share.role.value}-{each}")
            for each in share.numbers
        ]
        self._by_connection: Final = {each.connection: each for each in self._clients}
        self._watched: Final[list[Pipe | LoadConnection]] = [pipe, *self._by_connection]
        self._unwritten: Final[set[LoadConnection]] = set()
        self._due: Final = DueClients()
        self._moved_ns = self._sample_ns = time.monotonic_ns()

    def run(self) -> None:
        """Move bytes and messages until all clients are done. Raise ClientError if one cannot."""
        self._pipe.send(Ready())
        now_ns = time.monotonic_ns()
        active = set(self._clients)
        stopped = False
        while not (stopped or all(each.is_done() for each in self._clients)):
            unfinished = self._work(active, now_ns)
            patience_s = 0.0 if unfinished else self._patience_s(now_ns)
            readable, writable, _ = select(self._watched, list(self._unwritten), [], patience_s)
            now_ns = time.monotonic_ns()
            active = unfinished | self._due.by(now_ns)
            active.update(self._by_connection[each] for each in writable)
            active.update(self._read(readable))
            if self._pipe in readable:
                stopped = self._obey()
                active.update(self._clients)
            if now_ns >= self._sample_ns:
                self._sample_ns += (now_ns - self._sample_ns) // SAMPLE_NS * SAMPLE_NS
                self._sample(self._sample_ns)
                self._sample_ns += SAMPLE_NS
                for connection in self._by_connection:
                    connection.keep_alive()
                active.update(self._clients)
        self._sample(now_ns)
        for connection in self._by_connection:
            connection.close()
        self._pipe.send(Finished())

    def _work(self, active: set[LoadClient], now_ns: int) -> set[LoadClient]:
        """Let clients work, and write what they have to send; return those with more to do."""
        unfinished = set()
        for client in active:
            if client.work(now_ns):
                unfinished.add(client)
            if client.connection.write():
                self._unwritten.discard(client.connection)
            else:
                self._unwritten.add(client.connection)
            self._due.note(client)
        return unfinished

    def _patience_s(self, now_ns: int) -> float:
        """Return the seconds until the next message, or the next sample, is due."""
        return max(0, min(self._sample_ns, self._due.next_ns()) - now_ns) / SECOND_NS

    def _read(self, readable: list[Pipe | LoadConnection]) -> Iterator[LoadClient]:
        """Read the connections among `readable`; yield their clients."""
        for each in readable:
            if isinstance(each, LoadConnection):
                each.read()
                yield self._by_connection[each]

    def _obey(self) -> bool:
        """Read an order; return whether it ends clients that wait for the broker only."""
        order = self._pipe.recv()
        if isinstance(order, BeginLoad):
            # samples end with the seconds of the measurement
            self._sample_ns = order.start_ns
            for number, client in zip(self._share.numbers, self._clients, strict=True):
                times = SendingTimes(self._plan, number, order.start_ns)
                self._sending_times.append(times)
                client.begin(times)
            return False
        now_ns = time.monotonic_ns()
        for times in self._sending_times:
            times.end_ns = min(times.end_ns, now_ns)
        return not self._share.sends_first

    def _sample(self, now_ns: int) -> None:
        """Report what happened until now. Raise ClientError if the broker is stuck."""
        if self._counts or not any(each.is_owed(now_ns) for each in self._clients):
            self._moved_ns = now_ns
        elif now_ns - self._moved_ns > self._plan.timeout_s * SECOND_NS:
            raise ClientError(
                f"the broker took, confirmed or answered nothing for {self._plan.timeout_s:g} s"
            )
        if os.getppid() != self._parent:
            raise ClientError("the command that started this process has ended")
        self._pipe.send(
            LoadSample(
                process=self._number,
                role=self._share.role,
                until_ns=now_ns,
                counts=self._counts.taken(),
                busy_ns=self._busy.since_last_ns(),
            )
        )
