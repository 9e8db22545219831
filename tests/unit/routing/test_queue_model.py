"""Whatever consumers do, a queue behaves as ten lines say: nothing is lost, the order holds."""

from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.routing.policy import AddressPolicy
from broker.routing.redelivery import Disposal
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, bodies, new_message

CONSUMERS: Final = 3
LIMIT: Final = 3
COUNTED: Final = (Disposal.COUNT, Disposal.FAIL, Disposal.FAIL_ELSEWHERE)
FAILED: Final = (Disposal.FAIL, Disposal.FAIL_ELSEWHERE)
REFUSED: Final = (Disposal.ELSEWHERE, Disposal.FAIL_ELSEWHERE)


class Item:
    """What the model knows of a message. Items are numbered as they come."""

    def __init__(self, number: int, priority: int) -> None:
        self.body = b"%d" % number + b"." * (number % 5)
        self.order = (-priority, number)
        self.delivery_count = 0
        self.failures = 0
        self.refused_by: set[RecordingConsumer] = set()

    def may_go_to(self, consumer: RecordingConsumer) -> bool:
        return consumer not in self.refused_by


class QueueMachine(RuleBasedStateMachine):
    """A queue with up to three consumers, of which one at a time has credit.

    Time passes after each outcome, so that the pauses of release loops are over.
    """

    def __init__(self) -> None:
        super().__init__()
        self.routing = Routing(policy=AddressPolicy(max_delivery_count=LIMIT))
        self.queue = self.routing.queue()
        self.consumers: list[RecordingConsumer] = []
        self.waiting: list[Item] = []
        self.held: dict[RecordingConsumer, list[Item]] = {}
        self.gone = 0
        self.dead = 0
        self.count = 0

    @rule(priority=st.integers(0, 9), how_many=st.integers(1, 70))
    def put(self, priority: int, how_many: int) -> None:
        for _ in range(how_many):
            item = Item(self.count, priority)
            self.count += 1
            self.waiting.append(item)
            message = new_message(item.body, priority=priority, durable=True)
            self.queue.put(message, self.routing.batch)
        self.routing.pump()

    @precondition(lambda self: len(self.consumers) < CONSUMERS)
    @rule()
    def come(self) -> None:
        consumer = self.routing.consumer(self.queue)
        self.consumers.append(consumer)
        self.held[consumer] = []

    @precondition(lambda self: self.consumers)
    @rule(which=st.integers(0, CONSUMERS - 1), credit=st.integers(1, 100), drain=st.booleans())
    def take(self, which: int, credit: int, drain: bool) -> None:
        """The model in three lines: the first ones that may go there, in their order."""
        consumer = self.consumers[which % len(self.consumers)]
        self.waiting.sort(key=lambda item: item.order)
        expected = [item for item in self.waiting if item.may_go_to(consumer)][:credit]
        self.waiting = [item for item in self.waiting if item not in expected]

        before = len(consumer.entries)
        self.routing.give(self.queue, consumer, credit, drain=drain)
        assert bodies(consumer.entries[before:]) == [item.body for item in expected]
        self.held[consumer] += expected
        if not drain:
            self.routing.give(self.queue, consumer, 0)
        assert consumer.credit == 0

    @precondition(lambda self: any(self.held.values()))
    @rule(which=st.integers(0, 999), disposal=st.sampled_from(Disposal), all_of_them=st.booleans())
    def dispose(self, which: int, disposal: Disposal, all_of_them: bool) -> None:
        holders = [consumer for consumer in self.consumers if self.held[consumer]]
        consumer = holders[which % len(holders)]
        for _ in range(len(self.held[consumer]) if all_of_them else 1):
            self.dispose_one(consumer, disposal, which % len(self.held[consumer]))
        self.routing.advance(5000)

    def dispose_one(self, consumer: RecordingConsumer, disposal: Disposal, index: int) -> None:
        item = self.held[consumer].pop(index)
        item.delivery_count += disposal in COUNTED
        item.failures += disposal in FAILED
        if disposal in REFUSED:
            item.refused_by.add(consumer)
        if disposal is Disposal.REMOVE:
            self.gone += 1
        elif disposal is Disposal.DEAD_LETTER or item.failures == LIMIT:
            self.dead += 1
        else:
            self.waiting.append(item)

        entry = consumer.dispose(disposal, self.routing.batch, index=index)
        assert entry.message.encoded == item.body
        assert (entry.delivery_count, entry.failures) == (item.delivery_count, item.failures)

    @precondition(lambda self: self.consumers)
    @rule(which=st.integers(0, CONSUMERS - 1), disposal=st.sampled_from(Disposal))
    def leave(self, which: int, disposal: Disposal) -> None:
        consumer = self.consumers[which % len(self.consumers)]
        for _ in range(len(self.held[consumer])):
            self.dispose_one(consumer, disposal, 0)
        self.consumers.remove(consumer)
        del self.held[consumer]
        self.queue.detach_consumer(consumer, self.queue, self.routing.batch)
        self.routing.advance(5000)

    @invariant()
    def counts_are_right(self) -> None:
        held = [item for items in self.held.values() for item in items]
        assert self.queue.waiting == len(self.waiting)
        assert self.queue.acquired == len(held)
        assert self.queue.bytes == sum(len(item.body) for item in [*self.waiting, *held])
        assert self.count == len(self.waiting) + len(held) + self.gone + self.dead
        assert self.routing.stats.acknowledged == self.gone
        assert self.routing.stats.dead_lettered == self.dead

    def teardown(self) -> None:
        """In the end everything is taken by somebody who refuses nothing."""
        for consumer in self.consumers:
            for _ in range(len(self.held[consumer])):
                self.dispose_one(consumer, Disposal.RELEASE, -1)
        self.waiting.sort(key=lambda item: item.order)
        assert len(self.routing.stored()) == len(self.waiting)
        last = self.routing.consumer(self.queue, 10**6, settles=True)
        assert last.taken == [item.body for item in self.waiting]
        assert (self.queue.waiting, self.queue.acquired, self.queue.bytes) == (0, 0, 0)
        assert self.routing.stored() == []


TestQueue = pytest.mark.requirement("RCV-02", "RCV-03")(QueueMachine.TestCase)
TestQueue.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
