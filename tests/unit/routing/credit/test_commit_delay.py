"""The time for which messages are held for their consumers, derived from the time of commits."""

import pytest

from broker.routing.credit.commit_delay import LONGEST, PATIENCE, CommitDelay

LEAST_US = 2000
MANY = 50

COMMITS = {
    # name: the setting, the time of each of many commits, the resulting hold; all in µs
    "quick commits": (LEAST_US, 500, LEAST_US),
    "commits as long as the setting": (LEAST_US, LEAST_US, LEAST_US),
    "slow commits": (LEAST_US, 5 * LEAST_US, 5 * LEAST_US),
    "very slow commits": (LEAST_US, 1_000_000, LONGEST * LEAST_US),
    "nothing is held": (0, 5000, 0),
}


@pytest.mark.parametrize(("least_us", "took_us", "us"), COMMITS.values(), ids=COMMITS.keys())
def test_the_hold_follows_the_commits(least_us: int, took_us: int, us: int) -> None:
    hold = CommitDelay(least_us)
    assert hold.us == least_us
    for _ in range(MANY):
        hold.committed(took_us)
    assert hold.us == pytest.approx(us, abs=4)
    assert hold.patience_us == PATIENCE * hold.us


def test_one_slow_commit_among_quick_ones_changes_little() -> None:
    hold = CommitDelay(LEAST_US)
    for took_us in [500] * MANY + [4 * LEAST_US] + [500] * 4:
        hold.committed(took_us)
    assert hold.us == LEAST_US
