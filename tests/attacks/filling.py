"""An attack on the disk: another program fills it while producers send."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from tests.attacks.flooding import Flood, drained, linger
from tests.attacks.peer import Peer, Transfers, connect
from tests.attacks.plan import MEBIBYTE, Deadline, Reached, Site
from tests.support.frames import message

DISK_MIB: Final = 192
RESERVE_MIB: Final = 32
BALLAST_MIB: Final = 16
PRODUCERS: Final = 2
STORED: Final = bytes(16 * 1024)
BEFORE: Final = 500
"""Messages that are accepted before the disk is full."""

RESUMED: Final = 100
RESUME_S: Final = 10.0
"""Maximum seconds until producers continue after the disk has room again."""

FOREIGN: Final = "foreign"
LEFT: Final = 4 * MEBIBYTE
STEP: Final = 256 * 1024


async def full_disk(site: Site) -> Reached:
    """Fill the disk while producers send, consume all messages, make room, and send again."""
    reached = Reached()
    foreign = Path(site.disk) / FOREIGN
    producers = [
        await connect(site.port, reached.hear, container_id=f"producer-{number}")
        for number in range(PRODUCERS)
    ]
    for producer in producers:
        await producer.sender("stored")
    transfers = Transfers(message(STORED, durable=True))
    floods = [Flood(producer, transfers) for producer in producers]
    sending = asyncio.gather(
        *(flood.run(site.deadline()) for flood in floods), return_exceptions=True
    )
    await linger(site.deadline(), lambda: _accepted(producers) >= BEFORE)
    taken_bytes = _take_all(foreign)
    try:
        await sending
        await linger(Deadline(RESUME_S), lambda: _open(producers) == 0)
        accepted = _accepted(producers)
        reached.figures = {
            "messages of 16 KiB accepted": accepted,
            "MiB taken by another program": taken_bytes / MEBIBYTE,
            "producers made to wait": sum(flood.waited for flood in floods),
        }
        taken = await drained(site, reached, "stored")
        reached.figures["consumed while the disk was full"] = taken
    finally:
        foreign.unlink()
    in_doubt = _open(producers)
    reached.check(
        accepted <= taken <= accepted + in_doubt,
        f"{accepted} messages were accepted and {in_doubt} unanswered, {taken} were there",
    )
    await _resume(site, reached, producers[0], floods[0])
    return reached


async def _resume(site: Site, reached: Reached, producer: Peer, flood: Flood) -> None:
    """Send RESUMED more messages on the existing connection."""
    before = producer.accepted
    deadline = Deadline(RESUME_S)
    most = flood.sent + RESUMED
    while flood.sent < most and not deadline.is_over():
        await flood.run(deadline, most=most)
    await linger(deadline, lambda: producer.accepted >= before + RESUMED)
    reached.figures["accepted when there was room again"] = producer.accepted - before
    reached.check(
        producer.accepted >= before + RESUMED, f"producers did not go on within {RESUME_S:.0f} s"
    )
    await drained(site, reached, "stored")


def _accepted(producers: list[Peer]) -> int:
    return sum(producer.accepted for producer in producers)


def _open(producers: list[Peer]) -> int:
    """Return the number of messages without an outcome."""
    return sum(peer.sent.get(0, 0) - peer.accepted - peer.rejected for peer in producers)


def _take_all(path: Path) -> int:
    """Allocate all free disk space but `LEFT` bytes to one file; return its size in bytes.

    The producers use `LEFT` up in no time. Without it the broker might run out of disk during the
    allocation and give up its ballast, which would then be allocated, too.
    """
    with path.open("wb") as file:
        found = os.statvfs(path)
        size = found.f_bavail * found.f_frsize - LEFT
        while size > 0:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError:  # the broker has used some of it meanwhile
                size -= STEP
            else:
                return size
    return 0
