"""A delivery that is arriving, of which not all frames are there (core 2.6.14)."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

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
