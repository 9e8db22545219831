"""The time for which requests are repeated: its end, its renewal, and the growth of the pauses."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from pyspark_amqp.errors import TransientError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.wire.patience import Patience

pytestmark = pytest.mark.requirement("PIP-56")


def options(timeout: str) -> Options:
    return read_options({"address": "a", "amqp.timeout": timeout}, Use.SINK)


def paused(patience: Patience) -> float:
    """Return the duration of the next pause, in seconds."""
    begun = time.monotonic()
    patience.pause(TransientError("away"))
    return time.monotonic() - begun


def all_pauses(patience: Patience) -> list[float]:
    """Pause until the time is over, however many attempts that are."""
    pauses: list[float] = []
    with suppress(TransientError):
        while True:
            pauses.append(paused(patience))
    return pauses


def test_pauses_grow_and_the_last_attempt_is_at_the_end_of_the_time() -> None:
    patience = Patience(options("1s"))
    begun = time.monotonic()
    pauses = all_pauses(patience)
    assert time.monotonic() - begun >= 1
    assert 0.04 < pauses[0] < pauses[2]
    assert 4 <= len(pauses) < 10
    with pytest.raises(TransientError, match="away"):
        patience.pause(TransientError("away"))


def test_a_success_gives_the_whole_time_again() -> None:
    patience = Patience(options("300ms"))
    begun = time.monotonic()
    while time.monotonic() - begun < 0.25:
        paused(patience)
    patience.renew()
    while time.monotonic() - begun < 0.5:
        paused(patience)
