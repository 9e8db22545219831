"""The pauses between two attempts of a bridge."""

import pytest

from broker.bridge.backoff import PAUSE_MAX_S, PAUSE_MIN_S, Backoff


@pytest.mark.requirement("BRG-06")
@pytest.mark.parametrize(("chance", "part"), [(0.0, 0.5), (0.5, 0.75)])
def test_pauses_double_up_to_a_limit(chance: float, part: float) -> None:
    backoff = Backoff(lambda: chance)
    pauses = [backoff.pause_s() for _ in range(12)]
    assert pauses[:3] == [PAUSE_MIN_S * part, 2 * PAUSE_MIN_S * part, 4 * PAUSE_MIN_S * part]
    assert pauses[-1] == PAUSE_MAX_S * part
    backoff.succeeded()
    assert backoff.pause_s() == PAUSE_MIN_S * part
