"""The evaluations of filters in one turn of the event loop, by all queues and topics together."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.routing.context import RoutingContext
from broker.routing.turn_budget import TurnBudget

JUDGED_IN_TURN: Final[i64] = 4000
"""Evaluations after which no other queue begins to judge, and publishers are not read on, before
the next turn of the event loop."""

STEPS_PER_EVALUATION: Final[i64] = 100
"""Steps of a selector that count as one more evaluation: 10 µs at most, compiled."""

COPIES_PER_EVALUATION: Final[i64] = 16
"""Entries of subscriptions for one message that count as one evaluation: 8 µs of work, compiled."""


def evaluations_in(steps: i64) -> i64:
    """Return the evaluations as which one that took so many steps counts."""
    return 1 + steps // STEPS_PER_EVALUATION


@mypyc_attr(allow_interpreted_subclasses=True)
class JudgingWatcher:
    """Is told when the evaluations of a turn are spent."""

    @abstractmethod
    def judged_enough(self) -> None:
        """Read no more from the client that publishes now until the next turn of the event loop."""


@final
class Judging(TurnBudget):
    """The evaluations that are left in this turn of the event loop, for queues and topics."""

    watcher: JudgingWatcher | None = None

    def __init__(self, context: RoutingContext) -> None:
        super().__init__(JUDGED_IN_TURN, context.clock, context.timer_queue)

    def publish(self, evaluations: i64) -> None:
        """Count `evaluations` for a message that a client sends to a topic, or work like them."""
        self.spend(evaluations)
        if self.left <= 0 and self.watcher is not None:
            self.watcher.judged_enough()
