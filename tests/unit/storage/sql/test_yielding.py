"""A thread that works on a large batch lets another one run."""

from storage.sql.segments.ranges import SORTED_AT_ONCE, ascending
from storage.sql.yielding import YIELD_EVERY, yield_interpreter
from tests.support.threads import lets_another_thread_run


def test_who_waits_for_the_interpreter_gets_it() -> None:
    assert lets_another_thread_run(yield_interpreter)


def test_many_numbers_are_sorted_in_parts_as_few_are() -> None:
    count = 3 * SORTED_AT_ONCE + YIELD_EVERY
    behind = list(range(count, 2 * count))
    assert ascending([*behind, *range(count), 5, 2 * count]) == list(range(2 * count + 1))
    assert ascending(behind) is behind
    assert ascending([3, 1, 3]) == [1, 3]
