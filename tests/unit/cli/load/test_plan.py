"""The plan of a load: the clients of each process, and the times at which messages are due."""

from __future__ import annotations

import pytest

from broker.cli.load.plan import (
    NO_LIMIT,
    SECOND_NS,
    LoadPattern,
    Role,
    SendingTimes,
    Share,
)
from tests.unit.cli.load.plans import plan_of

pytestmark = pytest.mark.requirement("OPS-18")

START_NS = 7 * SECOND_NS
MS = SECOND_NS // 1000


def times_of(number: int = 0, **changes: object) -> SendingTimes:
    return SendingTimes(plan_of(**changes), number, START_NS)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {},
            [Share(Role.RECEIVER, range(1)), Share(Role.SENDER, range(1))],
            id="one of each: receivers are attached first",
        ),
        pytest.param(
            {"senders": 3, "processes": 2},
            [
                Share(Role.RECEIVER, range(1)),
                Share(Role.SENDER, range(0, 3, 2)),
                Share(Role.SENDER, range(1, 3, 2)),
            ],
            id="three senders in two processes",
        ),
        pytest.param(
            {"pattern": LoadPattern.REQUEST_REPLY},
            [Share(Role.RESPONDER, range(1)), Share(Role.REQUESTER, range(1))],
            id="requests need a responder",
        ),
    ],
)
def test_the_clients_of_each_process(changes: dict[str, object], expected: list[Share]) -> None:
    shares = list(plan_of(**changes).shares())
    assert [(each.role, list(each.numbers)) for each in shares] == [
        (each.role, list(each.numbers)) for each in expected
    ]
    assert [each.sends_first for each in shares] == sorted(each.sends_first for each in shares)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(LoadPattern.QUEUE, 1), (LoadPattern.TOPIC, 4), (LoadPattern.REQUEST_REPLY, 1)],
)
def test_how_many_receivers_get_each_message(pattern: LoadPattern, expected: int) -> None:
    assert plan_of(pattern=pattern, receivers=4).copies == expected


@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [(-1, 0), (0, 1), (9, 1), (10, 2), (999, 100), (1999, 200), (2000, 200), (9000, 200)],
)
def test_messages_due_at_a_rate(after_ms: int, expected: int) -> None:
    times = times_of(rate=100.0, warm_up_s=1.0, duration_s=1.0)
    assert times.due_by(START_NS + after_ms * MS) == expected


def test_senders_take_turns() -> None:
    times = [times_of(number, senders=4, rate=100.0) for number in range(4)]
    due = sorted(each.due_ns(index) for each in times for index in range(3))
    assert due == [START_NS + index * 10 * MS for index in range(12)]


@pytest.mark.parametrize("rate", [0.7, 3.0, 33.3, 1000.0 / 3, 99_999.9])
def test_a_message_is_due_at_its_time_and_not_before(rate: float) -> None:
    times = times_of(rate=rate, duration_s=1e6)
    for index in range(2000):
        due_ns = times.due_ns(index)
        assert times.due_by(due_ns) == index + 1
        assert times.due_by(due_ns - 1) == index


def test_without_a_rate_all_messages_are_due_until_the_end() -> None:
    times = times_of(rate=None, warm_up_s=0.0, duration_s=1.0)
    assert times.due_by(START_NS - 1) == 0
    assert times.due_by(START_NS) == NO_LIMIT
    assert times.due_by(times.end_ns) == 0
