"""Replays with a rate: slices, their times, and the error that tells where one broke off."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

import pytest

from broker.routing.batches.staging_area import BATCH_BYTES_MAX, BATCH_MESSAGES_MAX
from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.errors import ReplayError
from pyspark_amqp.jobs.layout import COLUMNS, MESSAGES
from pyspark_amqp.jobs.replay import (
    STAGED_BYTES_MAX,
    STAGED_MESSAGES_MAX,
    Plan,
    ReplayChoice,
    chosen,
    numbered,
    paced,
    slices,
)

SLICES: Final = [
    ("two a second", 5, 2.0, 0, [(0, 0, 2), (1, 2, 4), (2, 4, 5)]),
    ("one in two seconds", 3, 0.5, 0, [(0, 0, 1), (2, 1, 2), (4, 2, 3)]),
    ("some are skipped", 5, 2.0, 3, [(0, 3, 5)]),
    ("all at once", 3, 1000.0, 0, [(0, 0, 3)]),
    ("nothing is left", 3, 1.0, 3, []),
]


@pytest.mark.requirement("PIP-68")
@pytest.mark.parametrize(
    ("total", "rate", "skip", "expected"), [each[1:] for each in SLICES], ids=[s[0] for s in SLICES]
)
def test_slices(total: int, rate: float, skip: int, expected: list[tuple[float, int, int]]) -> None:
    assert list(slices(total, rate, skip)) == expected


class Clock:
    """A clock in seconds that advances while a replay waits or sends."""

    def __init__(self, sending_s: float) -> None:
        self.now = 100.0
        self.sending_s = sending_s
        self.sent: list[tuple[float, int, int]] = []

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def put(self, first: int, behind: int) -> None:
        self.sent.append((self.now - 100, first, behind))
        self.now += self.sending_s

    def run(self, total: int, rate: float) -> None:
        paced(total, rate, self.put, skip=0, now=lambda: self.now, wait=self.wait)


@pytest.mark.requirement("PIP-68")
def test_nothing_goes_before_its_time() -> None:
    clock = Clock(sending_s=0.25)
    clock.run(6, 2)
    assert clock.sent == [(0, 0, 2), (1, 2, 4), (2, 4, 6)]
    slow = Clock(sending_s=1.5)
    slow.run(6, 2)
    assert slow.sent == [(0, 0, 2), (1.5, 2, 4), (3, 4, 6)], "as fast as it can"


@pytest.mark.requirement("PIP-68")
def test_it_says_where_it_broke_off() -> None:
    def put(first: int, behind: int) -> None:
        assert behind > first
        if first == 4:
            raise OSError("gone")

    with pytest.raises(ReplayError, match="after 4 of 9 messages: --skip 4 goes on there"):
        paced(9, 2, put, skip=0, now=lambda: 0.0, wait=lambda _: None)


PLANS: Final = [
    (Plan(0, 0, 0, None, None, {}), "nothing is sent"),
    (Plan(3, 0, 1, None, None, {}), "1 of 3 messages were archived without their bytes"),
    (Plan(3, 9, 0, None, None, {}, (), 2), "2 of 3 messages have a messageFormat other"),
    (Plan(3, 9, 0, None, None, {}, ("ID:7",)), "1 of the ids are not in the archive: ID:7"),
]


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(("plan", "text"), PLANS)
def test_what_cannot_be_sent(plan: Plan, text: str) -> None:
    with pytest.raises(ReplayError, match=text):
        plan.check()


def test_what_can_be_sent() -> None:
    plan = Plan(3, 9, 0, None, None, {"q": 3})
    plan.check()
    plan.check(skip=3)
    with pytest.raises(ReplayError, match="--skip 4: only 3 messages are meant"):
        plan.check(skip=4)


@pytest.mark.requirement("PIP-69")
def test_what_the_broker_would_not_take_as_one_batch() -> None:
    assert (STAGED_MESSAGES_MAX, STAGED_BYTES_MAX) == (BATCH_MESSAGES_MAX, BATCH_BYTES_MAX)
    most = Plan(STAGED_MESSAGES_MAX, STAGED_BYTES_MAX, 0, None, None, {})
    most.check(is_one_batch=True)
    larger = replace(most, bytes=most.bytes + 1), replace(most, messages=most.messages + 1)
    for each in larger:
        each.check()
        with pytest.raises(ReplayError, match="--rate 1000 sends them in slices"):
            each.check(is_one_batch=True)


UNPLACED: Final[dict[str, list[dict[str, object]]]] = {
    "ids": [{"JMSMessageID": f"ID:{number}", "amqp": b"x"} for number in range(3000)],
    "bytes alone": [{"amqp": b"%d" % number} for number in range(3000)],
}
"""Messages of another broker, which tells neither positions nor times of arrival."""


@pytest.mark.requirement("PIP-68")
@pytest.mark.parametrize("case", UNPLACED)
def test_messages_without_a_place_have_the_same_numbers_each_time(case: str) -> None:
    blank = dict.fromkeys(COLUMNS[MESSAGES])
    rows = [tuple((blank | {"address": "orders"} | each).values()) for each in UNPLACED[case]]
    found = []
    for seed in range(2):
        random.Random(seed).shuffle(rows)
        with duckdb_engine() as engine:
            archived = engine.table(COLUMNS[MESSAGES], rows)
            numbers = numbered(chosen(archived, ReplayChoice())).rows()
        numbers.sort(key=lambda row: int(row["number"]))
        found.append([(row["JMSMessageID"], row["amqp"]) for row in numbers])
    assert found[0] == found[1]
