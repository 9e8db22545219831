"""A thread that works on a large batch lets another one run."""

import pytest

from storage.sql import yielding
from storage.sql.segments.ranges import SORTED_AT_ONCE, ascending
from storage.sql.yielding import KEPT_S, YIELD_EVERY, Keeper, yield_interpreter
from tests.support.threads import lets_another_thread_run


def test_who_waits_for_the_interpreter_gets_it() -> None:
    assert lets_another_thread_run(yield_interpreter)


def test_it_is_kept_for_a_while_before_it_is_given_away_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, given = [100.0], list[float]()
    monkeypatch.setattr(yielding, "perf_counter", lambda: now[0])
    monkeypatch.setattr(yielding, "sleep", lambda _: given.append(now[0]))
    keeper = Keeper()
    for _ in range(6):
        keeper.give_away()
        now[0] += 0.4 * KEPT_S
    assert given == pytest.approx([100.0, 100.0 + 1.2 * KEPT_S])


def test_many_numbers_are_sorted_in_parts_as_few_are() -> None:
    count = 3 * SORTED_AT_ONCE + YIELD_EVERY
    behind = list(range(count, 2 * count))
    assert ascending([*behind, *range(count), 5, 2 * count]) == list(range(2 * count + 1))
    assert ascending(behind) is behind
    assert ascending([3, 1, 3]) == [1, 3]
