"""Steps of several attacks: send as much as credit allows, and consume a whole queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from tests.attacks.peer import LOOK_S, Peer, Transfers, connect
from tests.attacks.plan import Deadline, Reached, Site

BATCH_BYTES: Final = 256 * 1024
"""Maximum bytes per write, so that one sender does not starve the others of this process."""

STUCK_S: Final = 3.0
"""Seconds without credit after which a sender counts as waiting, and not just as paced."""

DRAIN_S: Final = 60.0
DRAINED_AT_ONCE: Final = 10_000
"""Far below the unsettled deliveries that a link may have, so that a drain always completes."""


class Flood:
    """A sender that uses all credit until it is stopped, or the broker lets it wait."""

    def __init__(self, peer: Peer, transfers: Transfers, *, handle: int = 0) -> None:
        self._peer: Final = peer
        self._transfers: Final = transfers
        self._handle: Final = handle
        self.waited = False
        """True once the broker has given no credit for `STUCK_S`."""

    @property
    def sent(self) -> int:
        return self._peer.sent.get(self._handle, 0)

    async def run(
        self, deadline: Deadline, *, most: int = 2**62, through: Callable[[], bool] | None = None
    ) -> None:
        """Send until the deadline, `most` messages, a wait for credit, or until `through` is true.

        Raise Gone if the broker ends the connection.
        """
        peer = self._peer
        batch = max(1, BATCH_BYTES // self._transfers.size)
        patience = Deadline(STUCK_S)
        while self.sent < most and not deadline.is_over() and not (through and through()):
            count = min(peer.credit(self._handle), batch, most - self.sent)
            if count > 0:
                self._transfers.send(peer, count)
                await peer.room(deadline)
                patience = Deadline(STUCK_S)
            elif patience.is_over():
                self.waited = True
                return
            else:
                await peer.until_changed()


async def drained(site: Site, reached: Reached, address: str) -> int:
    """Consume and accept the ready messages at `address`; return their number."""
    peer = await connect(site.port, reached.hear, container_id="drain", settles=True)
    await peer.receiver(address, credit=0)
    deadline = Deadline(DRAIN_S)
    before = -1
    while peer.deliveries > before:
        before = peer.deliveries
        if not await peer.drain(DRAINED_AT_ONCE, deadline):
            reached.problems.append(f"{address} was not drained within {DRAIN_S:.0f} s")
            break
    await peer.close()
    return peer.deliveries


async def linger(deadline: Deadline, over: Callable[[], bool]) -> None:
    """Wait until the deadline, or until `over` returns true."""
    while not deadline.is_over() and not over():  # noqa: ASYNC110 - there is no event to await
        await asyncio.sleep(LOOK_S)
