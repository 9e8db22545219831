"""Drains: a consumer takes the waiting messages, and is told when none is left (core 2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from broker.routing.entries.participants import Consumer

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


@final
class Drains:
    """The consumers of a queue, including browsers, that drain it."""

    def __init__(self) -> None:
        self._consumers: list[Consumer] = []

    def any(self) -> bool:
        """Return whether any consumer drains."""
        return bool(self._consumers)

    def join(self, consumer: Consumer) -> None:
        """Add `consumer`, which drains from now on."""
        self._consumers.append(consumer)

    def leave(self, consumer: Consumer) -> None:
        """Remove `consumer` if it drains."""
        if self._consumers and consumer in self._consumers:
            self._consumers.remove(consumer)

    def clear(self) -> None:
        """Remove all consumers."""
        self._consumers.clear()

    def end(self, queue: Queue) -> None:
        """Tell the consumers for which `queue` has nothing left; call after its dispatch."""
        still: list[Consumer] = []
        for consumer in self._consumers:
            if not consumer.has_credit():
                continue  # it has used its credit up, which ends its drain, too
            if _is_served(consumer, queue):
                consumer.nothing_waits()
            else:
                still.append(consumer)
        self._consumers = still


def _is_served(consumer: Consumer, queue: Queue) -> bool:
    """Return whether `consumer` has got every message that is there for it.

    A consumer with room left has, unless its filter has not been evaluated on all entries. Entries
    that have to be loaded, or that wait only for a commit or for the next turn of the event loop,
    may be for it.
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
