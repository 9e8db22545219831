"""The decision whether writing waits for consumers, by measured latencies on a simulated clock."""

from collections.abc import Iterable

import pytest

from broker.routing.credit.ack_latency import GIVEN_UP_AFTER, NEVER_SEEN, NOTHING, AckLatency
from broker.routing.credit.commit_delay import PATIENCE, CommitDelay

HOLD_US = 2000
ENOUGH = 12
"""Settlements after which the latency that they have in common decides."""


class Timed:
    """The acknowledgement latency of a queue, and messages in turn, each in a batch of its own."""

    def __init__(self) -> None:
        self.ack_latency = AckLatency(CommitDelay(HOLD_US))
        self.now_us = 1_000_000
        self.number = 0

    def arrive(self) -> int:
        self.number += 1
        self.ack_latency.arrived(self.number, self.number, self.now_us)
        return self.number

    def settle(self, lag_us: int) -> None:
        """Let a message arrive, and be settled after `lag_us` microseconds."""
        number = self.arrive()
        self.now_us += lag_us
        assert self.ack_latency.timed == number
        self.ack_latency.settled(self.now_us)

    def settle_all(self, lags_us: Iterable[int]) -> None:
        for lag_us in lags_us:
            self.settle(lag_us)


def prompt() -> Timed:
    timed = Timed()
    timed.settle_all([100] * ENOUGH)
    assert timed.ack_latency.is_prompt
    return timed


def test_a_new_queue_is_not_prompt() -> None:
    timed = Timed()
    timed.arrive()
    assert not timed.ack_latency.is_prompt


HISTORIES = [
    ("one settlement proves nothing", [100], False),
    ("many prompt ones do", [100] * ENOUGH, True),
    ("half of the hold is prompt enough", [HOLD_US // 2] * 40, True),
    ("a little more is not", [HOLD_US // 2 + 100] * 40, False),
    ("slow ones are slow, however many", [50_000] * 40, False),
    ("a slow one among prompt ones changes nothing", [100] * ENOUGH + [5_000] + [100] * 3, True),
    ("a queue that has become slow is found out", [100] * ENOUGH + [5_000] * 4, False),
    ("one that has become prompt, too", [50_000] * 40 + [100] * ENOUGH, True),
    ("half slow, half prompt is slow", [100, 50_000] * 20, False),
]


@pytest.mark.parametrize(
    ("lags_us", "is_prompt"), [each[1:] for each in HISTORIES], ids=[each[0] for each in HISTORIES]
)
def test_what_settlements_prove(lags_us: list[int], is_prompt: bool) -> None:
    timed = Timed()
    timed.settle_all(lags_us)
    assert timed.ack_latency.is_prompt == is_prompt


def test_a_prompt_queue_that_slows_down_a_little_stays_prompt() -> None:
    """Held messages are still settled in time; a state that keeps changing helps no client."""
    timed = prompt()
    timed.settle_all([HOLD_US * 3 // 4] * 40)
    assert timed.ack_latency.is_prompt


def test_a_message_that_was_written_unsettled_ends_it_at_once() -> None:
    timed = prompt()
    timed.arrive()
    timed.now_us += PATIENCE * HOLD_US + 1
    timed.arrive()
    assert not timed.ack_latency.is_prompt


def test_messages_in_one_batch_cost_nothing_while_one_is_timed() -> None:
    ack_latency = AckLatency(CommitDelay(HOLD_US))
    ack_latency.arrived(1, 7, 0)
    assert (ack_latency.timed, ack_latency.scope) == (1, 7), "others of batch 7 need not ask"


def test_when_the_timed_one_has_gone_the_next_is_timed() -> None:
    timed = Timed()
    timed.settle(100)
    assert (timed.ack_latency.timed, timed.ack_latency.scope) == (NOTHING, NEVER_SEEN)
    assert timed.ack_latency.timed != timed.arrive() - 1
    assert timed.ack_latency.timed == timed.number


def test_a_message_that_nobody_consumed_tells_nothing() -> None:
    timed = prompt()
    lag_us = timed.ack_latency.lag_us
    timed.arrive()
    timed.now_us += 50_000
    timed.ack_latency.left()
    timed.arrive()
    assert (timed.ack_latency.lag_us, timed.ack_latency.is_prompt) == (lag_us, True)


def test_a_message_that_stays_unsettled_for_long_is_not_waited_for() -> None:
    timed = Timed()
    first = timed.arrive()
    timed.now_us += HOLD_US * GIVEN_UP_AFTER - 1
    timed.arrive()
    assert timed.ack_latency.timed == first
    timed.now_us += 1
    last = timed.arrive()
    assert timed.ack_latency.timed == last


def test_without_consumers_there_is_nobody_to_be_prompt() -> None:
    timed = prompt()
    timed.ack_latency.nobody_consumes(timed.number)
    assert not timed.ack_latency.is_prompt
    timed.settle(100)
    assert timed.ack_latency.is_prompt, "what was measured before still counts"
