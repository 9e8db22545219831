"""Deadlines: never early, in order, and no limit to how many."""

from broker.routing.timer_queue import NOTHING, TimerCallback, TimerDriver, TimerQueue


class Diary(TimerCallback):
    """Notes when it was called; may ask to be called again."""

    def __init__(self, name: str, agenda: TimerQueue, again_at: int | None = None) -> None:
        self.calls: list[int] = []
        self.name = name
        self._agenda = agenda
        self._again_at = again_at

    def due(self, now_ms: int) -> None:
        self.calls.append(now_ms)
        again_at, self._again_at = self._again_at, None
        if again_at is not None:
            self._agenda.at(again_at, self)


def test_an_empty_agenda_has_no_deadline() -> None:
    agenda = TimerQueue()
    assert agenda.next_deadline_ms() == NOTHING
    agenda.tick(10**15)
    assert agenda.next_deadline_ms() == NOTHING


def test_nothing_is_called_early() -> None:
    agenda = TimerQueue()
    diary = Diary("a", agenda)
    agenda.at(100, diary)
    agenda.tick(99)
    assert not diary.calls
    assert agenda.next_deadline_ms() == 100
    agenda.tick(100)
    assert diary.calls == [100]
    assert agenda.next_deadline_ms() == NOTHING


def test_the_earliest_deadline_comes_first_whenever_it_was_asked_for() -> None:
    agenda = TimerQueue()
    late, early = Diary("late", agenda), Diary("early", agenda)
    agenda.at(200, late)
    agenda.at(100, early)
    assert agenda.next_deadline_ms() == 100
    agenda.tick(150)
    assert (early.calls, late.calls) == ([150], [])


def test_one_moment_may_be_asked_for_twice() -> None:
    agenda = TimerQueue()
    one, other = Diary("one", agenda), Diary("other", agenda)
    agenda.at(100, one)
    agenda.at(100, other)
    agenda.at(100, one)
    agenda.tick(100)
    assert (one.calls, other.calls) == ([100, 100], [100])


def test_what_is_asked_for_meanwhile_has_the_next_turn_though_it_is_due() -> None:
    agenda = TimerQueue()
    overdue = Diary("overdue", agenda, again_at=120)
    later = Diary("later", agenda, again_at=300)
    agenda.at(100, overdue)
    agenda.at(100, later)
    agenda.tick(150)
    assert (overdue.calls, later.calls) == ([150], [150])
    assert agenda.next_deadline_ms() == 120
    agenda.tick(150)
    assert (overdue.calls, later.calls) == ([150, 150], [150])
    assert agenda.next_deadline_ms() == 300


class Alarm(TimerDriver):
    """Notes for when it was set."""

    def __init__(self) -> None:
        self.set_for: list[int] = []

    def wake_at(self, deadline_ms: int) -> None:
        self.set_for.append(deadline_ms)


def test_the_waker_hears_of_what_comes_before_everything_else() -> None:
    agenda = TimerQueue()
    diary = Diary("a", agenda)
    agenda.waker = alarm = Alarm()
    for deadline_ms in (200, 300, 200, 100, 150):
        agenda.at(deadline_ms, diary)
    assert alarm.set_for == [200, 100]
