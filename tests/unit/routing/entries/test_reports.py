"""Log lines that may be numerous, and are therefore summed up."""

from broker.log_events import DISCARDED
from broker.routing.entries.reports import REPORT_EVERY_MS, REPORTS_MAX, Reports
from broker.routing.timer_queue import NOTHING
from tests.support.notices import notice_texts
from tests.support.routing import Routing


def later(routing: Routing) -> list[str]:
    """Return the notices at the end of the interval; check that none comes before."""
    routing.router.notices.clear()
    routing.advance(REPORT_EVERY_MS - 1)
    assert notice_texts(routing.router.notices) == []
    routing.advance(1)
    return notice_texts(routing.router.notices)


def test_the_first_line_is_written_at_once_and_the_others_added_up() -> None:
    routing = Routing()
    reports = Reports(routing.router.context.routing)
    for _ in range(1000):
        reports.tell(DISCARDED, "a")
    reports.tell(DISCARDED, "b")
    assert notice_texts(routing.router.notices) == ["a", "b"]
    assert later(routing) == ["a (999 more times in 10 s)"]
    reports.tell(DISCARDED, "a")
    assert later(routing) == ["a (1 more times in 10 s)"]
    assert later(routing) == []
    assert routing.router.timer_queue.next_deadline_ms() == NOTHING
    reports.tell(DISCARDED, "a")
    assert notice_texts(routing.router.notices) == ["a"]


def test_different_lines_have_a_limit() -> None:
    routing = Routing()
    reports = Reports(routing.router.context.routing)
    for number in range(REPORTS_MAX + 7):
        reports.tell(DISCARDED, f"line {number}")
    assert len(notice_texts(routing.router.notices)) == REPORTS_MAX
    (rest,) = later(routing)
    assert rest.startswith("7 more messages")
    assert routing.router.timer_queue.next_deadline_ms() == NOTHING
