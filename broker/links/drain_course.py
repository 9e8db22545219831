"""The phases of a drain, by time: an announcement, the end of what was begun, and the end.

Pure: it is told the time and whether clients have unfinished work, and returns the phase.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from mypy_extensions import i64

STILL_MS: Final[i64] = 100
"""Time without unfinished work after which a drain is over: messages that clients sent before they
lost their credit may be under way."""

NEVER: Final[i64] = -1


class DrainPhase(Enum):
    """The state of a broker with respect to its drain."""

    SERVING = "serving"
    ANNOUNCED = "announced"
    FINISHING = "finishing"
    OVER = "over"


@final
class DrainCourse:
    """The course of one drain. `phase` changes by `begin` and `look` alone, by one at a time.

    `is_complete` is true once the drain is over and no client had unfinished work.
    """

    def __init__(self) -> None:
        self.phase = DrainPhase.SERVING
        self.is_complete = False
        self._announced_ms: i64 = NEVER
        self._finish_from_ms: i64 = NEVER
        self._finish_for_ms: i64 = 0
        self._ends_ms: i64 = NEVER
        self._still_since_ms: i64 = NEVER

    def begin(
        self, now_ms: i64, *, announce_ms: i64, finish_ms: i64, announce_only: bool = False
    ) -> None:
        """Announce the drain, or go on with one that was only announced.

        `announce_ms` after the announcement, clients get up to `finish_ms` to finish their work. A
        drain that goes on already keeps its times.
        """
        if self.phase is DrainPhase.SERVING:
            self.phase = DrainPhase.ANNOUNCED
            self._announced_ms = now_ms
        if not announce_only and self._finish_from_ms == NEVER:
            self._finish_from_ms = self._announced_ms + announce_ms
            self._finish_for_ms = finish_ms

    def look(self, now_ms: i64, *, is_busy: bool) -> DrainPhase:
        """Enter the next phase if it is time for it, and return the phase.

        `is_busy`: a client has unfinished work. It counts in the phase FINISHING alone.
        """
        if self.phase is DrainPhase.ANNOUNCED:
            if self._finish_from_ms != NEVER and now_ms >= self._finish_from_ms:
                self.phase = DrainPhase.FINISHING
                self._ends_ms = now_ms + self._finish_for_ms
        elif self.phase is DrainPhase.FINISHING:
            if is_busy:
                self._still_since_ms = NEVER
            elif self._still_since_ms == NEVER:
                self._still_since_ms = now_ms
            is_still = self._still_since_ms != NEVER and now_ms - self._still_since_ms >= STILL_MS
            if is_still or now_ms >= self._ends_ms:
                self.phase = DrainPhase.OVER
                self.is_complete = not is_busy
        return self.phase

    def next_look_ms(self, now_ms: i64, pause_ms: i64) -> i64:
        """Return when `look` has to be called next; NEVER if it need not be.

        While clients finish their work, that is after `pause_ms`.
        """
        if self.phase is DrainPhase.ANNOUNCED:
            return self._finish_from_ms
        if self.phase is DrainPhase.FINISHING:
            return min(now_ms + pause_ms, max(now_ms, self._ends_ms))
        return NEVER
