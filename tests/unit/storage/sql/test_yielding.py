"""A thread that works on a large batch lets another one run."""

import sys
from threading import Event, Thread

from storage.sql.segments.ranges import SORTED_AT_ONCE, ascending
from storage.sql.yielding import YIELD_EVERY, yield_interpreter


def test_who_waits_for_the_interpreter_gets_it() -> None:
    asked, seen = Event(), list[int]()

    def run() -> None:
        asked.wait()
        seen.append(1)

    thread = Thread(target=run)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    try:
        asked.set()
        for _ in range(100_000):
            yield_interpreter()
            if seen:
                break
        in_time = bool(seen)
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    assert in_time


def test_many_numbers_are_sorted_in_parts_as_few_are() -> None:
    count = 3 * SORTED_AT_ONCE + YIELD_EVERY
    behind = list(range(count, 2 * count))
    assert ascending([*behind, *range(count), 5, 2 * count]) == list(range(2 * count + 1))
    assert ascending(behind) is behind
    assert ascending([3, 1, 3]) == [1, 3]
