"""The search for entries that a consumer with a filter wants, looking at none of them twice.

Such a consumer scans a queue once and keeps its position (`Consumer.passed`). So it judges each
entry once, that is, evaluates its filter: on those present when it attached, and on every new
one while it has room. Entries that return behind its position are kept apart (`RescanSet`).

An evaluation counts once, and once more for each STEPS_PER_EVALUATION steps of its selector. So
what may be judged in a dispatch, or by one consumer, is a limit of work as well.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.participants import Consumer
from broker.routing.entries.rescan import RescanSet
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.backlogs import Backlogs
from broker.routing.queues.judging import Judging, evaluations_in
from broker.routing.selector import Facts

LOOK_AHEAD: Final[i64] = 64
JUDGED_AT_ONCE: Final[i64] = 2000
"""Maximum entries of a queue judged in one dispatch, and so at most 200,000 steps and those of one
selector more: some milliseconds, at worst 30. Then the event loop serves sockets."""
SHARE_MIN: Final[i64] = 16
"""Minimum of these entries that one consumer may judge, as long as any are left. Otherwise all have
equal shares, and so look at the same entries at about the same time."""


@final
class Selection:
    """The filter evaluation of one queue, for its consumers with a filter and its browsers.

    `is_cut`: this dispatch ran out of its evaluations, and the next one goes on. `stopped`: the
    last search ended early for that reason, or since entries have to be loaded. `judged` counts
    all evaluations, and `steps` those of their selectors. `is_put_off`: this dispatch has no
    evaluation, since other queues have spent those of the turn (`Judging`).
    """

    def __init__(self, judging: Judging) -> None:
        self.is_cut = False
        self.is_put_off = False
        self.stopped = False
        self.judged: i64 = 0
        self.steps: i64 = 0
        self._judging: Final = judging
        self._granted: i64 = JUDGED_AT_ONCE
        self._price: i64 = 1
        self._left: i64 = JUDGED_AT_ONCE
        self._dispatch: i64 = 0
        self._share: i64 = JUDGED_AT_ONCE
        self._next: Consumer | None = None
        # the decoded facts of messages judged in this dispatch
        self._facts: Final[dict[QueueEntry, Facts]] = {}

    def join(self, consumer: Consumer) -> None:
        """Let `consumer` begin at the start of the queue, with all entries yet to judge."""
        consumer.passed = [-1] * 10
        consumer.rescan = RescanSet()

    def begin(self, consumers: i64, *, rests: bool) -> None:
        """Begin a dispatch in which up to `consumers` consumers judge entries.

        None does if the queue `rests`: it was cut in this turn of the event loop.
        """
        self.is_cut = False
        self.is_put_off = not rests and self._judging.left <= 0
        self._dispatch += 1
        self._granted = i64(0) if rests or self.is_put_off else JUDGED_AT_ONCE
        self._left = self._granted
        self._share = max(SHARE_MIN, JUDGED_AT_ONCE // max(consumers, 1))
        self._next = None

    def end(self) -> None:
        """End a dispatch; if it was cut, another one has to follow."""
        self._facts.clear()
        if self._left < self._granted:
            self._judging.spend(self._granted - self._left)

    def may_judge(self) -> bool:
        """Return whether another entry may be judged in this dispatch; if not, set `is_cut`."""
        if self._left > 0:
            return True
        self.is_cut = True
        return False

    def judge(self, wanted: ConsumerFilter, entry: QueueEntry) -> bool:
        """Return whether the filter `wanted` admits `entry`; counts as one evaluation or more."""
        self._left -= 1
        self._price = 1
        self.judged += 1
        if wanted.part is not None and not wanted.part.has(entry):
            return False
        facts = self._facts.get(entry)
        if facts is None:
            facts = Facts(entry.message, entry.delivery_count)
            self._facts[entry] = facts
        else:
            facts.begin()
        is_wanted = wanted.admits(facts)
        if facts.steps > 0:
            self.steps += facts.steps
            self._price = evaluations_in(facts.steps)
            self._left -= self._price - 1
        return is_wanted

    def first_for(
        self, consumer: Consumer, backlog: Backlog, priority: i64, *, now_ms: i64
    ) -> QueueEntry | None:
        """Return the first entry that `consumer` wants and may take.

        None if there is none, or the search `stopped`.
        """
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
        """Return whether `consumer` may judge one more entry now; if not, set `stopped`."""
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
        """Return whether the waiting `entry` is for `consumer`; if only later, it is met again."""
        if entry.history is not None and not entry.may_go_to(consumer.number, now_ms):
            if entry.is_paused_for(consumer.number) and consumer.rescan is not None:
                consumer.rescan.pause(entry)
            return False
        is_wanted = self.judge(wanted, entry)
        if self._price > 1 and consumer.rescan is not None:
            consumer.rescan.share -= self._price - 1
        if not is_wanted:
            return False
        group = entry.group
        if group is not None and not group.may_go(entry, consumer.number):
            group.skip(entry, consumer.number)
            return False
        return True

    def has_any(self, consumer: Consumer, backlogs: Backlogs, now_ms: i64) -> bool:
        """Return whether an entry waits for `consumer`; True also if it is not known yet."""
        for priority in range(10):
            backlog = backlogs.by_priority[priority]
            if backlog is None or backlog.waiting == 0:
                continue
            if self.first_for(consumer, backlog, priority, now_ms=now_ms) is not None:
                return True
            if self.stopped:
                return True
        return False

    def in_turn(self, passed_over: list[Consumer]) -> list[Consumer]:
        """Return `passed_over`, rotated so that a consumer that had to wait is first next time."""
        if self._next is None or self._next not in passed_over:
            return passed_over
        at = passed_over.index(self._next)
        return passed_over[at:] + passed_over[:at]
