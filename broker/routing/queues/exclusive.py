"""Exclusive use of a queue: one consumer at a time gets everything, the others stand by.

An address is exclusive by its setting, or while a consumer is there that asked for it.
"""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.participants import Consumer
from broker.routing.queues.dispatch import RoundRobin


def successor(consumers: list[Consumer], *, by_address: bool) -> Consumer | None:
    """Who is next to have a queue alone: the highest priority, then who came first.

    Where the address does not say so, only those count that asked for it.
    """
    best: Consumer | None = None
    for consumer in consumers:
        if not by_address and not consumer.exclusive:
            continue
        if best is None or consumer.priority > best.priority:
            best = consumer
    return best


@final
class Exclusivity:
    """Which consumer has a queue alone: `sole`, while `in_force`.

    Nobody has it while others still hold something of the queue (`is_awaited`).
    """

    def __init__(self, *, by_address: bool) -> None:
        self.in_force = by_address
        self.sole: Consumer | None = None
        self.is_awaited = False
        self._by_address: Final = by_address

    def shuts_out(self, consumer: Consumer) -> bool:
        """Whether `consumer` has to stand by."""
        return self.in_force and consumer is not self.sole

    def turn_of(self, consumers: list[Consumer]) -> RoundRobin:
        """Those of `consumers` that are served."""
        turn = RoundRobin()
        for consumer in consumers:
            if not self.shuts_out(consumer):
                turn.join(consumer)
        return turn

    def choose(self, consumers: list[Consumer], held: i64) -> bool:
        """Find out who is served now; `held` counts what is acquired. True where that changes."""
        wanted = successor(consumers, by_address=self._by_address)
        self.is_awaited = False
        if wanted is None:
            changes = self.in_force and not self._by_address
            self.in_force = self._by_address
            self.sole = None
            return changes
        if self.sole is not None and self.sole in consumers:
            return False
        self.in_force = True
        self.is_awaited = held > 0
        self.sole = None if self.is_awaited else wanted
        return True
