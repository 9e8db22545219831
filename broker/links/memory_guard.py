"""Keeps the broker within `memory_max`: holds clients back, rolls back, closes connections.

The budget is checked after every round of work, which costs some comparisons while less than a
quarter is used. Expensive work (adding up output, choosing a connection) is done by a timer, or
when a limit has been crossed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, ConnectionFault, LinkFault
from broker.log_events import CLOSED_FOR_MEMORY, MEMORY_AGAIN, MEMORY_SHORT, TRANSACTION_GIVEN_UP
from broker.routing.credit.memory import RECORD_BYTES, MemoryBudget
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.amqp.connection import Connection
    from broker.links.container import Container
    from broker.links.peer import Peer
    from broker.links.transactions import OpenTransaction

LOOK_EVERY_MS: Final[i64] = 1000

LOOK_EVERY_WHILE_SHORT_MS: Final[i64] = 50
"""Interval of checks while memory is short, in ms.

A client that began to hold deliveries may send its one message so soon after that.
"""

WORTH_CLOSING: Final[i64] = 64
"""A connection is closed only if that frees at least 1/64 of the budget."""

MEBIBYTE: Final[i64] = 1024 * 1024


@final
class MemoryGuard(TimerCallback):
    """Keeps the connections of one container within its router's memory budget."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._memory: Final = container.router.memory
        # when `due` is to act next; an earlier call of the timer queue is superseded
        self._due_ms: i64 = 0

    def begin(self) -> None:
        """Add up output now, and from now on every second, or more often while memory is short."""
        self.due(self._container.clock.now_ms())

    def due(self, now_ms: i64) -> None:
        if now_ms < self._due_ms:
            return
        memory = self._memory
        container = self._container
        output: i64 = 0
        for peer in container.peers():
            output += peer.output_bytes()
        memory.output = output
        staging_area = container.router.staging_area
        memory.staged = staging_area.messages() * RECORD_BYTES + staging_area.kept_bytes
        memory.leased = container.router.leases.memory()
        self.look()
        if memory.is_short:
            memory.producers.resume()
        pause = LOOK_EVERY_WHILE_SHORT_MS if memory.is_short else LOOK_EVERY_MS
        self._call_at(now_ms + pause)

    def _call_at(self, moment_ms: i64) -> None:
        """Act at `moment_ms`, and no longer at the moment that was set before."""
        self._due_ms = moment_ms
        self._container.router.timer_queue.at(moment_ms, self)

    def look(self) -> None:
        """Compare the bytes in use with their limits, and act on each that is exceeded."""
        memory = self._memory
        total, quarter = memory.total(), memory.quarter()
        if total <= quarter and memory.held <= quarter and not memory.is_stressed():
            return
        if memory.unfinished > quarter:
            self._close_most_unfinished()
        if memory.transactions > quarter:
            self._roll_back_largest()
        if memory.total() > memory.limit:
            self._close_largest()
        self._judge(memory.total())

    def _judge(self, total: i64) -> None:
        """Begin or end lasting measures: spilling, waiting producers, waiting consumers.

        Each begins at a level that is a little higher than that at which it ends.
        """
        memory = self._memory
        sixteenth = memory.limit >> 4
        memory.spills = total > (7 if memory.spills else 8) * sixteenth
        if memory.consumers and memory.held * 8 < memory.quarter() * 7:
            for consumer in list(memory.consumers):
                consumer.memory_freed()
        was_short = memory.is_short
        memory.is_short = total > (11 if was_short else 12) * sixteenth
        if memory.is_short == was_short:
            return
        notices = self._container.router.notices
        if memory.is_short:
            self._container.stats.memory_shortages += 1
            notices.append(
                MEMORY_SHORT.notice(f"memory is short, producers wait: {described(memory)}")
            )
            self._call_at(self._container.clock.now_ms())
        else:
            notices.append(
                MEMORY_AGAIN.notice(f"there is memory again, producers go on: {described(memory)}")
            )
            memory.producers.resume()

    # -- limits of one kind

    def _close_most_unfinished(self) -> None:
        worst: Peer | None = None
        for peer in self._container.peers():
            if worst is None or peer.connection.partial_bytes > worst.connection.partial_bytes:
                worst = peer
        if worst is not None:
            size = worst.connection.partial_bytes
            self._close(worst, size, "unfinished deliveries")

    def _roll_back_largest(self) -> None:
        """Doom the transaction that keeps most memory: its commit will be rejected."""
        largest: OpenTransaction | None = None
        for peer in self._container.peers():
            found = peer.transactions.largest()
            if found is not None and (largest is None or found.work.memory > largest.work.memory):
                largest = found
        if largest is None:
            return
        most = self._memory.quarter()
        size = largest.work.memory
        largest.work.doom(
            LinkFault(
                RESOURCE_LIMIT_EXCEEDED,
                f"the transactions of all clients together have at most {most} bytes of memory:"
                " this was the largest",
            )
        )
        self._container.stats.transactions_given_up += 1
        self._container.router.notices.append(
            TRANSACTION_GIVEN_UP.notice(
                f"the largest transaction, {size // MEBIBYTE} MiB, can only be rolled back:"
                f" {described(self._memory)}"
            )
        )

    # -- the whole

    def _close_largest(self) -> None:
        """Close the connection whose end frees most memory, if that is enough (WORTH_CLOSING)."""
        worst: Peer | None = None
        most: i64 = 0
        backlogs = self._backlogs()
        for peer in self._container.peers():
            frees = peer.connection.partial_bytes + peer.transactions.memory()
            frees += peer.output_bytes() + i64(backlogs.get(peer.connection, 0))
            if frees > most:
                worst, most = peer, frees
        if worst is not None and most * WORTH_CLOSING >= self._memory.limit:
            self._close(worst, most, "all kinds")

    def _backlogs(self) -> dict[Connection, int]:
        """Return the bytes of messages that are deleted with each connection.

        These are in its temporary queues, and in its subscriptions that no other client can find.
        """
        router = self._container.router
        found: dict[Connection, int] = {}
        for peer in self._container.peers():
            found[peer.connection] = int(router.population.owned_bytes(peer.id))
        for holder in self._container.receivers():
            subscription = holder.subscription
            if subscription is not None and subscription.ends_with_its_consumer():
                connection = holder.link.session.connection
                found[connection] = found.get(connection, 0) + int(subscription.queue.state.bytes)
        return found

    def _close(self, peer: Peer, size: i64, what: str) -> None:
        container = self._container
        container.stats.connections_closed_for_memory += 1
        container.router.notices.append(
            CLOSED_FOR_MEMORY.notice(
                f"connection {peer.container_id} of {peer.identity.name()}"
                f" at {peer.entrance.address} is closed: it held most,"
                f" {size // MEBIBYTE} MiB ({what}); {described(self._memory)}"
            )
        )
        peer.connection.close(
            ConnectionFault(
                RESOURCE_LIMIT_EXCEEDED, "the broker is out of memory, and this client holds most"
            )
        )
        peer.cut_if_blocked()


def described(memory: MemoryBudget) -> str:
    """Return the memory in use by kind, in MiB, for the log."""
    kinds = (
        ("non-durable messages", memory.volatile),
        ("durable messages", memory.durable),
        ("held by consumers", memory.held),
        ("transactions", memory.transactions),
        ("unfinished deliveries", memory.unfinished),
        ("output", memory.output),
    )
    parts = ", ".join([f"{name} {size // MEBIBYTE}" for name, size in kinds])
    used, limit = memory.total() // MEBIBYTE, memory.limit // MEBIBYTE
    return f"{used} of {limit} MiB (memory_max) in use: {parts}"
