"""Duplicate detection: a message that is sent again, since its outcome was lost, is discarded.

A node remembers the ids of the latest messages that were sent to it, as digests: of the
application property `_AMQ_DUPL_ID` if present, else of the message-id. A duplicate is accepted
like the first message, once that is durable, and discarded. Messages that the broker itself
moves are never taken for duplicates.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, final
from uuid import UUID

from mypy_extensions import i64

from broker.amqp.errors import Fault
from broker.amqp.types import Char, Integer, Timestamp
from broker.clock import Clock
from broker.message import Message
from broker.routing.selector.facts import Facts
from broker.stats import Stats
from storage.batch import DISCHARGE, Batch
from storage.records import StoredId

if TYPE_CHECKING:
    from broker.routing.queues.node import Node

DUPLICATE_ID: Final = b"_AMQ_DUPL_ID"
"""Application property that a producer may set to the id to compare; the name is Artemis's."""

DIGEST_BYTES: Final = 16
"""Bytes of an id's digest, however long the id is: two ids share one once in 10^38."""

BYTES_PER_ID: Final = 200
"""Maximum bytes of memory that one remembered id takes; a test measures them."""

IDS_MAX: Final[i64] = 1_000_000
"""Maximum ids that all nodes together remember: 200 MB at most.

The limit is a common one because clients choose the names of nodes, and so their number. Beyond
it nodes forget their oldest ids in turn.
"""

COMPACT_FROM: Final[i64] = 1024
"""Minimum forgotten places in front of a window before the rest of it is moved forward."""

NOT_STORED: Final[i64] = 0


def digest_of(message: Message) -> bytes | None:
    """Return the digest of the id of `message`; None if it has no usable id."""
    facts = Facts(message)
    try:
        value = facts.application_value(DUPLICATE_ID)
    except Fault:
        return None
    kind = b"property "
    if value is None:
        value = facts.message_id_value()
        kind = b"message-id "
    content = _content(value)
    if content is None:
        return None
    return blake2b(kind + content, digest_size=DIGEST_BYTES).digest()


def _content(value: object) -> bytes | None:
    """Return the bytes of a string, binary, uuid or whole number, marked with its kind.

    None for values of other types, and for an empty string or binary.
    """
    if isinstance(value, str):
        return b"text " + value.encode(errors="surrogatepass") if value else None
    if isinstance(value, bytes):
        return b"binary " + value if value else None
    if isinstance(value, UUID):
        return b"uuid " + value.bytes
    if isinstance(value, (bool, Char, Timestamp)):
        return None
    if isinstance(value, Integer):
        return b"number %d" % value.value
    if isinstance(value, int):
        return b"number %d" % value
    return None


@final
class Duplicates:
    """The state shared by all windows of one broker: the count of ids, and their numbering.

    At the limit the windows that have ids forget their oldest id, one window after the other.
    """

    def __init__(self, clock: Clock, stats: Stats, ids_max: i64 = IDS_MAX) -> None:
        self.clock: Final = clock
        self.stats: Final = stats
        self.ids: i64 = 0
        self._ids_max: Final[i64] = ids_max
        self._last_number: i64 = 0
        self._filled: Final[OrderedDict[DuplicateWindow, None]] = OrderedDict()

    def next_number(self) -> i64:
        """Return the number under which the next id is stored."""
        self._last_number += 1
        return self._last_number

    def has_been_given(self, number: i64) -> None:
        """Give no number up to `number` again: the store has an id under it."""
        self._last_number = max(self._last_number, number)

    def come(self, window: DuplicateWindow, batch: Batch) -> None:
        """Count an id that `window` is about to remember; at the limit a window forgets one."""
        if self.ids >= self._ids_max:
            first = next(iter(self._filled))
            first.forget_oldest(batch)
            if first.size() > 0:
                self._filled.move_to_end(first)
        if window.size() == 0:
            self._filled[window] = None
        self.ids += 1

    def gone(self, window: DuplicateWindow) -> None:
        """Count out an id that `window` has forgotten."""
        self.ids -= 1
        if window.size() == 0:
            del self._filled[window]


