"""The work of the next round: queues to dispatch, and nodes that links or messages have left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from broker.clock import Clock
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.node import Node
    from broker.routing.queues.queue import Queue


@final
class Rounds:
    """Queues and nodes to look at in the next round, each added by itself.

    Queues in `woken` are dispatched: `Queue.wake` adds each once. Nothing is dispatched while
    messages come in: all woken queues are dispatched together, so that output gathers
    (`docs/design/data-path.md`, rule 9). Nodes in `paced` have producers that wait for consumers to
    catch up. From nodes in `left` a link or a message has departed, which perhaps was the last one.
    """

    def __init__(self, clock: Clock) -> None:
        self.woken: list[Queue] = []
        self.paced: list[Node] = []
        self.left: list[Node] = []
        self._clock: Final = clock

    def dispatch(self, batch: Batch) -> None:
        """Dispatch woken queues until none is left."""
        now_ms = self._clock.now_ms()
        while self.woken:
            woken = self.woken
            self.woken = []
            for queue in woken:
                queue.is_woken = False
                queue.dispatch(now_ms, batch)

    def resume_producers(self) -> None:
        """Let producers go on whose consumers have caught up."""
        self.paced = [node for node in self.paced if node.resume_producers()]

    def take_left(self) -> list[Node]:
        """Return the nodes that links or messages have left, and forget them."""
        left = self.left
        self.left = []
        return left
