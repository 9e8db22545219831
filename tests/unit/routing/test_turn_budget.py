"""A budget for the work of a turn of the event loop."""

from __future__ import annotations

from broker.routing.timer_queue import NOTHING, TimerQueue
from broker.routing.turn_budget import TurnBudget
from tests.support.clock import SimulatedClock


def test_a_spent_budget_is_renewed_in_the_next_turn() -> None:
    clock, timers = SimulatedClock(), TimerQueue()
    budget = TurnBudget(10, clock, timers)
    budget.spend(9)
    assert (budget.left, timers.next_deadline_ms()) == (1, NOTHING)
    budget.spend(1)
    budget.spend(5)
    assert (budget.left, len(timers)) == (-5, 1)
    timers.tick(clock.now_ms())
    assert (budget.left, len(timers)) == (10, 0)
