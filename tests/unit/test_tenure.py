"""How long a leader may act: by the time of its last proof, which is asked for only when needed."""

import pytest

from broker.tenure import Tenure

SILENCE_US = 3_000_000

ACTING = [
    # the last proof, and now, in µs; whether the broker must not act
    pytest.param(0, 0, False, id="proved just now"),
    pytest.param(0, 1_999_999, False, id="within two thirds of the silence"),
    pytest.param(0, 2_000_000, True, id="two thirds of the silence ago"),
    pytest.param(0, 60_000_000, True, id="long ago: it was stopped"),
    pytest.param(-1, 5_000_000, True, id="never"),
]


@pytest.mark.parametrize(("proved_us", "now_us", "expected"), ACTING)
def test_a_leader_acts_for_two_thirds_of_the_silence(
    proved_us: int, now_us: int, expected: bool
) -> None:
    tenure = Tenure(lambda: proved_us, lambda: now_us, silence_us=SILENCE_US)
    assert tenure.is_over() is expected


def test_the_proof_is_asked_for_only_when_the_last_one_is_too_old() -> None:
    asked = []
    now_us = 0

    def proved_us() -> int:
        asked.append(now_us)
        return now_us - 500_000

    tenure = Tenure(proved_us, lambda: now_us, silence_us=SILENCE_US)
    for now_us in range(0, 4_000_000, 100_000):  # noqa: B007 - the functions above read it
        assert not tenure.is_over()
    assert asked == [0, 1_500_000, 3_000_000]


def test_a_proof_that_comes_late_lets_the_leader_act_again() -> None:
    proved_us, now_us = 0, 2_500_000
    tenure = Tenure(lambda: proved_us, lambda: now_us, silence_us=SILENCE_US)
    assert tenure.is_over()
    proved_us = 2_400_000
    assert not tenure.is_over()


def test_a_proof_that_is_void_counts_no_longer() -> None:
    proved_us, now_us = 0, 1_000_000
    tenure = Tenure(lambda: proved_us, lambda: now_us, silence_us=SILENCE_US)
    assert not tenure.is_over()
    proved_us = -(2**62)
    tenure.void()
    assert tenure.is_over()
    proved_us = 900_000
    assert not tenure.is_over()
