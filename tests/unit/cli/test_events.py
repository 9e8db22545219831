"""Times as the command `events` accepts and prints them, and the kinds of events that it knows."""

from datetime import UTC, datetime

import pytest

from broker.cli.events import Kind, moment, time_of
from broker.routing.queues.message_events import KINDS

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
NOW_US = 1_769_860_800_000_000

MOMENTS = [
    ("90s", NOW_US - 90_000_000),
    ("15m", NOW_US - 900_000_000),
    ("2h", NOW_US - 7_200_000_000),
    ("7d", NOW_US - 7 * 86_400_000_000),
    ("2026-01-31T12:00:00Z", NOW_US),
    ("2026-01-31T13:00:00.000001+01:00", NOW_US + 1),
]


@pytest.mark.parametrize(("text", "expected"), MOMENTS, ids=[each[0] for each in MOMENTS])
def test_a_moment(text: str, expected: int) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "15", "m", "-5m", "1234567s", "2026-13-01"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        moment(text, NOW)


def test_a_time_is_printed_in_full() -> None:
    assert time_of(NOW_US + 5) == "2026-01-31T12:00:00.000005Z"


def test_the_command_knows_all_kinds() -> None:
    assert [kind.value for kind in Kind] == list(KINDS)
