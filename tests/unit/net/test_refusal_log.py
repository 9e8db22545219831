"""Refused connections: one in a minute is a line of the log."""

from broker.net.refusal_log import INTERVAL_MS, RefusalLog
from tests.support.broker import Broker


def test_a_flood_of_refusals_is_one_line_a_minute_for_each_kind() -> None:
    broker = Broker()
    log, other = [RefusalLog("web", broker.container) for _ in range(2)]
    for _ in range(100):
        log.note("refused")
    other.note("another kind")
    assert broker.watcher.events == [
        "noticed listener web: refused",
        "noticed listener web: another kind",
    ]
    broker.advance(INTERVAL_MS)
    log.note("again")
    assert broker.watcher.events[2:] == [
        "noticed listener web: again; 99 more since the last report"
    ]
