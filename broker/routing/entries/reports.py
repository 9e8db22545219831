"""Log lines about single messages, which may be many: each line at once, its repeats as sums."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.context import RoutingContext
from broker.routing.timer_queue import TimerCallback

REPORT_EVERY_MS: Final[i64] = 10_000
"""Interval, in ms, over which equal lines are added up."""

REPORTS_MAX: Final = 100
"""Maximum different lines in that interval; of the others only the number is logged."""


@final
class Reports(TimerCallback):
    """Writes lines for the operator, each at once and then at most every REPORT_EVERY_MS."""

    def __init__(self, context: RoutingContext) -> None:
        self._context: Final = context
        # repeats of each line since it was last written
        self._repeats: dict[str, int] = {}
        self._others: i64 = 0

    def tell(self, line: str) -> None:
        """Write `line`, or count it if it was written less than REPORT_EVERY_MS ago."""
        repeats = self._repeats
        if line in repeats:
            repeats[line] += 1
        elif len(repeats) == REPORTS_MAX:
            self._others += 1
        else:
            if not repeats:
                self._arm()
            repeats[line] = 0
            self._context.notices.append(line)

    def _arm(self) -> None:
        self._context.call_after(REPORT_EVERY_MS, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002
        """Write the sums of the last REPORT_EVERY_MS."""
        repeats = self._repeats
        self._repeats = {}
        seconds = REPORT_EVERY_MS // 1000
        notices = self._context.notices
        for line, count in repeats.items():
            if count > 0:
                notices.append(f"{line} ({count} more times in {seconds} s)")
                self._repeats[line] = 0
        if self._others > 0:
            notices.append(
                f"{self._others} more messages were discarded, held back or moved over a limit in"
                f" {seconds} s, of more queues than the log has lines for"
            )
            self._others = 0
        if self._repeats:
            self._arm()
