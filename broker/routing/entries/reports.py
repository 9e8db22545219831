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
class RepeatedLine:
    """A line that has been written, and its repeats since then."""

    def __init__(self, event: LogEvent) -> None:
        self.event: Final = event
        self.repeats: i64 = 0


@final
class Reports(TimerCallback):
    """Writes lines for the operator, each at once and then at most every REPORT_EVERY_MS."""

    def __init__(self, context: RoutingContext) -> None:
        self._context: Final = context
        self._lines: dict[str, RepeatedLine] = {}
        self._others: i64 = 0

    def tell(self, event: LogEvent, line: str) -> None:
        """Write `line`, of the kind `event`, or count it if it has been written lately.

        That is, less than REPORT_EVERY_MS ago.
        """
        known = self._lines.get(line)
        if known is not None:
            known.repeats += 1
        elif len(self._lines) == REPORTS_MAX:
            self._others += 1
        else:
            if not self._lines:
                self._arm()
            self._lines[line] = RepeatedLine(event)
            self._context.notices.append(event.notice(line))

    def _arm(self) -> None:
        self._context.call_after(REPORT_EVERY_MS, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002
        """Write the sums of the last REPORT_EVERY_MS."""
        lines = self._lines
        self._lines = {}
        seconds = REPORT_EVERY_MS // 1000
        notices = self._context.notices
        for line, known in lines.items():
            if known.repeats > 0:
                text = f"{line} ({known.repeats} more times in {seconds} s)"
                notices.append(known.event.notice(text))
                known.repeats = 0
                self._lines[line] = known
        if self._others > 0:
            notices.append(
                REPORTS_LEFT_OUT.notice(
                    f"{self._others} more messages were discarded, held back, not selected or moved"
                    f" over a limit in {seconds} s, of more queues than the log has lines for"
                )
            )
            self._others = 0
        if self._lines:
            self._arm()
