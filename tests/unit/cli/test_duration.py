"""Durations as typed on the command line."""

import pytest

from broker.cli.duration import seconds_in

DURATIONS = [
    pytest.param("90s", 90, id="seconds"),
    pytest.param("30m", 1_800, id="minutes"),
    pytest.param("1h", 3_600, id="hours"),
    pytest.param("7d", 604_800, id="days"),
    pytest.param("0s", 0, id="nothing"),
]


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_a_duration(text: str, seconds: int) -> None:
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "h", "1 h", "-1h", "1.5h", "1H", "1w", "1" * 10 + "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="such as 1h"):
        seconds_in(text)
