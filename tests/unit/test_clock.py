"""The machine's clocks, and the simulated clock of tests."""

import time

from broker.clock import SystemClock
from tests.support.clock import SimulatedClock


def test_the_steady_clock_never_goes_back() -> None:
    clock = SystemClock()
    times = [clock.now_ms() for _ in range(1000)]
    assert times == sorted(times)


def test_the_steady_clock_counts_milliseconds() -> None:
    before = time.monotonic_ns()
    now_ms = SystemClock().now_ms()
    assert before // 1_000_000 <= now_ms <= time.monotonic_ns() // 1_000_000


def test_the_wall_clock_counts_milliseconds_since_1970() -> None:
    before = time.time_ns()
    wall_ms = SystemClock().wall_ms()
    assert before // 1_000_000 <= wall_ms <= time.time_ns() // 1_000_000


def test_simulated_time_passes_when_told_to() -> None:
    clock = SimulatedClock()
    start = clock.now_ms(), clock.wall_ms()
    assert (clock.now_ms(), clock.wall_ms()) == start
    clock.advance(7)
    assert (clock.now_ms(), clock.wall_ms()) == (start[0] + 7, start[1] + 7)
