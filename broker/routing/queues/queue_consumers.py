"""The consumers of a queue, and the choice of the one that gets the next message."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.participants import Consumer
from broker.routing.queues.browser import Browsers
from broker.routing.queues.exclusive import Exclusivity


@final
class RoundRobin:
    """The consumers of a queue that may have room, in a round in which they take turns.

    A consumer that turns out to have no room leaves the round until it reports room again, so
    that idle consumers cost nothing. Higher priorities come first in the round; if all
    priorities are equal, the usual case, no consumer is ever moved within it.
    """

    def __init__(self) -> None:
        self._round: list[Consumer] = []
        self._at: i64 = 0
        self._differ = False

    def join(self, consumer: Consumer) -> None:
        """Add `consumer`, which may have room, behind those of its priority. Idempotent."""
        members = self._round
        if consumer in members:
            return
        if not members or members[-1].priority >= consumer.priority:
            members.append(consumer)
        else:
            members.insert(behind_equals(members, consumer.priority), consumer)
        self._differ = members[0].priority != members[-1].priority

    def leave(self, consumer: Consumer) -> None:
        """Remove `consumer`, which has no room or has detached. Idempotent."""
        if consumer in self._round:
            index = i64(self._round.index(consumer))
            del self._round[index]
            if index < self._at:
                self._at -= 1
            if self._differ and self._round:
                self._differ = self._round[0].priority != self._round[-1].priority

    def next(self) -> Consumer | None:
        """Return the consumer with room whose turn it is; None if no consumer has room."""
        members = self._round
        if self._differ:
            return self._next_by_priority()
        while members:
            if self._at >= i64(len(members)):
                self._at = 0
            consumer = members[self._at]
            if consumer.has_room():
                self._at += 1
                return consumer
            del members[self._at]
        return None

    def _next_by_priority(self) -> Consumer | None:
        """Return the first consumer with room, and move it behind those of its priority."""
        members = self._round
        while members:
            consumer = members[0]
            del members[0]
            if consumer.has_room():
                members.insert(behind_equals(members, consumer.priority), consumer)
                return consumer
        self._differ = False
        return None

    def size(self) -> i64:
        """Return the number of consumers in the round."""
        return i64(len(self._round))


def behind_equals(members: list[Consumer], priority: i64) -> int:
    """Return the index behind all `members` of that priority or a higher one."""
    at = len(members)
    while at > 0 and members[at - 1].priority < priority:
        at -= 1
    return at


@final
class QueueConsumers:
    """The consumers of one queue.

    `attached` are those that acquire messages, by ascending number; `round` has those of them that
    may have room. `browsers` get copies, and `exclusivity` says which consumer is served alone:
    both are None until they are needed.
    """

    def __init__(self, *, exclusive: bool) -> None:
        self.attached: Final[list[Consumer]] = []
        self.round = RoundRobin()
        self.browsers: Browsers | None = None
        self.exclusivity = Exclusivity(by_address=True) if exclusive else None
        self._draining: list[Consumer] = []
        self._last_number: i64 = 0

    def attach(self, consumer: Consumer) -> None:
        """Give `consumer` its number, and add it."""
        self._last_number += 1
        consumer.number = self._last_number
        self.attached.append(consumer)
        if consumer.exclusive and self.exclusivity is None:
            self.exclusivity = Exclusivity(by_address=False)

    def attach_browser(self, consumer: Consumer) -> None:
        """Add `consumer`, which gets copies of waiting entries and acquires none."""
        if self.browsers is None:
            self.browsers = Browsers()
        self.browsers.join(consumer)

    def detach(self, consumer: Consumer) -> bool:
        """Remove `consumer`; return whether it was one that acquires messages."""
        self.round.leave(consumer)
        self._end_drain(consumer)
        if self.browsers is not None:
            self.browsers.leave(consumer)
        if consumer not in self.attached:
            return False
        self.attached.remove(consumer)
        return True

    def ready(self, consumer: Consumer, *, drain: bool) -> None:
        """Serve `consumer`, which has credit.

        With `drain`, `nothing_waits` is called once the queue has nothing for it, unless its credit
        ends before; the next call replaces this one.
        """
        if self.is_browser(consumer):
            assert self.browsers is not None
            self.browsers.ready(consumer)
        elif not self.shuts_out(consumer):
            self.round.join(consumer)
        self._end_drain(consumer)
        if drain:
            self._draining.append(consumer)

    def _end_drain(self, consumer: Consumer) -> None:
        if self._draining and consumer in self._draining:
            self._draining.remove(consumer)

    def is_browser(self, consumer: Consumer) -> bool:
        """Return whether `consumer` is one of the browsers."""
        return self.browsers is not None and self.browsers.has(consumer)

    def shuts_out(self, consumer: Consumer) -> bool:
        """Return whether `consumer` stands by while another one is served alone."""
        return self.exclusivity is not None and self.exclusivity.shuts_out(consumer)

    def choose(self, acquired: i64) -> bool:
        """Choose the consumer that is served alone, if one is; return whether that has changed.

        `acquired` is the number of entries that consumers hold.
        """
        exclusivity = self.exclusivity
        if exclusivity is None or not exclusivity.choose(self.attached, acquired):
            return False
        self.round = RoundRobin()
        for consumer in self.attached:
            if not exclusivity.shuts_out(consumer):
                self.round.join(consumer)
        return True

    def is_successor_awaited(self) -> bool:
        """Return whether a consumer is to be served alone once others hold no more entries."""
        return self.exclusivity is not None and self.exclusivity.is_awaited

    def any_drains(self) -> bool:
        """Return whether a consumer or browser drains the queue."""
        return bool(self._draining)

    def take_draining(self) -> list[Consumer]:
        """Return the consumers that drain the queue and have credit left; they drain no more.

        A consumer without credit has used it up, which ends its drain, too (core 2.6.7).
        """
        draining = self._draining
        self._draining = []
        return [consumer for consumer in draining if consumer.has_credit()]

    def go_on_draining(self, consumer: Consumer) -> None:
        """Let `consumer` drain: messages may yet come that are there for it."""
        self._draining.append(consumer)

    def count(self) -> i64:
        """Return the number of consumers and browsers."""
        browsers = i64(0) if self.browsers is None else self.browsers.count()
        return i64(len(self.attached)) + browsers

    def node_deleted(self) -> None:
        """Notify every consumer and browser that the queue was deleted, and remove it."""
        for consumer in list(self.attached):
            consumer.node_deleted()
        self.attached.clear()
        self.round = RoundRobin()
        self._draining.clear()
        if self.browsers is not None:
            self.browsers.node_deleted()
