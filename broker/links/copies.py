"""Copies of messages, gathered by the thousand, for clients that read without a link (HTTP)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.large_body import LargeBody
from broker.message import NEVER
from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.participants import Consumer
from broker.routing.entries.record_mapping import stored_position
from broker.routing.queues.queue import Queue

ROWS_MAX: Final = 8192
BYTES_MAX: Final[i64] = 1024 * 1024
"""Bytes that complete a batch, as ROWS_MAX messages do. One message may be larger."""

LOOKED_AT_MAX: Final[i64] = 4096
"""Maximum entries that are examined in one go, wanted or not; then sockets are served."""


@final
class Gathered:
    """A batch of messages in columns: positions in the queue, arrival times (ms), encoded bytes.

    The bytes are those that a consumer gets. `large` has the bodies that are in the store, each
    with the index of its row; the bytes of that row end before the body. `formats` has the
    message-formats that are not AMQP's own, by row, and `ttl_ends_ms` the ends of those that
    have a ttl.
    """

    def __init__(self) -> None:
        self.positions: Final[list[int]] = []
        self.arrived_ms: Final[list[int]] = []
        self.messages: Final[list[bytes]] = []
        self.large: Final[list[tuple[int, LargeBody]]] = []
        self.formats: Final[dict[int, int]] = {}
        self.ttl_ends_ms: Final[dict[int, int]] = {}
        self.bytes: i64 = 0

    def add(self, entry: QueueEntry, clock: Clock) -> None:
        """Append the message of `entry`, as a consumer would get it now."""
        message = entry.message
        header = message.header(
            entry.delivery_count, clock, acquired_before=entry.history is not None
        )
        large = message.large
        if large is not None:
            self.large.append((len(self.messages), large))
        if message.message_format != 0:
            self.formats[len(self.messages)] = int(message.message_format)
        if message.ttl_ends_ms != NEVER:
            self.ttl_ends_ms[len(self.messages)] = int(message.ttl_ends_ms)
        self.positions.append(int(stored_position(entry)))
        self.arrived_ms.append(int(message.arrived_ms))
        self.messages.append(header + message.encoded)
        self.bytes += message.size

    def is_enough(self) -> bool:
        """Return whether the batch is complete: it has ROWS_MAX messages or BYTES_MAX bytes."""
        return len(self.messages) >= ROWS_MAX or self.bytes >= BYTES_MAX


def gathered_from(entries: list[QueueEntry], at: i64, clock: Clock) -> Gathered:
    """Return a batch of the `entries` from index `at` on."""
    gathered = Gathered()
    while at < i64(len(entries)) and not gathered.is_enough():
        gathered.add(entries[at], clock)
        at += 1
    return gathered


@final
class Copies(Consumer):
    """A browser without credit, which pauses until `go_on` when it has examined enough entries.

    It wants the entries of `part` that pass `wanted` and were in the queue when it was created.
    It calls `notify` when one of these has become true: `is_full` (it pauses), `is_over` (all
    entries have been read) or `is_deleted` (the queue was deleted).
    """

    def __init__(
        self,
        queue: Queue,
        clock: Clock,
        notify: Callable[[], None],
        *,
        part: BrowseSlice | None = None,
        wanted: ConsumerFilter | None = None,
    ) -> None:
        self.filter = wanted
        self.is_full = False
        self.is_over = False
        self.is_deleted = False
        self._clock: Final = clock
        self._notify: Final = notify
        self._part: Final = part
        self._ends: Final = [
            0 if backlog is None else int(backlog.next_position)
            for backlog in queue.backlogs.by_priority
        ]
        self._looked_at: i64 = 0
        self._gathered = Gathered()

    def go_on(self) -> None:
        """End the pause: accept more entries."""
        self.is_full = False
        self._looked_at = 0

    def take(self) -> Gathered | None:
        """Return the gathered batch if it is complete or the last; None if entries may be added."""
        gathered = self._gathered
        if not self.is_over and not gathered.is_enough():
            return None
        self._gathered = Gathered()
        return gathered

    # -- as a consumer

    def has_room(self) -> bool:
        return not self.is_full

    def has_credit(self) -> bool:
        return not self.is_over

    def deliver(self, entry: QueueEntry) -> None:  # noqa: ARG002 - never called
        raise AssertionError("a browser acquires nothing")

    def browsed(self, entry: QueueEntry) -> None:
        self._looked_at += 1
        if self._wants(entry):
            self._gathered.add(entry, self._clock)
        if self._looked_at >= LOOKED_AT_MAX or self._gathered.is_enough():
            self.is_full = True
            self._notify()

    def _wants(self, entry: QueueEntry) -> bool:
        if entry.position >= self._ends[entry.message.priority]:
            return False
        return self._part is None or self._part.has(entry)

    def nothing_waits(self) -> None:
        self.is_over = True
        self._notify()

    def node_deleted(self) -> None:
        self.is_deleted = True
        self._notify()
