"""What a broker may do with messages: the small model that simulated runs are held to.

It is told what the broker has read, in that order, and says `Wrong` where the
broker then writes what it must not, or does not write what it could.
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
    """All nodes, and what the broker ought to have counted."""

    def __init__(self, rules: dict[str, Rule]) -> None:
        self.rules = rules
        self.nodes: dict[tuple[str, str], Node] = {}
        self.sleepy: dict[Node, None] = {}
        self.stats: Counter[str] = Counter()
        self.now = 0
        self.ever: dict[tuple[Node, int], Message] = {}
        "Every message that was put into a queue, as it was put there last."
        self.given: set[tuple[Node, int]] = set()
        "Every message of a queue that some consumer had."

    def node(self, kind: str, address: str) -> Node:
        if (kind, address) not in self.nodes:
            loose = address in {each.expiry for each in self.rules.values()} | {"DLQ"}
            rule = self.rules.get(address, Rule())
            self.nodes[kind, address] = Node(kind, address, rule, is_loose=loose)
        return self.nodes[kind, address]

    def put(self, node: Node, message: Message, *, limited: bool = True) -> bool:
        """Whether the message is accepted: it is, unless the node is full."""
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
        """Whether subscriptions had copies: nobody waits for those of non-durable ones."""
        return any(node.topic is not None for node, each in self.ever if each == number)

    def _lay_down(self, entry: Entry, until: int) -> None:
        self.sleepy[entry.node] = None
        entry.node.lay_down(entry, until)

    def wake(self) -> None:
        """What is due by now is available."""
        for node in self.sleepy:
            self.stats["requeued"] += node.wake(self.now)

    def gave(self, consumer: Consumer, number: int, told: tuple[int, bool]) -> Entry:
        """The entry that `consumer` has got now, with that delivery-count and first-acquirer."""
        node = consumer.node
        assert node is not None
        if node.is_loose:
            self._let_expire(node, number)
        now = self.now
        found = [each for each in node.waiting if each.message.id == number]
        if consumer.browses:  # it may have been taken by another in the same moment
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
        """Let the first of that number that is over move to `target`, if that is its way."""
        for node in self.nodes.values():
            there = [*node.waiting, *node.asleep]
            for entry in there if node.rule.expiry == target.address else ():
                if entry.message.id == number and entry.message.is_over(self.now):
                    (node.waiting if entry in node.waiting else node.asleep).remove(entry)
                    self.put(target, replace(entry.message, ttl=0, due=0), limited=False)
                    self.stats["expired"] += 1
                    return

    def settle(self, entry: Entry, outcome: DeliveryState | None, *, explicit: bool) -> None:
        """The consumer's word; or, not `explicit`, the default-outcome of one that said none."""
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
        """The order of what was given, and nothing waits for the `ready`, who have room."""
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
        """A browser that has come past an entry; maybe, where some that are over were passed."""
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
