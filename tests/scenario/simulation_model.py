"""A small model of what a broker may do with messages, against which simulated runs are checked.

It is informed of what the broker has read, in that order, and raises `Wrong` if the broker then
writes something that it must not, or does not write something that it could.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from broker.amqp.outcomes import Accepted, DeliveryState, Modified, Rejected
from tests.scenario.simulation_records import Consumer, Entry, Message, Node, Rule, Wrong


class Model:
    """All nodes, and the counters that the broker should show."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self.rules = rules
        self.nodes: dict[tuple[str, str], Node] = {}
        self.sleepy: dict[Node, None] = {}
        self.stats: Counter[str] = Counter()
        self.now = 0
        self.ever: dict[tuple[Node, int], Message] = {}
        "Every message that was put into a queue, as it was put there last, by queue and number."
        self.given: set[tuple[Node, int]] = set()
        "Every message that some consumer of a queue has received, by queue and number."

    def node(self, kind: str, address: str) -> Node:
        if (kind, address) not in self.nodes:
            loose = address in {each.expiry for each in self.rules.values()} | {"DLQ"}
            rule = self.rules.get(address, Rule())
            self.nodes[kind, address] = Node(kind, address, rule, is_loose=loose)
        return self.nodes[kind, address]

    def put(self, node: Node, message: Message, *, limited: bool = True) -> bool:
        """Put `message` into `node`; return whether it is accepted, False if the node is full.

        A topic puts it into the queues of its subscriptions. A `limited` call observes the limits.
        """
        if node.kind == "topic":
            queues = [queue for queue in node.subscriptions if queue.wish.takes(message)]
            puts = [self.put(queue, message) for queue in queues]
            return all(puts)
        there = node.there()
        size = sum(entry.message.size for entry in there) + message.size
        is_full = 0 < node.rule.limit <= len(there) or 0 < node.rule.bytes_limit < size
        if limited and is_full:
            return False
        entry = Entry((0, 0), message, node)
        self.ever[node, message.id] = message
        node.place(entry)
        if message.due > self.now:
            self._lay_down(entry, message.due)
        else:
            insort(node.waiting, entry)
        return True

    def was_published(self, number: int) -> bool:
        """Return whether subscriptions had copies of the message.

        No producer waits until the copies of non-durable subscriptions are stored.
        """
        return any(node.topic is not None for node, each in self.ever if each == number)

    def _lay_down(self, entry: Entry, until: int) -> None:
        self.sleepy[entry.node] = None
        entry.node.lay_down(entry, until)

    def wake(self) -> None:
        """Make all entries available that are due."""
        for node in self.sleepy:
            self.stats["requeued"] += node.wake(self.now)

    def gave(self, consumer: Consumer, number: int, told: tuple[int, bool]) -> Entry:
        """Return the entry that `consumer` has received now; raise Wrong if it may not have it.

        `told` is the delivery-count and first-acquirer of that delivery.
        """
        node = consumer.node
        assert node is not None
        if node.is_loose:
            self._let_expire(node, number)
        now = self.now
        found = [each for each in node.waiting if each.message.id == number]
        if consumer.browses:  # another consumer may have taken it just now
            found += [each for each in node.held if each.message.id == number]
            found = sorted(each for each in found if not consumer.has_come_past(each))
        if not found:
            raise Wrong(f"message {number} of {node.address} was given or shown, but is not there")
        free = [
            each
            for each in found
            if each.is_free_for(consumer, now)
            or (consumer.browses and consumer.wish.takes(each.message))
        ]
        if not free or free[0].message.is_over(now):
            raise Wrong(f"message {number} is over, or not for this consumer (again, or yet)")
        fits = [each for each in free if each.may_say(told)]
        if not fits:
            raise Wrong(f"message {number}: (delivery-count, first-acquirer) is {told}")
        entry = fits[0]
        if consumer.browses:
            consumer.pass_by(each for each in node.waiting if each < entry)
            consumer.come_past(entry)
            return entry
        node.waiting.remove(entry)
        node.held[entry] = consumer
        entry.was_given = True
        self.given.add((entry.node, entry.message.id))
        entry.delivery_count = told[0]
        entry.is_recovered = False
        consumer.got.append(entry)
        return entry

    def _let_expire(self, target: Node, number: int) -> None:
        """Move the first expired entry of that number to `target`, if its node expires to there."""
        for node in self.nodes.values():
            there = [*node.waiting, *node.asleep]
            for entry in there if node.rule.expiry == target.address else ():
                if entry.message.id == number and entry.message.is_over(self.now):
                    (node.waiting if entry in node.waiting else node.asleep).remove(entry)
                    self.put(target, replace(entry.message, ttl=0, due=0), limited=False)
                    self.stats["expired"] += 1
                    return

    def settle(self, entry: Entry, outcome: DeliveryState | None, *, explicit: bool) -> None:
        """Apply the outcome that the consumer gave; or, if not `explicit`, its default-outcome."""
        node = entry.node
        consumer = node.held.pop(entry)
        if isinstance(outcome, Accepted):
            self.stats["acknowledged"] += 1
            return
        failed = isinstance(outcome, Modified) and outcome.delivery_failed
        elsewhere = isinstance(outcome, Modified) and outcome.undeliverable_here and explicit
        entry.delivery_count += failed
        entry.failures += failed and explicit
        consumer.failures += failed and explicit
        if elsewhere:
            entry.refused.add(consumer)
        if not failed and not elsewhere:
            entry.note_release(consumer)
            often = entry.releases[consumer] - 10
            if often >= 0:
                entry.paused[consumer] = self.now + min(5000, 100 << often)
        is_exhausted = failed and explicit and 0 < node.rule.attempts <= entry.failures
        if isinstance(outcome, Rejected) or is_exhausted:
            self._bury(entry)
            return
        entry.is_returned = True
        if failed and explicit and node.rule.pause:
            self._lay_down(entry, self.now + node.rule.pause)
            return
        self.stats["requeued"] += 1
        insort(node.waiting, entry)

    def _bury(self, entry: Entry) -> None:
        target, is_temporary = entry.node.rule.dead_letter, entry.node.owner is not None
        moves = target and not is_temporary and entry.node.address != target
        self.stats["dead_lettered" if moves else "dropped"] += 1
        if moves:
            self.put(self.node("queue", target), entry.message, limited=False)

    def check_round(self, ready: Iterable[Consumer], served: Iterable[Consumer]) -> None:
        """Raise Wrong for deliveries out of order, or a message that a `ready` consumer could have.

        `served` have received deliveries since the last call; `ready` have room for more.
        """
        for consumer in served:
            self._check_order(consumer)
            consumer.got.clear()
        for consumer in ready:
            for entry in consumer.node.waiting if consumer.node else ():
                if entry.is_free_for(consumer, self.now) and not self._has_seen(consumer, entry):
                    raise Wrong(f"message {entry.message.id} waits, a consumer has room for it")
            if consumer.browses and consumer.node is not None:
                consumer.pass_by(consumer.node.waiting)

    def _has_seen(self, consumer: Consumer, entry: Entry) -> bool:
        """Return whether a browser has seen `entry`, or may have passed it with expired entries."""
        if not consumer.browses:
            return False
        over = any(each.message.is_over(self.now) for each in entry.node.waiting)
        return over or consumer.has_come_past(entry)

    def _check_order(self, consumer: Consumer) -> None:
        got, node = consumer.got, consumer.node
        if node is None or node.is_loose or not got:
            return
        if any(after < before for before, after in pairwise(got)):
            raise Wrong(f"{node.address}: order {[entry.message.id for entry in got]}")
        for entry in node.waiting:
            if entry < got[-1] and entry.is_free_for(consumer, self.now):
                raise Wrong(f"{node.address}: message {entry.message.id} was passed over")
