"""Output that is not written yet: a writer for frames, references to large payloads, a limit."""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from broker.amqp.composite import Performative
from broker.amqp.errors import FRAME_SIZE_TOO_SMALL, ConnectionFault
from broker.amqp.events import ENDED, ConnectionOwner
from broker.amqp.frames import put_frame
from broker.amqp.limits import FRAME_SIZE_MIN
from broker.amqp.unsettled import UnsettledDeliveries

OUTPUT_FULL: Final[i64] = 1024 * 1024
"""Maximum bytes of unwritten output before deliveries stop (`docs/design/hostile-input.md` R4)."""

WRITER_KEPT: Final[i64] = 128 * 1024
"""A writer that grew beyond this many bytes is replaced once it is empty."""


@final
class Output:
    """The output of one connection, in order.

    `frame_size_max` is the largest frame that the peer takes, in bytes (2.7.1).
    """

    def __init__(self, owner: ConnectionOwner) -> None:
        self.frame_size_max: i64 = FRAME_SIZE_MIN
        self._owner: ConnectionOwner = owner
        self._writer = BytesWriter()
        self._chunks: list[bytes] = []
        self._chunk_bytes: i64 = 0
        self._touched = False
        self._full = False
        self._blocked = False
        self._noted: UnsettledDeliveries | None = None

    # -- in

    def request_room(self) -> bool:
        """Request room for deliveries; return whether they may be sent.

        If not, `resume` returns True once they may.
        """
        if self._blocked or self._chunk_bytes + i64(len(self._writer)) >= OUTPUT_FULL:
            self._full = True
            return False
        return True

    def writer(self) -> BytesWriter:
        """Return the writer for the next frame."""
        if not self._touched:
            self.touch()
        return self._writer

    def touch(self) -> None:
        """Have the owner call `take`, even if nothing has been written yet."""
        if not self._touched:
            self._touched = True
            self._owner.output_ready()

    def end(self) -> None:
        """Have the owner call `take` for the last time, and know it no more."""
        self.touch()
        self._owner = ENDED

    def put(self, channel: i64, performative: Performative) -> None:
        """Write a control frame. Raise ConnectionFault if it is larger than the peer takes."""
        out = self.writer()
        start = i64(len(out))
        put_frame(out, channel, performative)
        size = i64(len(out)) - start
        if size > self.frame_size_max:
            out.truncate(int(start))
            raise ConnectionFault(FRAME_SIZE_TOO_SMALL, f"an answer takes {size} bytes in a frame")

    def put_reference(self, payload: bytes) -> None:
        """Write `payload` next, without copying it."""
        head = self._writer.getvalue()
        self._writer.truncate(0)
        self._chunks.append(head)
        self._chunks.append(payload)
        self._chunk_bytes += i64(len(head) + len(payload))

    def pending(self) -> i64:
        """Return the number of bytes that have not been handed to the socket yet."""
        return self._chunk_bytes + i64(len(self._writer))

    def note(self, unsettled: UnsettledDeliveries) -> None:
        """Have `take` record in `unsettled` when its latest deliveries were sent."""
        unsettled.is_noted = True
        unsettled.noted_before = self._noted
        self._noted = unsettled

    # -- out

    def take(self, now_ms: i64) -> list[bytes]:
        """Remove and return all output, in order, to be sent at `now_ms`."""
        self._touched = False
        noted = self._noted
        if noted is not None:
            self._noted = None
            while noted is not None:
                noted = noted.note_sent(now_ms)
        last = self._writer.getvalue()
        if i64(len(last)) > WRITER_KEPT:
            self._writer = BytesWriter()
        else:
            self._writer.truncate(0)
        if not self._chunks:
            return [last]
        chunks = self._chunks
        self._chunks = []
        self._chunk_bytes = 0
        chunks.append(last)
        return chunks

    def block(self) -> None:
        """Stop deliveries: the socket takes no more for now."""
        self._blocked = True

    def unblock(self) -> None:
        """Note that the socket takes output again."""
        self._blocked = False

    def resume(self) -> bool:
        """Let deliveries continue if they were stopped and there is room; return whether so."""
        if self._blocked or not self._full:
            return False
        self._full = False
        return True