@final
class DuplicateWindow:
    """The latest ids of one node, limited in number and age by its policy.

    The id of a message is stored if the message is: a message that is lost in a crash may be
    sent again. `repeats` counts the duplicates that were discarded.

    Ids age by the steady clock, as the wall clock may be set. The store has times of the wall
    clock, since only these mean the same after a restart.
    """

    def __init__(self, node: Node, shared: Duplicates) -> None:
        self.repeats: i64 = 0
        self._node: Final = node
        self._shared: Final = shared
        self._max: Final[i64] = node.policy.duplicate_window
        self._age_ms: Final[i64] = node.policy.duplicate_window_ms
        self._known: Final[set[bytes]] = set()
        self._digests: Final[list[bytes]] = []
        self._numbers: Final[array[int]] = array("q")
        self._times: Final[array[int]] = array("q")
        self._head: i64 = 0
        # of an id that is just too old, and so the least time that one from the store is given
        self._latest_ms: i64 = shared.clock.now_ms() - self._age_ms

    def size(self) -> i64:
        """Return the number of remembered ids."""
        return i64(len(self._digests)) - self._head

    def put(self, message: Message, batch: Batch) -> None:
        """Put `message` into the node unless it is a duplicate; raise QueueFull like `Node.put`."""
        digest = digest_of(message)
        if digest is None:
            self._node.put(message, batch)
        elif not self._count_if_duplicate(digest, batch):
            scope = batch.scope
            if self._stores(message):
                # keep it back until its commit: if it were consumed and a crash then took its
                # id, its duplicate would be delivered as well
                batch.scope = DISCHARGE
            try:
                self._node.put(message, batch)
            finally:
                batch.scope = scope
            self._remember(digest, message, batch)

    def publish(self, message: Message, batch: Batch) -> None:
        """Like `put`, for a message that has its room already: at the commit of a transaction."""
        digest = digest_of(message)
        if digest is None:
            self._node.publish(message, batch)
        elif not self._count_if_duplicate(digest, batch):
            self._node.publish(message, batch)
            self._remember(digest, message, batch)

    def _stores(self, message: Message) -> bool:
        """Return whether the id of `message` outlives the broker, as the message does."""
        node = self._node
        return node.may_store and (message.durable or node.stores_all)

    def knows(self, message: Message) -> bool:
        """Return whether `message` would be discarded as a duplicate, so that it needs no room."""
        digest = digest_of(message)
        return digest is not None and digest in self._known

    def _count_if_duplicate(self, digest: bytes, batch: Batch) -> bool:
        """Count a message of `digest` if it is a duplicate; return whether it is.

        Forget ids that are too old first.
        """
        self.forget_aged(batch, IDS_MAX)
        if digest not in self._known:
            return False
        self.repeats += 1
        self._shared.stats.duplicates += 1
        return True

    def forget_aged(self, batch: Batch, at_most: i64) -> i64:
        """Forget up to `at_most` ids that are too old; return how many were forgotten."""
        if self._age_ms <= 0:
            return 0
        oldest = self._shared.clock.now_ms() - self._age_ms
        forgotten: i64 = 0
        while forgotten < at_most and self.size() > 0 and self._times[self._head] <= oldest:
            self.forget_oldest(batch)
            forgotten += 1
        return forgotten

    def _remember(self, digest: bytes, message: Message, batch: Batch) -> None:
        node = self._node
        number = NOT_STORED
        self._latest_ms = self._shared.clock.now_ms()
        if self._stores(message):
            number = self._shared.next_number()
            batch.remember(
                StoredId(
                    number=number,
                    kind=node.kind,
                    address=node.address,
                    digest=digest,
                    at_ms=self._shared.clock.wall_ms(),
                )
            )
        self._add(digest, number, batch)

    def bring_back(self, stored: StoredId, batch: Batch) -> None:
        """Remember an id from the store, at a start, or forget it if it is too old.

        Call in the order of the ids' numbers. An id is as old as the one before it at most, so
        times of a wall clock that was set make no gap; one of the future is new.
        """
        clock = self._shared.clock
        now_ms = clock.now_ms()
        age_ms = max(i64(0), clock.wall_ms() - stored.at_ms)
        self._latest_ms = max(self._latest_ms, now_ms - age_ms)
        if 0 < self._age_ms <= now_ms - self._latest_ms:
            batch.forget(stored.number)
        else:
            self._add(stored.digest, stored.number, batch)

    def _add(self, digest: bytes, number: i64, batch: Batch) -> None:
        self._shared.come(self, batch)
        self._known.add(digest)
        self._digests.append(digest)
        self._numbers.append(int(number))
        self._times.append(int(self._latest_ms))
        if self.size() > self._max:
            self.forget_oldest(batch)

    def forget_oldest(self, batch: Batch) -> None:
        """Forget the oldest id, and remove it from the store if it is there."""
        head = self._head
        self._known.discard(self._digests[head])
        number = i64(self._numbers[head])
        if number != NOT_STORED:
            batch.forget(number)
        self._head = head + 1
        self._shared.gone(self)
        if self._head >= COMPACT_FROM and 2 * self._head >= i64(len(self._digests)):
            del self._digests[: self._head]
            del self._numbers[: self._head]
            del self._times[: self._head]
            self._head = 0

    def clear(self, batch: Batch) -> None:
        """Forget all ids: the node is being deleted."""
        while self.size() > 0:
            self.forget_oldest(batch)
