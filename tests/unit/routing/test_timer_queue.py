"""Deadlines: never early, in order, and without a limit to their number."""

from broker.routing.timer_queue import (
    ABANDONED_MAX,
    NOTHING,
    TimerCallback,
    TimerDriver,
    TimerQueue,
)


class Diary(TimerCallback):
    """A timer callback that records its calls, and may ask to be called again once."""

    def __init__(self, name: str, timer_queue: TimerQueue, again_at: int | None = None) -> None:
        self.calls: list[int] = []
        self.name = name
        self._timer_queue = timer_queue
        self._again_at = again_at

    def due(self, now_ms: int) -> None:
        self.calls.append(now_ms)
        again_at, self._again_at = self._again_at, None
        if again_at is not None:
            self._timer_queue.at(again_at, self)


def test_an_empty_timer_queue_has_no_deadline() -> None:
    timer_queue = TimerQueue()
    assert timer_queue.next_deadline_ms() == NOTHING
    timer_queue.tick(10**15)
    assert timer_queue.next_deadline_ms() == NOTHING


def test_nothing_is_called_early() -> None:
    timer_queue = TimerQueue()
    diary = Diary("a", timer_queue)
    timer_queue.at(100, diary)
    timer_queue.tick(99)
    assert not diary.calls
    assert timer_queue.next_deadline_ms() == 100
    timer_queue.tick(100)
    assert diary.calls == [100]
    assert timer_queue.next_deadline_ms() == NOTHING


def test_the_earliest_deadline_comes_first_whenever_it_was_asked_for() -> None:
    timer_queue = TimerQueue()
    late, early = Diary("late", timer_queue), Diary("early", timer_queue)
    timer_queue.at(200, late)
    timer_queue.at(100, early)
    assert timer_queue.next_deadline_ms() == 100
    timer_queue.tick(150)
    assert (early.calls, late.calls) == ([150], [])


def test_one_moment_may_be_asked_for_twice() -> None:
    timer_queue = TimerQueue()
    one, other = Diary("one", timer_queue), Diary("other", timer_queue)
    timer_queue.at(100, one)
    timer_queue.at(100, other)
    timer_queue.at(100, one)
    timer_queue.tick(100)
    assert (one.calls, other.calls) == ([100, 100], [100])


def test_what_is_asked_for_meanwhile_has_the_next_turn_though_it_is_due() -> None:
    timer_queue = TimerQueue()
    overdue = Diary("overdue", timer_queue, again_at=120)
    later = Diary("later", timer_queue, again_at=300)
    timer_queue.at(100, overdue)
    timer_queue.at(100, later)
    timer_queue.tick(150)
    assert (overdue.calls, later.calls) == ([150], [150])
    assert timer_queue.next_deadline_ms() == 120
    timer_queue.tick(150)
    assert (overdue.calls, later.calls) == ([150, 150], [150])
    assert timer_queue.next_deadline_ms() == 300


class Alarm(TimerDriver):
    """A timer driver that records the deadlines it is set for."""

    def __init__(self) -> None:
        self.set_for: list[int] = []

    def wake_at(self, deadline_ms: int) -> None:
        self.set_for.append(deadline_ms)


def test_the_waker_hears_of_what_comes_before_everything_else() -> None:
    timer_queue = TimerQueue()
    diary = Diary("a", timer_queue)
    timer_queue.driver = alarm = Alarm()
    for deadline_ms in (200, 300, 200, 100, 150):
        timer_queue.at(deadline_ms, diary)
    assert alarm.set_for == [200, 100]


class Abandoned(Diary):
    """A timer callback that is not called any more once it `is_over`."""

    is_over = False

    def is_abandoned(self) -> bool:
        return self.is_over


def test_an_abandoned_deadline_passes_unnoticed() -> None:
    timer_queue = TimerQueue()
    gone = Abandoned("gone", timer_queue)
    timer_queue.at(100, gone)
    gone.is_over = True
    timer_queue.abandon(1)
    timer_queue.tick(100)
    assert gone.calls == []
    assert len(timer_queue) == 0


def test_abandoned_deadlines_are_removed_if_they_are_many_and_most() -> None:
    timer_queue = TimerQueue()
    stays = Diary("stays", timer_queue)
    for number in range(ABANDONED_MAX):
        timer_queue.at(2 * number, stays)
    for number in range(ABANDONED_MAX + 1):
        gone = Abandoned("gone", timer_queue)
        timer_queue.at(2 * number + 1, gone)
        gone.is_over = True
        timer_queue.abandon(1)
        if number < ABANDONED_MAX:
            assert len(timer_queue) == ABANDONED_MAX + number + 1
    assert len(timer_queue) == ABANDONED_MAX
    timer_queue.tick(2 * ABANDONED_MAX)
    assert len(stays.calls) == ABANDONED_MAX
    assert timer_queue.next_deadline_ms() == NOTHING
