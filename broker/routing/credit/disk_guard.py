"""Holds producers back while the disk is nearly full (P9), or the store is away.

Consumers continue, and so make room.

The reserve is for the commits of consumers, and for messages that producers may still send with
the credit that they have. The disk is checked every second, and whenever producers have sent a
sixteenth of the reserve. If another program fills the disk faster than that, the store finds it
full: consumers then continue with the room of the store's ballast.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.log_events import DISK_AGAIN, DISK_FULL, DISK_SHORT, STORE_AGAIN, STORE_AWAY
from broker.routing.context import RoutingContext
from broker.routing.credit.blocked_producers import BlockedProducers
from broker.routing.timer_queue import TimerCallback

LOOK_EVERY_MS: Final[i64] = 1000
"""Interval in ms between two checks. Producers are resumed within this time, or twice this time,
after there is room again."""

LOOKS_PER_RESERVE: Final[i64] = 16

SLACK_MAX: Final[i64] = 64 * 1024 * 1024
"""Bytes, or a quarter of the reserve if that is less, that must be free beyond the reserve before
producers are resumed."""

MEBIBYTE: Final[i64] = 1024 * 1024


@mypyc_attr(allow_interpreted_subclasses=True)
class Space:
    """The state of the disk or server that the store writes to."""

    @abstractmethod
    def is_away(self) -> bool:
        """Return whether nothing can be written for now, however much room there may be."""

    @abstractmethod
    def is_full(self) -> bool:
        """Return whether the disk has run full: commits of consumers need all room that is left."""

    @abstractmethod
    def free_bytes(self) -> i64:
        """Return how many more bytes can be written, -1 if unknown. Takes microseconds."""


def is_short(free: i64, *, least: i64, short_now: bool) -> bool:
    """Return whether producers must wait, with `free` bytes free and `least` bytes in reserve.

    They need not if `free` is -1, unknown. If they wait already (`short_now`), `slack_of(least)`
    more bytes must be free to resume them.
    """
    if free < 0:
        return False
    return free < (least + slack_of(least) if short_now else least)


def slack_of(least: i64) -> i64:
    """Return how many bytes beyond the reserve `least` must be free to end a shortage."""
    return min(least // 4, SLACK_MAX)


@final
class DiskGuard(TimerCallback):
    """Holds producers back while the store has too little room, is full or is away.

    `is_short` while producers must wait, `waiting` has those that do. `least` is the reserve in
    bytes.
    """

    def __init__(self, context: RoutingContext, space: Space, least: i64) -> None:
        self.is_short = False
        self._is_full = False
        self._context: Final = context
        self._space: Final = space
        self._least: Final[i64] = least
        self._look_at_bytes: i64 = 0
        self.waiting: Final = BlockedProducers()

    def begin(self) -> None:
        """Check now, and every second from now on."""
        self.due(self._context.clock.now_ms())

    def due(self, now_ms: i64) -> None:
        """Check, and set the timer for the next second."""
        self.look()
        self._context.timer_queue.at(now_ms + LOOK_EVERY_MS, self)

    def published(self, total: i64) -> None:
        """Check if producers have sent a sixteenth of the reserve since the last check.

        `total` are the bytes that they have sent since the start.
        """
        if total >= self._look_at_bytes and not self.is_short:
            self.look()

    def look(self) -> None:
        """Check whether producers must wait from now on, or may continue. Report each change."""
        self._look_at_bytes = self._context.stats.published_bytes + self._least // LOOKS_PER_RESERVE
        is_away, free = self._space.is_away(), self._space.free_bytes()
        self._tell_full(is_full=self._space.is_full())
        short = is_away or self._is_full
        short = short or is_short(free, least=self._least, short_now=self.is_short)
        if short == self.is_short:
            return
        self.is_short = short
        if short and not self._is_full:
            self._context.notices.append(
                STORE_AWAY.notice("the store is away: producers wait until it is back")
                if is_away
                else DISK_SHORT.notice(self._shortage(free))
            )
        elif not short:
            self._context.notices.append(
                STORE_AGAIN.notice("the store takes messages again: producers go on")
            )
            self.waiting.resume()

    def _tell_full(self, *, is_full: bool) -> None:
        """Count and report a disk that has run full; report also that it has room again."""
        if is_full == self._is_full:
            return
        self._is_full = is_full
        if is_full:
            self._context.stats.disk_full += 1
            self._context.notices.append(
                DISK_FULL.notice(
                    "the disk of the store is full: producers wait, consumers go on with the room"
                    " of disk_ballast, which is taken back once there is room; make room on that"
                    " disk"
                )
            )
        else:
            self._context.notices.append(
                DISK_AGAIN.notice("the disk of the store has room again for disk_ballast")
            )

    def _shortage(self, free: i64) -> str:
        """Count a shortage of room, and return its report for the operator."""
        self._context.stats.disk_shortages += 1
        enough = (self._least + slack_of(self._least)) // MEBIBYTE
        return (
            f"the disk of the store has room for {free // MEBIBYTE} MiB: producers wait until"
            f" there is room for {enough} MiB, consumers go on"
        )
