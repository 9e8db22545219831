"""Duplicate detection: who sends a message again, for its outcome was lost, makes no second one.

A node remembers the ids of the latest messages that were sent to it, as digests: of the
application property `_AMQ_DUPL_ID` where there is one, else of the message-id. A repeat is
accepted like the first, once that is durable, and goes nowhere. What the broker itself moves
is no repeat of anything.
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
"""The application property by which a sender may say what a repeat is; Artemis calls it so."""

DIGEST_BYTES: Final = 16
"""What is kept of an id, however long it is: two are taken for one once in 10^38."""

BYTES_PER_ID: Final = 200
"""What one remembered id takes in memory at most; a test weighs it."""

IDS_MAX: Final[i64] = 1_000_000
"""Ids that all nodes together remember, for names of nodes come from peers: 200 MB at most.

Beyond it nodes forget in turn.
"""

COMPACT_FROM: Final[i64] = 1024
"""So many forgotten places in front of a window are no reason yet to move the rest of it."""

NOT_STORED: Final[i64] = 0


def digest_of(message: Message) -> bytes | None:
    """What a repeat of `message` is known by; None where it has no id that could tell."""
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
    """A string, binary, uuid or whole number, each its own kind; None for all else."""
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
    """The windows of one broker: what they may remember together, and how ids are numbered.

    At the limit the windows that have something forget their oldest id, one after the other.
    """

    def __init__(self, clock: Clock, stats: Stats, ids_max: i64 = IDS_MAX) -> None:
        self.clock: Final = clock
        self.stats: Final = stats
        self.ids: i64 = 0
        self._ids_max: Final[i64] = ids_max
        self._last_number: i64 = 0
        self._filled: Final[OrderedDict[DuplicateWindow, None]] = OrderedDict()

    def next_number(self) -> i64:
        """What names one more id to the store."""
        self._last_number += 1
        return self._last_number

    def has_been_given(self, number: i64) -> None:
        """The store has an id of that number."""
        self._last_number = max(self._last_number, number)

    def come(self, window: DuplicateWindow, batch: Batch) -> None:
        """`window` is about to remember one more."""
        if self.ids >= self._ids_max:
            first = next(iter(self._filled))
            first.forget_oldest(batch)
            if first.size() > 0:
                self._filled.move_to_end(first)
        if window.size() == 0:
            self._filled[window] = None
        self.ids += 1

    def gone(self, window: DuplicateWindow) -> None:
        """`window` has forgotten one."""
        self.ids -= 1
        if window.size() == 0:
            del self._filled[window]


@final
class DuplicateWindow:
    """What one node remembers: the latest ids, not more and not older than its policy says.

    Ids are stored with their messages: those of messages that are not, are not either,
    for what a crash takes may be sent again.
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
        self._latest_ms: i64 = 0

    def size(self) -> i64:
        """How many ids are remembered."""
        return i64(len(self._digests)) - self._head

    def put(self, message: Message, batch: Batch) -> None:
        """Let the node have `message`, unless it is a repeat; raises as `Node.put` does."""
        digest = digest_of(message)
        if digest is None:
            self._node.put(message, batch)
        elif not self._is_repeat(digest, batch):
            scope = batch.scope
            if self._stores(message):
                # whoever consumed it before its id is durable would get the repeat as well
                batch.scope = DISCHARGE
            try:
                self._node.put(message, batch)
            finally:
                batch.scope = scope
            self._remember(digest, message, batch)

    def publish(self, message: Message, batch: Batch) -> None:
        """The same where there is room for it: at the commit of a transaction."""
        digest = digest_of(message)
        if digest is None:
            self._node.publish(message, batch)
        elif not self._is_repeat(digest, batch):
            self._node.publish(message, batch)
            self._remember(digest, message, batch)

    def _stores(self, message: Message) -> bool:
        """Whether the id of `message` outlives the broker, as the message does."""
        node = self._node
        return node.may_store and (message.durable or node.stores_all)

    def knows(self, message: Message) -> bool:
        """Whether `message` would go nowhere, so that it needs no room."""
        digest = digest_of(message)
        return digest is not None and digest in self._known

    def _is_repeat(self, digest: bytes, batch: Batch) -> bool:
        if self._age_ms > 0:
            oldest = self._shared.clock.wall_ms() - self._age_ms
            while self.size() > 0 and self._times[self._head] <= oldest:
                self.forget_oldest(batch)
        if digest not in self._known:
            return False
        self.repeats += 1
        self._shared.stats.duplicates += 1
        return True

    def _remember(self, digest: bytes, message: Message, batch: Batch) -> None:
        node = self._node
        number = NOT_STORED
        # in order, though the clock on the wall be put back
        self._latest_ms = max(self._latest_ms, self._shared.clock.wall_ms())
        if self._stores(message):
            number = self._shared.next_number()
            batch.remember(
                StoredId(
                    number=number,
                    kind=node.kind,
                    address=node.address,
                    digest=digest,
                    at_ms=self._latest_ms,
                )
            )
        self._add(digest, number, batch)

    def bring_back(self, stored: StoredId, batch: Batch) -> None:
        """An id that the store kept; they come in the order of their numbers."""
        self._latest_ms = max(self._latest_ms, stored.at_ms)
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
        """Take out what came first."""
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
        """The node is going, and with it all that it remembered."""
        while self.size() > 0:
            self.forget_oldest(batch)
