"""Scan positions: consumers skip entries that they may not take, without looking at them twice."""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer
from broker.routing.queues.backlog import Backlog

LOOK_AHEAD: Final[i64] = 16
"""Entries looked at together if a consumer may not take the first one: mostly it may."""


@final
class ScanPositions:
    """The positions up to which consumers of one queue have skipped entries they may not take.

    Each consumer has its own in `Consumer.passed`; `any`: at least one of `consumers` has some.
    """

    def __init__(self, consumers: list[Consumer]) -> None:
        self.any = False
        self._consumers: Final = consumers

    def first_for(
        self, consumer: Consumer, backlog: Backlog, priority: i64, *, now_ms: i64
    ) -> QueueEntry | None:
        """Return the first entry that `consumer` may take, None if there is none; skip the others.

        Skipped entries are not looked at again until `look_again`, `rewind` or `start_anew` says
        so: a consumer that refuses most of a queue would otherwise take time in the square of its
        length. Nor is the gap in front of the returned entry: an entry that returns there is
        reported to `look_again`.
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
                    group.skip(entry, consumer.number)
                elif entry.may_go_to(consumer.number, now_ms):
                    passed[priority] = int(entry.position) - 1
                    return entry
                passed[priority] = int(entry.position)
            at_most = LOOK_AHEAD

    def look_again(self, entry: QueueEntry, now_ms: i64) -> None:
        """Let consumers that have passed the place of the returned `entry` look at it again."""
        priority = entry.message.priority
        for consumer in self._consumers:
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

    def look_again_for(self, number: i64, entry: QueueEntry) -> None:
        """Let the consumer of that number look again at the returned `entry`, wherever it is."""
        for consumer in self._consumers:
            passed = consumer.passed
            if consumer.number != number or passed is None:
                continue
            priority = entry.message.priority
            if consumer.rescan is not None:
                consumer.rescan.add(entry, passed)
            else:
                passed[priority] = min(passed[priority], int(entry.position) - 1)

    def rewind(self, first: list[int]) -> None:
        """Let all consumers look again from `first` on: a position by priority, -1 for none."""
        for consumer in self._consumers:
            go_back(consumer, first)

    def rewind_for(self, number: i64, first: list[int]) -> None:
        """Like `rewind`, for the consumer of that number alone."""
        for consumer in self._consumers:
            if consumer.number == number:
                go_back(consumer, first)

    def start_anew(self) -> None:
        """Let all consumers look again from the queue's start.

        Those with a filter look again only from the first entry on that was paused for them.
        """
        self.any = False
        for consumer in self._consumers:
            passed, rescan = consumer.passed, consumer.rescan
            if passed is not None and rescan is not None:
                rescan.resume(passed)
                self.any = True
            else:
                consumer.passed = None


def go_back(consumer: Consumer, first: list[int]) -> None:
    """Let `consumer` look again from `first` on: a position by priority, -1 for none."""
    passed, rescan = consumer.passed, consumer.rescan
    if passed is None:
        return
    for priority in range(10):
        if first[priority] < 0:
            continue
        if rescan is not None:
            rescan.go_back(passed, priority, first[priority])
        else:
            passed[priority] = min(passed[priority], first[priority] - 1)
