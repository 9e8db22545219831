"""The clock, the timers, the counters and the operator's lines that all of routing shares."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.log_events import Notice
from broker.routing.timer_queue import TimerCallback, TimerQueue
from broker.routing.turn_budget import TurnBudget
from broker.stats import Stats

RELEASED_IN_TURN: Final[i64] = 2000
"""Maximum scheduled messages that all queues release before the event loop serves sockets
(`docs/design/hostile-input.md` R7)."""

SWEPT_IN_TURN: Final[i64] = 10_000
"""Maximum entries that the sweeps of all queues look at before the event loop serves sockets."""


@final
class RoutingChange:
    """A node or a durable subscription that was created or deleted, or changed its owner.

    `name` is the address of a node of that `kind`, or of the topics of the subscription with
    `identity`. `dropped` messages were deleted with it.
    """

    def __init__(
        self,
        action: str,
        kind: str,
        name: str,
        *,
        identity: tuple[str | None, str, bool] | None = None,
        dropped: i64 = 0,
    ) -> None:
        self.action: Final = action
        self.kind: Final = kind
        self.name: Final = name
        self.identity: Final = identity
        self.dropped: Final[i64] = dropped


@final
class RoutingChanges:
    """The changes since they were last taken. None is noted while nobody records them."""

    def __init__(self) -> None:
        self.are_recorded = False
        self.found: list[RoutingChange] = []

    def take(self) -> list[RoutingChange]:
        """Return the changes, and forget them."""
        found = self.found
        self.found = []
        return found


@final
class RoutingContext:
    """The surroundings of each part of routing.

    `notices` are lines for the operator; the code that logs them empties the list. `changes` are
    those for the audit. `releases` and `sweeps` limit the work of a turn of the event loop.
    """

    def __init__(self, clock: Clock, stats: Stats) -> None:
        self.clock: Final = clock
        self.stats: Final = stats
        self.timer_queue: Final = TimerQueue()
        self.releases: Final = TurnBudget(RELEASED_IN_TURN, clock, self.timer_queue)
        self.sweeps: Final = TurnBudget(SWEPT_IN_TURN, clock, self.timer_queue)
        self.notices: Final[list[Notice]] = []
        self.changes: Final = RoutingChanges()

    def call_after(self, delay_ms: i64, due: TimerCallback) -> None:
        """Call `due.due` in `delay_ms` milliseconds or soon after, never earlier."""
        self.timer_queue.at(self.clock.now_ms() + delay_ms, due)
