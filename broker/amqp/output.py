"""What waits to be written: a writer for frames, references to large payloads, when to stop."""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from broker.amqp.composite import Performative
from broker.amqp.errors import FRAME_SIZE_TOO_SMALL, ConnectionFault
from broker.amqp.events import ConnectionOwner
from broker.amqp.frames import put_frame
from broker.amqp.limits import FRAME_SIZE_MIN
from broker.amqp.unsettled import UnsettledDeliveries

OUTPUT_FULL: Final[i64] = 1024 * 1024
"""So much output waits at most before deliveries stop (`reliability.md` R4)."""

WRITER_KEPT: Final[i64] = 128 * 1024
"""A writer that grew beyond this is given back once it is empty."""


@final
class Output:
    """The output of one connection, in order. `frame_size_max` is what the peer takes (2.7.1)."""

    def __init__(self, owner: ConnectionOwner) -> None:
        self.frame_size_max: i64 = FRAME_SIZE_MIN
        self._owner: Final = owner
        self._writer = BytesWriter()
        self._chunks: list[bytes] = []
        self._chunk_bytes: i64 = 0
        self._touched = False
        self._full = False
        self._blocked = False
        self._noted: list[UnsettledDeliveries] = []

    # -- in

    def may_write(self) -> bool:
        """Whether deliveries may go out; where not, `has_room_again` tells once they may."""
        if self._blocked or self._chunk_bytes + i64(len(self._writer)) >= OUTPUT_FULL:
            self._full = True
            return False
        return True

    def writer(self) -> BytesWriter:
        """Where the next frame goes."""
        if not self._touched:
            self.touch()
        return self._writer

    def touch(self) -> None:
        """Have `take` called, though nothing may have been written yet."""
        if not self._touched:
            self._touched = True
            self._owner.output_ready()

    def put(self, channel: i64, performative: Performative) -> None:
        """Write a control frame; ConnectionFault where it is more than the peer takes."""
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
        """Return how many bytes have not been handed to the socket yet."""
        return self._chunk_bytes + i64(len(self._writer))

    def note(self, unsettled: UnsettledDeliveries) -> None:
        """Have `take` tell `unsettled` when the deliveries were sent that are put there now."""
        unsettled.is_noted = True
        self._noted.append(unsettled)

    # -- out

    def take(self, now_ms: i64) -> list[bytes]:
        """Give everything up, in order, to be sent at `now_ms`."""
        self._touched = False
        if self._noted:
            for unsettled in self._noted:
                unsettled.note_sent(now_ms)
            self._noted = []
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
        """The socket takes no more for now."""
        self._blocked = True

    def unblock(self) -> None:
        """The socket takes output again."""
        self._blocked = False

    def has_room_again(self) -> bool:
        """Whether somebody was held up and may go on now; asked once."""
        if self._blocked or not self._full:
            return False
        self._full = False
        return True
