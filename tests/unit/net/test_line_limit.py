"""The limit on the lines of the log of one address (`docs/design/hostile-input.md` S8)."""

import io
import json

import pytest

from broker.links.peer import Peer
from broker.log_lines import configure_logging
from broker.net.line_limit import FURTHER_SOURCES, LINES_PER_S, SOURCES_MAX, LineLimit
from broker.net.log import Log
from broker.routing.timer_queue import TimerQueue
from tests.support.broker import Broker, Client, entrance

SECOND = 5_000


class Counted:
    """A limit, with what it has told."""

    def __init__(self, sources_max: int = 3) -> None:
        self.told: list[tuple[str, int]] = []
        self.timers = TimerQueue()
        self.limit = LineLimit(lambda *told: self.told.append(told), sources_max=sources_max)

    def written(self, host: str, lines: int, now_ms: int = SECOND) -> int:
        return sum(self.limit.admits(host, now_ms, self.timers) for _ in range(lines))


def test_ten_lines_of_a_source_are_written_in_a_second() -> None:
    counted = Counted()
    assert counted.written("10.0.0.1", 35) == LINES_PER_S
    assert counted.written("10.0.0.2", 3) == 3
    assert counted.told == []


def test_what_was_left_out_is_told_when_the_second_has_ended() -> None:
    counted = Counted()
    counted.written("10.0.0.1", 35)
    counted.written("10.0.0.2", 10)
    counted.timers.tick(SECOND + 999)
    assert counted.told == []
    counted.timers.tick(SECOND + 1000)
    assert counted.told == [("10.0.0.1", 25)]
    counted.timers.tick(SECOND + 9000)
    assert counted.told == [("10.0.0.1", 25)], "it is told once"


def test_the_line_that_tells_it_is_one_of_the_ten() -> None:
    counted = Counted()
    counted.written("10.0.0.1", 11)
    assert counted.written("10.0.0.1", 35, SECOND + 1000) == LINES_PER_S - 1
    assert counted.told == [("10.0.0.1", 1)]


def test_a_source_without_lines_for_a_while_has_all_of_them_again() -> None:
    counted = Counted()
    counted.written("10.0.0.1", 11)
    counted.timers.tick(SECOND + 1000)
    assert counted.written("10.0.0.1", 35, SECOND + 2000) == LINES_PER_S


def test_a_network_of_ipv6_is_one_source() -> None:
    counted = Counted()
    assert counted.written("2001:db8::1", 6) + counted.written("2001:db8::2", 6) == LINES_PER_S


def test_only_so_many_sources_are_counted() -> None:
    counted = Counted(sources_max=3)
    for number in range(3):
        assert counted.written(f"10.0.0.{number}", 1) == 1
    assert sum(counted.written(f"10.0.1.{number}", 1) for number in range(99)) == LINES_PER_S
    assert len(counted.limit) == 4
    assert counted.written("10.0.0.2", 9) == 9, "it was counted before"
    counted.timers.tick(SECOND + 1000)
    assert counted.told == [(FURTHER_SOURCES, 89)]


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    return stream


def client_at(broker: Broker, host: str) -> Client:
    """Return a client at `host` that is connected and has sent nothing."""
    client = broker.dial()
    client.peer = Peer(broker.container, client.transport, entrance(host))
    return client


def test_lines_below_the_level_of_the_log_do_not_count() -> None:
    stream = io.StringIO()
    configure_logging("json", "warning", stream)
    broker = Broker()
    watcher = Log()
    client = client_at(broker, "127.0.0.9")
    for _ in range(50):
        watcher.opened(client.peer)
    watcher.refused(client.peer, "seen")
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["reason"] == "seen"


def test_a_flood_from_addresses_of_its_own_each_writes_few_lines() -> None:
    counted = Counted(sources_max=SOURCES_MAX)
    hosts = [f"127.1.{number // 250}.{number % 250}" for number in range(1000)]
    assert sum(counted.written(host, 1) for host in hosts) == SOURCES_MAX + LINES_PER_S
    counted.timers.tick(SECOND + 1000)
    assert counted.told == [(FURTHER_SOURCES, 1000 - SOURCES_MAX - LINES_PER_S)]
