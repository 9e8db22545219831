"""The surroundings that all parts of routing share."""

from broker.routing.context import RoutingContext
from broker.routing.timer_queue import TimerCallback
from broker.stats import Stats
from tests.support.clock import SimulatedClock


class Calls(TimerCallback):
    """A timer callback that records when it is called."""

    def __init__(self) -> None:
        self.at: list[int] = []

    def due(self, now_ms: int) -> None:
        self.at.append(now_ms)


def test_a_callback_is_called_after_its_delay_and_not_before() -> None:
    clock = SimulatedClock()
    context = RoutingContext(clock, Stats())
    calls = Calls()
    began_ms = clock.now_ms()
    context.call_after(50, calls)
    for advance_ms in (49, 1, 100):
        clock.advance(advance_ms)
        context.timer_queue.tick(clock.now_ms())
    assert calls.at == [began_ms + 50]
