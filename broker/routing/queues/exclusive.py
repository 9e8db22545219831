"""Exclusive use of a queue: one consumer at a time gets all messages, the others stand by.

A queue is exclusive by the setting of its address, or while a consumer that asked for exclusive
use is attached.
"""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.participants import Consumer


def successor(consumers: list[Consumer], *, by_address: bool) -> Consumer | None:
    """Return the next consumer for exclusive use: the highest priority, then the first attached.

    If the queue is not exclusive `by_address`, only consumers that asked for it are considered.
    None if there is none.
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
    """The exclusive use of one queue: only the consumer `sole` is served while it is `in_force`.

    No consumer is served (`sole` is None) while others still hold entries of the queue
    (`is_awaited`).
    """

    def __init__(self, *, by_address: bool) -> None:
        self.in_force = by_address
        self.sole: Consumer | None = None
        self.is_awaited = False
        self._by_address: Final = by_address

    def shuts_out(self, consumer: Consumer) -> bool:
        """Return whether `consumer` has to stand by."""
        return self.in_force and consumer is not self.sole

    def choose(self, consumers: list[Consumer], held: i64) -> bool:
        """Choose the consumer that is served; True if that may have changed.

        `held` is the number of acquired entries: a new consumer is served once it is 0.
        """
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
