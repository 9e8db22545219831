"""Finding what a consumer with a filter wants, without looking at anything twice.

Such a consumer goes through a queue once, and knows how far it has come
(`Consumer.passed`). So it judges each entry once: what was there when it came,
and every new one while it has room. What comes back behind it is remembered
apart (`RescanSet`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.participants import Consumer
from broker.routing.entries.rescan import RescanSet
from broker.routing.queues.backlog import Backlog
from broker.routing.selector import Facts
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue

LOOK_AHEAD: Final[i64] = 64
JUDGED_AT_ONCE: Final[i64] = 2000
"""Entries of a queue that are judged in one dispatch: some milliseconds. Then sockets have their
turn."""
SHARE_MIN: Final[i64] = 16
"""So many of them a consumer may judge at least, as long as there are some; else all have equal
shares, and so look at the same entries at about the same time."""


@final
class Selection(TimerCallback):
    """How the selective consumers and browsers of one queue get on.

    `is_cut`: there is more to judge than one dispatch may, so that the next goes on with
    it. `stopped`: the last search came to no end for that reason. `judged` counts all that was.
    """

    def __init__(self, queue: Queue) -> None:
        self.is_cut = False
        self.stopped = False
        self.judged: i64 = 0
        self._left: i64 = JUDGED_AT_ONCE
        self._dispatch: i64 = 0
        self._share: i64 = JUDGED_AT_ONCE
        self._queue: Queue | None = queue
        self._next: Consumer | None = None
        # what was read of messages in this dispatch
        self._facts: Final[dict[QueueEntry, Facts]] = {}

    def join(self, consumer: Consumer) -> None:
        """`consumer` has everything yet to judge."""
        consumer.passed = [-1] * 10
        consumer.rescan = RescanSet()

    def begin(self, consumers: i64) -> None:
        """A dispatch begins; so many consumers may ask."""
        self.is_cut = False
        self._dispatch += 1
        self._left = JUDGED_AT_ONCE
        self._share = max(SHARE_MIN, JUDGED_AT_ONCE // max(consumers, 1))
        self._next = None

    def end(self) -> None:
        """A dispatch ends; another follows where it did not come to an end."""
        self._facts.clear()
        queue = self._queue
        if self.is_cut and queue is not None:
            queue.router.timer_queue.at(queue.router.clock.now_ms(), self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - at once, whatever the time
        queue = self._queue
        if queue is not None:
            queue.router.wake(queue)

    def close(self) -> None:
        """The queue has gone."""
        self._queue = None

    def may_judge(self) -> bool:
        """Whether another entry may be judged now; notes it where not."""
        if self._left > 0:
            return True
        self.is_cut = True
        return False

    def judge(self, wanted: ConsumerFilter, entry: QueueEntry) -> bool:
        """Whether a filter lets `entry` pass."""
        self._left -= 1
        self.judged += 1
        if wanted.part is not None and not wanted.part.has(entry):
            return False
        facts = self._facts.get(entry)
        if facts is None:
            facts = Facts(entry.message, entry.delivery_count)
            self._facts[entry] = facts
        return wanted.admits(facts)

    def first_for(
        self, consumer: Consumer, backlog: Backlog, priority: i64, *, now_ms: i64
    ) -> QueueEntry | None:
        """The first entry that `consumer` wants and may have; None, too, where it `stopped`."""
        wanted, passed, rescan = consumer.filter, consumer.passed, consumer.rescan
        assert wanted is not None
        assert passed is not None
        assert rescan is not None
        self.stopped = False
        entry = rescan.first(priority)
        while entry is not None:
            if not self._may_look(consumer, rescan):
                return None
            if backlog.has(entry) and self._suits(consumer, wanted, entry, now_ms=now_ms):
                return entry
            rescan.drop_first(priority)
            entry = rescan.first(priority)
        at_most: i64 = 1
        while True:
            found = backlog.after(passed[priority], at_most)
            if not found:
                self.stopped = backlog.is_blocked
                return None
            for entry in found:
                if not self._may_look(consumer, rescan):
                    return None
                if self._suits(consumer, wanted, entry, now_ms=now_ms):
                    passed[priority] = int(entry.position) - 1
                    return entry
                passed[priority] = int(entry.position)
            at_most = LOOK_AHEAD

    def _may_look(self, consumer: Consumer, rescan: RescanSet) -> bool:
        """Whether `consumer` may judge one more entry in this dispatch; the search stops if not."""
        if rescan.dispatch != self._dispatch:
            rescan.dispatch = self._dispatch
            rescan.share = self._share
        if rescan.share > 0:
            if self.may_judge():
                rescan.share -= 1
                return True
            if self._next is None:
                self._next = consumer
        self.is_cut = True
        self.stopped = True
        return False

    def _suits(
        self, consumer: Consumer, wanted: ConsumerFilter, entry: QueueEntry, *, now_ms: i64
    ) -> bool:
        """Whether `entry`, which waits, is for `consumer`. One that is later will be met again."""
        if entry.history is not None and not entry.may_go_to(consumer.number, now_ms):
            if entry.is_paused_for(consumer.number) and consumer.rescan is not None:
                consumer.rescan.pause(entry)
            return False
        if not self.judge(wanted, entry):
            return False
        group = entry.group
        if group is not None and not group.may_go(entry, consumer.number):
            group.pass_over(entry)
            return False
        return True

    def has_any(self, consumer: Consumer, backlogs: list[Backlog | None], now_ms: i64) -> bool:
        """Whether something waits for `consumer`, as far as can be told in this dispatch."""
        for priority in range(10):
            backlog = backlogs[priority]
            if backlog is None or backlog.waiting == 0:
                continue
            if self.first_for(consumer, backlog, priority, now_ms=now_ms) is not None:
                return True
            if self.stopped:
                return True
        return False

    def in_turn(self, passed_over: list[Consumer]) -> list[Consumer]:
        """Those for whom nothing was found, so that who had to wait is first the next time."""
        if self._next is None or self._next not in passed_over:
            return passed_over
        at = passed_over.index(self._next)
        return passed_over[at:] + passed_over[:at]


def selection_of(queue: Queue) -> Selection:
    """The one of `queue`, begun with the first who asks."""
    if queue.selection is None:
        queue.selection = Selection(queue)
    return queue.selection


def begin_selection(queue: Queue, consumer: Consumer) -> None:
    """Let `consumer`, whose filter is new if there is one, judge from the start what waits."""
    if consumer.filter is not None:
        selection_of(queue).join(consumer)
        queue.scan_positions.any = True


def first_for(
    consumer: Consumer, backlog: Backlog, priority: i64, *, now_ms: i64, queue: Queue
) -> QueueEntry | None:
    """The first entry that `consumer` may have, where that need not be the first of all."""
    selection = queue.selection
    if consumer.filter is not None and selection is not None:
        return selection.first_for(consumer, backlog, priority, now_ms=now_ms)
    return queue.scan_positions.first_for(consumer, backlog, priority, now_ms=now_ms)
