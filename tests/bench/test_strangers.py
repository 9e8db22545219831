"""The arithmetic of latencies beside strangers, and when such a run says nothing."""

import pytest

from tests.bench.client import Outcome
from tests.bench.strangers import Knocking, growth

HUNDRED = Knocking("handshakes", "amqps", 100, sources=1)


def seen(**figures: float) -> Outcome:
    text = ", ".join(f'"{key}": {value}' for key, value in figures.items())
    return Outcome.parse(f'{{"count": 100, "seconds": 1, "per_second": 100, {text}}}', "")


def test_the_growth_is_the_geometric_mean_of_the_pairs() -> None:
    assert growth([100, 200], [400, 200]) == pytest.approx(2)
    assert growth([100, 400], [400, 100]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (seen(failed=5), []),
        (seen(unanswered=5), []),
        (seen(unanswered=100), ["100 handshakes of 200 without an end in time"]),
        (seen(failed=50), ["50 handshakes of 150 failed"]),
        (seen(per_second=80), ["80 handshakes/s, not 100"]),
    ],
    ids=["a few failed", "a few without an end", "many without", "many failed", "too slow"],
)
def test_a_run_without_its_strangers_is_a_problem(outcome: Outcome, problem: list[str]) -> None:
    assert HUNDRED.problems_of(outcome) == problem


def test_logins_may_wait_for_their_check() -> None:
    logins = Knocking("logins", "logins", 100, sources=1, must_end=False)
    assert logins.problems_of(seen(unanswered=900)) == []
