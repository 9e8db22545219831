"""Large messages: bodies are written to the store as they arrive, and read as they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.body import BodyScanner, find_body
from broker.amqp.errors import DECODE_ERROR, INTERNAL_ERROR, Fault, LinkFault
from broker.amqp.events import Intake, Supply
from broker.amqp.limits import UNSAVED_BYTES_MAX
from broker.journal import Waiter
from broker.large_body import LargeBody, LargeBodyRef
from broker.large_body_store import LargeBodyStore
from storage.contents import CHUNK_SIZE
from storage.records import StoredContent

if TYPE_CHECKING:
    from broker.links.credited_consumer import CreditedConsumer
    from broker.links.incoming import ProducerEndpoint
    from broker.links.peer import Peer

BEGINNING: Final[i64] = 1024
"""Bytes at the beginning of a body that stay in memory, and are shown to operators."""

AHEAD: Final[i64] = 2
"""Chunks that a delivery has ready or is reading, beside the one that is being sent."""


@final
class LargeIntake(Intake):
    """An incoming delivery whose body is written to the store as it arrives.

    A malformed message is read to its end, and then refused like any other message, unless it
    `may_be_opaque`: then it is kept as it is, from the first byte that cannot be parsed.
    """

    def __init__(
        self,
        producer: ProducerEndpoint,
        peer: Peer,
        contents: LargeBodyStore,
        *,
        may_be_opaque: bool,
    ) -> None:
        self._producer: Final = producer
        self._peer: Final = peer
        self._journal: Final = peer.container.journal
        hold = contents.begin()
        self._hold: LargeBodyRef | None = hold
        self._content: Final[int] = hold.content
        self._body: Final = BodyScanner()
        self._head: bytes | None = None
        self._beginning: bytes = b""
        self._pieces: Final[list[bytes]] = []
        self._gathered: i64 = 0
        self._chunks: i64 = 0
        self._size: i64 = 0
        self._received: i64 = 0
        self._unsaved: i64 = 0
        self._holds_input = False
        self._fault: LinkFault | None = None
        self._may_be_opaque: Final = may_be_opaque
        self._is_opaque = False

    def take(self, data: bytes, at: i64, end: i64) -> None:
        self._received += end - at
        if self._head is None:
            at = self._begin(data, at, end)
        if self._fault is None and not self._is_opaque:
            try:
                self._body.walk(data, at, end)
            except Fault as fault:
                self._cannot_be_read(fault)
        if self._fault is None:
            self._size += end - at
            self._gather(data, at, end)

    def _begin(self, data: bytes, at: i64, end: i64) -> i64:
        """Keep the sections before the body; return the index at which the body begins."""
        first = at
        try:
            first = find_body(data, at, end)
        except Fault as fault:
            self._cannot_be_read(fault)
        self._head = data[at:first]
        self._beginning = data[first : min(end, first + BEGINNING)]
        return first

    def _cannot_be_read(self, fault: Fault) -> None:
        """Treat the message as opaque if it may be, else refuse it: it is not made of sections."""
        if self._may_be_opaque:
            self._is_opaque = True
        else:
            self._fault = LinkFault(fault.condition, f"message: {fault.description}")
            self.abandon()

    def _gather(self, data: bytes, at: i64, end: i64) -> None:
        while at < end:
            step = min(CHUNK_SIZE - self._gathered, end - at)
            self._pieces.append(data[at : at + step])
            self._gathered += step
            at += step
            if self._gathered == CHUNK_SIZE:
                self._write()

    def _write(self) -> None:
        chunk = b"".join(self._pieces)
        self._pieces.clear()
        self._journal.batch.content_changes().write(self._content, int(self._chunks), chunk)
        self._journal.submit(_Written(self, self._gathered))
        self._chunks += 1
        self._unsaved += self._gathered
        self._gathered = 0
        if self._unsaved > UNSAVED_BYTES_MAX and not self._holds_input:
            self._holds_input = True
            self._peer.hold_input()

    def written(self, size: i64) -> None:
        """Count `size` bytes as committed; resume input at half of UNSAVED_BYTES_MAX."""
        self._unsaved -= size
        if self._holds_input and self._unsaved <= UNSAVED_BYTES_MAX >> 1:
            self._holds_input = False
            self._peer.release_input()

    def complete(self, delivery_id: i64, *, settled: bool, txn_id: bytes | None) -> None:
        if self._fault is None and not self._is_opaque and not self._body.is_whole():
            self._cannot_be_read(LinkFault(DECODE_ERROR, "it ends within a section"))
        large = self._finished()
        self.abandon()
        self._producer.delivered_large(
            delivery_id,
            self._head or b"",
            large,
            fault=self._fault,
            opaque=self._is_opaque,
            size=self._received,
            settled=settled,
            txn_id=txn_id,
        )

    def _finished(self) -> LargeBody | None:
        hold = self._hold
        if self._fault is not None or hold is None:
            return None
        if self._gathered > 0:
            self._write()
        stored = StoredContent(number=self._content, size=self._size, beginning=self._beginning)
        large = LargeBody(stored, hold, is_saved=False)
        self._journal.submit(_Saved(large))
        return large

    def abandon(self) -> None:
        self._pieces.clear()
        self._gathered = 0
        self._hold = None


@final
class _Written(Waiter):
    def __init__(self, intake: LargeIntake, size: i64) -> None:
        self._intake: Final = intake
        self._size: Final[i64] = size

    def committed(self) -> None:
        self._intake.written(self._size)


@final
class _Saved(Waiter):
    """Marks the body as saved, then drops it: the journal keeps its last waiters for a while."""

    def __init__(self, large: LargeBody) -> None:
        self._large: LargeBody | None = large

    def committed(self) -> None:
        large = self._large
        self._large = None
        if large is not None:
            large.saved()


@final
class LargeSupply(Supply):
    """An outgoing delivery whose body is read from the store, a few chunks ahead of its link."""

    def __init__(self, feed: CreditedConsumer, large: LargeBody, contents: LargeBodyStore) -> None:
        self._feed: CreditedConsumer | None = feed
        self._large: Final = large
        self._contents: Final = contents
        self._count: Final[i64] = (i64(large.size) + CHUNK_SIZE - 1) // CHUNK_SIZE
        self._asked: i64 = 0
        self._is_reading = False
        self._ready: Final[list[bytes]] = []

    def begin(self) -> None:
        """Read the first chunks as soon as the body is saved."""
        self._large.call_when_saved(self.ask)

    def take(self) -> bytes | None:
        if not self._ready:
            return None
        chunk = self._ready.pop(0)
        self.ask()
        return chunk

    def ask(self) -> None:
        """Read one more chunk if fewer than AHEAD are ready."""
        if self._feed is None or self._is_reading or self._asked == self._count:
            return
        if i64(len(self._ready)) < AHEAD:
            self._is_reading = True
            content = int(self._large.stored.number)
            self._contents.read(
                content, int(self._asked), arrived=self.arrived, damaged=self.damaged
            )
            self._asked += 1

    def arrived(self, chunk: bytes) -> None:
        """Take a chunk from the store, and let the link send it."""
        self._is_reading = False
        feed = self._feed
        if feed is not None:
            self._ready.append(chunk)
            self.ask()
            feed.supplied()

    def damaged(self, reason: str) -> None:
        """Break the delivery off: a chunk cannot be read, so no consumer may have the message."""
        feed = self._feed
        if feed is not None:
            feed.broken_off(LinkFault(INTERNAL_ERROR, reason))

    def close(self) -> None:
        self._feed = None
        self._ready.clear()
