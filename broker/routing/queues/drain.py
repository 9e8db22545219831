"""Drains: a consumer takes what waits, and then learns that nothing more does (core 2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from broker.routing.entries.participants import Consumer

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


@final
class Drains:
    """The consumers of a queue, browsers included, that drain it."""

    def __init__(self) -> None:
        self._consumers: list[Consumer] = []

    def any(self) -> bool:
        """Whether somebody drains."""
        return bool(self._consumers)

    def join(self, consumer: Consumer) -> None:
        """`consumer` drains from now on."""
        self._consumers.append(consumer)

    def leave(self, consumer: Consumer) -> None:
        """`consumer` does not drain, if it did."""
        if self._consumers and consumer in self._consumers:
            self._consumers.remove(consumer)

    def clear(self) -> None:
        """Nobody drains."""
        self._consumers.clear()

    def end(self, queue: Queue) -> None:
        """Tell those for whom nothing is left in `queue`, after it has dispatched."""
        still: list[Consumer] = []
        for consumer in self._consumers:
            if not consumer.has_credit():
                continue
            if _is_served(consumer, queue):
                consumer.nothing_waits()
            else:
                still.append(consumer)
        self._consumers = still


def _is_served(consumer: Consumer, queue: Queue) -> bool:
    """Whether `consumer` has all there is for it. With room it has, unless it has yet to judge.

    What has to be loaded may be for it, and so may what waits only for a commit, or for the next
    turn of the event loop.
    """
    if queue.waiting > 0 and (queue.gate.is_closed or queue.rests):
        return False
    selection = queue.selection
    if queue.browsers.has(consumer):
        wanted = None if consumer.filter is None else selection
        return not queue.browsers.has_more(consumer, queue.backlogs, wanted)
    if queue.holds_too_much():
        return True
    if consumer.filter is None or selection is None:
        return not queue.awaits_load and (consumer.has_room() or queue.waiting == 0)
    if queue.exclusivity.shuts_out(consumer):
        return True
    return not selection.has_any(consumer, queue.backlogs, queue.router.clock.now_ms())
