"""A delivery that is arriving, of which not all frames are there (core 2.6.14)."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.body import ENOUGH
from broker.amqp.events import Intake


@final
class Partial:
    """A delivery of which not all frames have arrived.

    `held` is the number of bytes in `pieces`; those of a large one were passed to its `intake`.
    `size` is the number of payload bytes that have arrived.
    """

    def __init__(
        self,
        delivery_id: i64,
        *,
        settles_second: bool,
        resumed: bool,
        txn_id: bytes | None = None,
    ) -> None:
        self.delivery_id: Final[i64] = delivery_id
        self.settles_second: Final = settles_second
        self.resumed: Final = resumed
        self.txn_id: Final = txn_id
        self.pieces: Final[list[bytes]] = []
        self.held: i64 = 0
        self.intake: Intake | None = None
        self.stays_in_memory = False
        self.size: i64 = 0
        self.transfers: i64 = 0
        self.settled = False

    def count(self, size: i64, *, settled: bool) -> None:
        """Count one more frame with `size` bytes of payload.

        A delivery is settled if any of its frames is (2.7.5).
        """
        self.size += size
        self.transfers += 1
        self.settled = self.settled or settled

    def stream_to(self, intake: Intake) -> None:
        """Pass the pieces, ENOUGH bytes or more, to `intake`; each is freed when it is taken.

        The first part that is passed is ENOUGH to find the body. A piece may be a single byte.
        """
        self.intake = intake
        self.held = 0
        pieces = self.pieces
        size: i64 = 0
        at: i64 = 0
        while size < ENOUGH:
            size += i64(len(pieces[at]))
            at += 1
        first = b"".join(pieces[:at])
        del pieces[:at]
        intake.take(first, 0, size)
        first = b""
        at = 0
        while at < i64(len(pieces)):
            piece = pieces[at]
            pieces[at] = b""
            intake.take(piece, 0, i64(len(piece)))
            at += 1
        pieces.clear()
