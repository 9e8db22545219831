"""Admission of HTTP connections: the share of a source, of all, and the reserve of this machine."""

import pytest

from broker.http.admission import NOTICE_EVERY_S, Admission, Displacements, Seat, admit
from broker.http.limits import CONNECTIONS_MAX, CONNECTIONS_PER_SOURCE_MAX, LOOPBACK_RESERVE

OURS = "127.0.0.1"
REMOTE_MAX = CONNECTIONS_MAX - LOOPBACK_RESERVE
IN = Admission[str](admitted=True)
OUT = Admission[str](admitted=False)


def seats(count: int, source: str, *, waits: bool) -> list[Seat[str]]:
    """Return `count` connections of one source, the oldest first."""
    return [
        Seat(
            connection=f"{source} {number}",
            source=source,
            is_local=source == OURS,
            waiting_since=float(number) if waits else None,
        )
        for number in range(count)
    ]


def crowd(count: int, *, waits: bool) -> list[Seat[str]]:
    """Return `count` connections, each from a source of its own, the oldest first."""
    return [seat for n in range(count) for seat in seats(1, f"10.0.0.{n}", waits=waits)]


FULL = CONNECTIONS_PER_SOURCE_MAX
CASES = [
    # the source of a new connection, the open connections, the decision
    ("nobody is there", "10.0.0.1", [], IN),
    ("a source below its share", "x", seats(FULL - 1, "x", waits=False), IN),
    ("a source with its share, all answering", "x", seats(FULL, "x", waits=False), OUT),
    (
        "a source with its share of half heads: the oldest goes",
        "x",
        seats(FULL, "x", waits=True),
        Admission(admitted=True, displaced="x 0"),
    ),
    ("beside a source with its share", "y", seats(FULL, "x", waits=True), IN),
    ("others fill what they may, all answering", "y", crowd(REMOTE_MAX, waits=False), OUT),
    ("this machine has its reserve", OURS, crowd(REMOTE_MAX, waits=False), IN),
    (
        "others fill what they may and wait: the oldest goes",
        "y",
        crowd(REMOTE_MAX, waits=True),
        Admission(admitted=True, displaced="10.0.0.0 0"),
    ),
    (
        "others do not displace this machine's",
        "y",
        [*seats(1, OURS, waits=True), *crowd(REMOTE_MAX, waits=False)],
        OUT,
    ),
    ("this machine has no more than all", OURS, crowd(CONNECTIONS_MAX, waits=False), OUT),
]


@pytest.mark.parametrize(
    ("source", "present", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_newcomer(source: str, present: list[Seat[str]], expected: Admission[str]) -> None:
    assert admit(source, is_local=source == OURS, present=present) == expected


def test_a_flood_is_one_line_of_the_log_at_a_time() -> None:
    displacements = Displacements()
    first = displacements.note("x", 100.0)
    assert first is not None
    assert first.startswith("HTTP: 1 connections dropped for lack of room, the last one because")
    assert [displacements.note("x", 101.0) for _ in range(5)] == [None] * 5
    later = displacements.note("y", 100.0 + NOTICE_EVERY_S)
    assert later is not None
    assert later.startswith("HTTP: 6 connections")
