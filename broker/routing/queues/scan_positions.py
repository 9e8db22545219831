"""Going past what waits but may not go to this consumer, without looking at it twice."""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer
from broker.routing.queues.backlog import Backlog

LOOK_AHEAD: Final[i64] = 16
"""Entries looked at together where a consumer may not have the first one: mostly it may."""


@final
class ScanPositions:
    """How far the consumers of one queue have gone past what they may not have.

    That is in `Consumer.passed`; `any` tells whether one of them has some.
    """

    def __init__(self) -> None:
        self.any = False

    def first_for(
        self, consumer: Consumer, backlog: Backlog, priority: i64, *, now_ms: i64
    ) -> QueueEntry | None:
        """The first entry that may go to `consumer`, past those that may not.

        These are not looked at again (`look_again` and `start_anew` say when they
        are): a consumer that refuses most of a queue would otherwise cost the
        square of it. Nor is the gap in front of what it gets: what comes back there is told to
        `look_again`.
        """
        passed = consumer.passed
        if passed is None:
            passed = consumer.passed = [-1] * 10
            self.any = True
        at_most: i64 = 1
        while True:
            found = backlog.after(passed[priority], at_most)
            if not found:
                return None
            for entry in found:
                group = entry.group
                if group is not None and not group.may_go(entry, consumer.number):
                    group.pass_over(entry)
                elif entry.may_go_to(consumer.number, now_ms):
                    passed[priority] = int(entry.position) - 1
                    return entry
                passed[priority] = int(entry.position)
            at_most = LOOK_AHEAD

    def look_again(self, entry: QueueEntry, consumers: list[Consumer], now_ms: i64) -> None:
        """`entry` is back: let consumers meet it again that have gone past its place."""
        priority = entry.message.priority
        for consumer in consumers:
            passed = consumer.passed
            if passed is None or passed[priority] < entry.position:
                continue
            group = entry.group
            if group is not None and not group.may_go_to(consumer.number):
                continue
            rescan = consumer.rescan
            if rescan is not None:
                rescan.add(entry, passed)
            elif entry.may_go_to(consumer.number, now_ms):
                passed[priority] = int(entry.position) - 1

    def rewind(self, first: list[int], consumers: list[Consumer]) -> None:
        """Let everybody look again from `first` on, a position for each priority, -1 for none."""
        for consumer in consumers:
            passed = consumer.passed
            if passed is None:
                continue
            for priority in range(10):
                if first[priority] >= 0:
                    passed[priority] = min(passed[priority], first[priority] - 1)

    def start_anew(self, consumers: list[Consumer]) -> None:
        """Let everybody look at everything again, but for those who judge it: only at some."""
        self.any = False
        for consumer in consumers:
            passed, rescan = consumer.passed, consumer.rescan
            if passed is not None and rescan is not None:
                rescan.resume(passed)
                self.any = True
            else:
                consumer.passed = None
