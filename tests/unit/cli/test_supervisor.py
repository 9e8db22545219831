"""The supervisor of shards: how long it waits before it starts a shard again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from broker.cli.supervisor import PAUSE_MAX_S, STEADY_S, RestartPause

LIVES = [
    # the seconds that each process has lived, the pauses behind them
    pytest.param([0], [0.1], id="the first end"),
    pytest.param([0, 1, 0], [0.1, 0.2, 0.4], id="ends again and again"),
    pytest.param([0] * 8, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, PAUSE_MAX_S, PAUSE_MAX_S], id="for long"),
    pytest.param([0, 0, STEADY_S, 0], [0.1, 0.2, 0.1, 0.2], id="steady in between"),
    pytest.param([0, STEADY_S - 1, 0], [0.1, 0.2, 0.4], id="nearly steady"),
]


@pytest.mark.parametrize(("lives_s", "pauses_s"), LIVES)
def test_the_pause_doubles_until_a_shard_is_steady(
    lives_s: Sequence[float], pauses_s: Sequence[float]
) -> None:
    pause = RestartPause()
    assert [pause.after(life_s) for life_s in lives_s] == pytest.approx(pauses_s)
