"""The send times of a session's deliveries, without a timestamp in each of them."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

GRAIN_MS: Final[i64] = 100
"""Deliveries that were sent within this many ms share a mark."""

MARKS_MAX: Final = 64
"""Maximum marks; beyond it every second one is deleted, so that old times are less exact."""


@final
class SendTimes:
    """Marks of delivery numbers and send times, in ms on the steady clock, in ascending order.

    All deliveries below number `following` have been sent.
    """

    def __init__(self) -> None:
        self.following: i64 = 0
        self._numbers: list[int] = []
        self._times_ms: list[int] = []
        self._marked_ms: i64 = -GRAIN_MS

    def wants_mark(self, now_ms: i64) -> bool:
        """Return whether deliveries that are sent at `now_ms` need a mark of their own."""
        return now_ms - self._marked_ms >= GRAIN_MS

    def mark(self, now_ms: i64, *, oldest: i64) -> None:
        """Record that deliveries from number `following` on are sent at `now_ms`.

        Numbers below `oldest` will not be asked for.
        """
        self._marked_ms = now_ms
        self._numbers.append(int(self.following))
        self._times_ms.append(int(now_ms))
        self._forget_below(oldest)

    def _forget_below(self, oldest: i64) -> None:
        first = self._mark_of(oldest)
        if first > 0:
            self._numbers = self._numbers[first:]
            self._times_ms = self._times_ms[first:]
        if len(self._numbers) > MARKS_MAX:
            self._numbers = self._numbers[::2]
            self._times_ms = self._times_ms[::2]

    def sent_ms(self, number: i64) -> i64:
        """Return when the delivery was sent: 0 if unknown, at most GRAIN_MS too early if recent."""
        return i64(self._times_ms[self._mark_of(number)]) if self._times_ms else 0

    def _mark_of(self, number: i64) -> int:
        """Return the index of the last mark at or below `number`, 0 if there is none."""
        low = 0
        high = len(self._numbers)
        while low < high:
            middle = (low + high) // 2
            if i64(self._numbers[middle]) <= number:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)
