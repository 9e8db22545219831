"""Records of the model of a simulated run: messages, nodes with their entries, consumers."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from broker.amqp.outcomes import DeliveryState


@dataclass(eq=False)
class Left:
    """A delivery that an earlier link has left unsettled, and a later one may go on with.

    `entry` is None once the delivery has its `outcome`, of which the client is still to be told.
    If it `is_partial`, its entry has gone back, and the client is told that it is aborted. If it
    `waits`, the next attach decides about it.
    """

    entry: Entry | None
    outcome: DeliveryState | None = None
    is_partial: bool = False
    waits: bool = False


class Wrong(AssertionError):  # noqa: N818 - no error of a program, but a verdict on one
    """A verdict: the broker has done something that it must not do."""


@dataclass(frozen=True)
class Message:
    """A message as its sender wrote it.

    `bare` are the bytes that no broker may change; `size` is the size that counts for limits, in
    bytes. `ttl`, `arrived` and `due` are in ms.
    """

    id: int
    bare: bytes
    size: int
    durable: bool = False
    priority: int = 4
    ttl: int = 0
    arrived: int = 0
    is_noted: bool = False
    due: int = 0
    publisher: str = ""

    def is_over(self, now: int) -> bool:
        return self.ttl > 0 and now >= self.arrived + self.ttl


SELECTORS: Final[dict[str, Callable[[Message], bool]]] = {
    "": lambda message: True,  # noqa: ARG005
    "JMSPriority >= 4": lambda message: message.priority >= 4,
    "JMSPriority = 0 OR JMSPriority = 9": lambda message: message.priority in (0, 9),
    "JMSDeliveryMode = 'PERSISTENT'": lambda message: message.durable,
    "NOT JMSDeliveryMode = 'PERSISTENT'": lambda message: not message.durable,
}
"""Selectors of receivers, each with a function that says which messages it selects."""


@dataclass(frozen=True)
class Wish:
    """The messages that a receiver asks for: those that `selector` selects.

    Messages published by the container `excluded` are not among them; "" excludes none.
    """

    selector: str = ""
    excluded: str = ""

    def takes(self, message: Message) -> bool:
        is_own = self.excluded != "" and message.publisher == self.excluded
        return not is_own and SELECTORS[self.selector](message)


EVERYTHING: Final = Wish()


@dataclass(frozen=True)
class Rule:
    """The configuration of an address; limits of 0 mean no limit."""

    limit: int = 0
    bytes_limit: int = 0
    attempts: int = 3
    dead_letter: str = "DLQ"
    expiry: str = ""
    pause: int = 0
    "Delay in ms before the next delivery of an entry whose delivery failed."


@dataclass(eq=False)
class Node:
    """A queue with its entries, or a topic with the queues of its subscriptions."""

    kind: str
    address: str
    rule: Rule
    owner: object = None
    topic: Node | None = None
    wish: Wish = EVERYTHING
    is_deleted: bool = False
    is_loose: bool = False
    "True if messages of other queues arrive here at a time that the broker chooses."
    waiting: list[Entry] = field(default_factory=list)
    held: dict[Entry, Consumer] = field(default_factory=dict)
    asleep: list[Entry] = field(default_factory=list)
    "Entries that are not available yet, ordered by the time at which they will be."
    subscriptions: list[Node] = field(default_factory=list)
    count: int = 0

    def there(self) -> list[Entry]:
        return [*self.waiting, *self.held, *self.asleep]

    def place(self, entry: Entry) -> None:
        """Give `entry` the last place within its priority."""
        self.count += 1
        entry.order = (9 - entry.message.priority, self.count)

    def lay_down(self, entry: Entry, until: int) -> None:
        """Make `entry` unavailable until the time `until`, in ms."""
        entry.wakes = until
        insort(self.asleep, entry, key=lambda each: each.wakes)

    def wake(self, now: int) -> int:
        """Make due entries available; return the number that return after a failed delivery."""
        returned = 0
        while self.asleep and self.asleep[0].wakes <= now:
            entry = self.asleep.pop(0)
            if not entry.is_returned:
                self.place(entry)
            elif not entry.message.is_over(now):
                returned += 1
            insort(self.waiting, entry)
        return returned


class Ending(Enum):
    """The event that ended a link: its detach (also by a stolen name) or the end of its owner."""

    CLOSED = 0
    DETACHED = 1
    SESSION = 2
    CONNECTION = 3


@dataclass(eq=False)
class Creation:
    """A dynamic node, which lives until the event that its terminus names."""

    node: Node
    lives_until: Ending
    session: object = None
    "The session of the ended link, while the link may still attach again."

    def ends_at(self, ending: Ending) -> bool:
        return ending is Ending.CLOSED or ending.value >= self.lives_until.value


@dataclass(eq=False)
class Entry:
    """A message in one queue; `order` is its place, which a return to the queue does not change."""

    order: tuple[int, int]
    message: Message
    node: Node
    delivery_count: int = 0
    failures: int = 0
    is_returned: bool = False
    was_given: bool = False
    "True if a consumer has received it, from this broker or an earlier one on the same store."
    is_recovered: bool = False
    "True if an earlier broker stored it and this one has not delivered it yet."
    is_from_store: bool = False
    """True if an earlier broker stored it.

    Its delivery-count may then be 1 for that reason alone, and that 1 is not stored.
    """

    wakes: int = 0
    refused: set[Consumer] = field(default_factory=set)
    releases: Counter[Consumer] = field(default_factory=Counter)
    failures_before: dict[Consumer, int] = field(default_factory=dict)
    paused: dict[Consumer, int] = field(default_factory=dict)

    def __lt__(self, other: Entry) -> bool:
        return self.order < other.order

    def may_say(self, told: tuple[int, bool]) -> bool:
        """Return whether a delivery may have that delivery-count and first-acquirer.

        After a restart an entry may claim an earlier delivery, and must if there was one (RCV-08).
        """
        if self.is_recovered:
            counts = {max(1, self.delivery_count)}
            if not self.was_given:
                counts.add(self.delivery_count)
            return told[0] in counts
        return (self.delivery_count, not self.is_returned) == told

    def note_release(self, consumer: Consumer) -> None:
        """Count another release in a row; a failed attempt of that consumer starts the row anew."""
        if self.failures_before.get(consumer, 0) != consumer.failures:
            self.failures_before[consumer] = consumer.failures
            self.releases[consumer] = 0
        self.releases[consumer] += 1

    def is_free_for(self, consumer: Consumer, now: int) -> bool:
        paused = self.paused.get(consumer, 0)
        is_free = consumer not in self.refused and now >= paused
        return is_free and not self.message.is_over(now) and consumer.wish.takes(self.message)


@dataclass(eq=False)
class Consumer:
    """A consumer of a node; `seen` is how far a browser has come, by priority."""

    node: Node | None = None
    browses: bool = False
    wish: Wish = EVERYTHING
    got: list[Entry] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)
    failures: int = 0

    def come_past(self, entry: Entry) -> None:
        priority, place = entry.order
        self.seen[priority] = max(place, self.seen.get(priority, 0))

    def pass_by(self, entries: Iterable[Entry]) -> None:
        """Mark entries as seen that the browser's selector excludes."""
        for entry in entries:
            if not self.wish.takes(entry.message):
                self.come_past(entry)

    def has_come_past(self, entry: Entry) -> bool:
        priority, place = entry.order
        return place <= self.seen.get(priority, 0)
