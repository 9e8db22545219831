"""Log lines about single messages, which may be many: each line at once, its repeats as sums."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.log_events import REPORTS_LEFT_OUT, LogEvent
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
        self._events: dict[str, LogEvent] = {}
        self._others: i64 = 0

    def tell(self, event: LogEvent, line: str) -> None:
        """Write `line`, of the kind `event`, or count it if it has been written lately.

        That is, less than REPORT_EVERY_MS ago.
        """
        repeats = self._repeats
        if line in repeats:
            repeats[line] += 1
        elif len(repeats) == REPORTS_MAX:
            self._others += 1
        else:
            if not repeats:
                self._arm()
            repeats[line] = 0
            self._events[line] = event
            self._context.notices.append(event.notice(line))

    def _arm(self) -> None:
        self._context.call_after(REPORT_EVERY_MS, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002
        """Write the sums of the last REPORT_EVERY_MS."""
        repeats, events = self._repeats, self._events
        self._repeats, self._events = {}, {}
        seconds = REPORT_EVERY_MS // 1000
        notices = self._context.notices
        for line, count in repeats.items():
            if count > 0:
                event = self._events[line] = events[line]
                notices.append(event.notice(f"{line} ({count} more times in {seconds} s)"))
                self._repeats[line] = 0
        if self._others > 0:
            notices.append(
                REPORTS_LEFT_OUT.notice(
                    f"{self._others} more messages were discarded, held back or moved over a limit"
                    f" in {seconds} s, of more queues than the log has lines for"
                )
            )
            self._others = 0
        if self._repeats:
            self._arm()
