"""A queue compared with a short model: nothing is lost, and the order holds.

Messages may be of a group, and consumers differ in priority. Ready messages may leave memory at any
time, and are loaded when a consumer or browser needs them.
"""

from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, bodies, encoded, new_message

CONSUMERS: Final = 3
LIMIT: Final = 3
COUNTED: Final = (Disposal.COUNT, Disposal.FAIL, Disposal.FAIL_ELSEWHERE)
FAILED: Final = (Disposal.FAIL, Disposal.FAIL_ELSEWHERE)
GROUPS: Final = ("a", "b")
REFUSED: Final = (Disposal.ELSEWHERE, Disposal.FAIL_ELSEWHERE)


class Circle:
    """A message group as the model knows it."""

    def __init__(self) -> None:
        self.owner: RecordingConsumer | None = None
        self.moves = False
        self.held = 0

    def may_go_to(self, consumer: RecordingConsumer) -> bool:
        if self.owner is None:
            return self.held == 0
        return self.owner is consumer and not self.moves

    def drop(self) -> None:
        """Count one message less as held; after the last one, a group that moves is free."""
        self.held -= 1
        if self.moves and self.held == 0:
            self.moves = False
            self.owner = None


class Item:
    """A message as the model knows it; items are numbered in order of arrival."""

    def __init__(self, number: int, priority: int, *, group: str, closes: bool) -> None:
        self.group = group
        self.closes = closes
        self.came_back = False
        self.body = encoded(b"%d" % number + b"." * (number % 5), group=group, closes_group=closes)
        self.order = (-priority, number)
        self.delivery_count = 0
        self.failures = 0
        self.refused_by: set[RecordingConsumer] = set()


class QueueMachine(RuleBasedStateMachine):
    """A queue with up to three consumers, of which one at a time has credit.

    Time passes after each outcome, so that the pauses of release loops are over.
    """

    def __init__(self) -> None:
        super().__init__()
        self.routing = Routing(policy=AddressPolicy(max_delivery_count=LIMIT))
        self.queue = self.routing.queue()
        self.consumers: list[RecordingConsumer] = []
        self.came = 0
        self.circles = {name: Circle() for name in GROUPS}
        self.waiting: list[Item] = []
        self.held: dict[RecordingConsumer, list[Item]] = {}
        self.gone = 0
        self.dead = 0
        self.count = 0

    @rule(
        priority=st.integers(0, 9),
        how_many=st.integers(1, 70),
        groups=st.lists(st.sampled_from(["", *GROUPS]), min_size=1, max_size=4),
        closes=st.booleans(),
    )
    def put(self, priority: int, how_many: int, groups: list[str], closes: bool) -> None:
        """Put messages of one priority, with `groups` in turn; the last may close its group."""
        for number in range(how_many):
            ends = closes and number + 1 == how_many
            group = groups[number % len(groups)]
            item = Item(self.count, priority, group=group, closes=ends)
            self.count += 1
            self.waiting.append(item)
            message = new_message(
                item.body, priority=priority, durable=True, group=group, closes_group=ends
            )
            self.queue.put(message, self.routing.batch)
        self.routing.pump()

    @rule(keep=st.integers(0, 2))
    def page_out(self, keep: int) -> None:
        self.routing.page_out(keep)

    @rule()
    def look(self) -> None:
        """Check that a browser sees every ready message once, in order."""
        browser = self.routing.browser(self.queue, 10**6)
        self.waiting.sort(key=lambda item: item.order)
        assert browser.copies == [item.body for item in self.waiting]
        self.queue.detach_consumer(browser, self.queue, self.routing.batch)

    @precondition(lambda self: len(self.consumers) < CONSUMERS)
    @rule()
    def come(self) -> None:
        self.came += 1
        consumer = self.routing.consumer(self.queue, priority=self.came % 4 - 1)
        self.consumers.append(consumer)
        self.held[consumer] = []

    @precondition(lambda self: self.consumers)
    @rule(which=st.integers(0, CONSUMERS - 1), credit=st.integers(1, 100), drain=st.booleans())
    def take(self, which: int, credit: int, drain: bool) -> None:
        """Check that a consumer gets the first messages that it may have, in order."""
        consumer = self.consumers[which % len(self.consumers)]
        expected = self.expected(consumer, credit)
        before = len(consumer.entries)
        self.routing.give(self.queue, consumer, credit, drain=drain)
        assert bodies(consumer.entries[before:]) == [item.body for item in expected]
        if not drain:
            self.routing.give(self.queue, consumer, 0)
        assert consumer.credit == 0

    @precondition(lambda self: len(self.consumers) > 1)
    @rule(credit=st.integers(1, 40))
    def take_together(self, credit: int) -> None:
        """Check that each consumer takes all it can before one of lower priority gets anything."""
        if len({consumer.priority for consumer in self.consumers}) < len(self.consumers):
            return
        before = {consumer: len(consumer.entries) for consumer in self.consumers}
        for consumer in self.consumers:
            consumer.credit = credit
            self.queue.consumer_ready(consumer, drain=False)
        self.routing.pump()
        for consumer in sorted(self.consumers, key=lambda each: -each.priority):
            expected = self.expected(consumer, credit)
            taken = consumer.entries[before[consumer] :]
            assert bodies(taken) == [item.body for item in expected]
        for consumer in self.consumers:
            self.routing.give(self.queue, consumer, 0)

    def expected(self, consumer: RecordingConsumer, credit: int) -> list[Item]:
        """Move the items that `consumer` gets for `credit` to those it holds, and return them."""
        self.waiting.sort(key=lambda item: item.order)
        taken: list[Item] = []
        for item in list(self.waiting):
            if len(taken) == credit:
                break
            if self.may_go_to(item, consumer):
                self.waiting.remove(item)
                taken.append(item)
                if item.group:
                    circle = self.circles[item.group]
                    circle.owner = consumer
                    circle.held += 1
                    circle.moves = item.closes
        self.held[consumer] += taken
        return taken

    def may_go_to(self, item: Item, consumer: RecordingConsumer) -> bool:
        """Return whether `consumer` may get `item`; returned items of a group go first."""
        if consumer in item.refused_by:
            return False
        if not item.group:
            return True
        in_front = [
            other
            for other in self.waiting
            if other.group == item.group and other.came_back and other.order < item.order
        ]
        return not in_front and self.circles[item.group].may_go_to(consumer)

    @precondition(lambda self: any(self.held.values()))
    @rule(which=st.integers(0, 999), disposal=st.sampled_from(Disposal), all_of_them=st.booleans())
    def dispose(self, which: int, disposal: Disposal, all_of_them: bool) -> None:
        """Let a consumer dispose of one or all of the entries that it holds."""
        holders = [consumer for consumer in self.consumers if self.held[consumer]]
        consumer = holders[which % len(holders)]
        for _ in range(len(self.held[consumer]) if all_of_them else 1):
            self.dispose_one(consumer, disposal, which % len(self.held[consumer]))
        self.routing.advance(5000)

    def dispose_one(self, consumer: RecordingConsumer, disposal: Disposal, index: int) -> None:
        """Dispose of an entry in the model and the queue, and compare its counts."""
        item = self.held[consumer].pop(index)
        item.delivery_count += disposal in COUNTED
        item.failures += disposal in FAILED
        if disposal in REFUSED:
            item.refused_by.add(consumer)
        self.leave_group(item, disposal)
        if disposal is Disposal.REMOVE:
            self.gone += 1
        elif disposal is Disposal.DEAD_LETTER or item.failures == LIMIT:
            self.dead += 1
        else:
            self.waiting.append(item)
            item.came_back = True

        entry = consumer.dispose(disposal, self.routing.batch, index=index)
        assert entry.message.encoded == item.body
        assert (entry.delivery_count, entry.failures) == (item.delivery_count, item.failures)

    def leave_group(self, item: Item, disposal: Disposal) -> None:
        if item.group:
            circle = self.circles[item.group]
            if disposal in REFUSED and item.failures < LIMIT:
                circle.moves = circle.owner is not None
            circle.drop()

    @precondition(lambda self: self.consumers)
    @rule(which=st.integers(0, CONSUMERS - 1), disposal=st.sampled_from(Disposal))
    def leave(self, which: int, disposal: Disposal) -> None:
        consumer = self.consumers[which % len(self.consumers)]
        for _ in range(len(self.held[consumer])):
            self.dispose_one(consumer, disposal, 0)
        self.consumers.remove(consumer)
        del self.held[consumer]
        self.queue.detach_consumer(consumer, self.queue, self.routing.batch)
        for circle in self.circles.values():
            if circle.owner is consumer:
                circle.owner = None
        self.routing.advance(5000)

    @invariant()
    def counts_are_right(self) -> None:
        held = [item for items in self.held.values() for item in items]
        assert self.queue.backlogs.waiting == len(self.waiting)
        assert self.queue.state.acquired == len(held)
        assert self.queue.state.bytes == sum(len(item.body) for item in [*self.waiting, *held])
        assert self.count == len(self.waiting) + len(held) + self.gone + self.dead
        assert self.routing.stats.acknowledged == self.gone
        assert self.routing.stats.dead_lettered == self.dead

    def teardown(self) -> None:
        """Check that a last consumer, which refuses nothing, gets all messages."""
        for consumer in self.consumers:
            for _ in range(len(self.held[consumer])):
                self.dispose_one(consumer, Disposal.RELEASE, -1)
        self.waiting.sort(key=lambda item: item.order)
        assert len(self.routing.stored()) == len(self.waiting)
        for consumer in self.consumers:
            self.queue.detach_consumer(consumer, self.queue, self.routing.batch)
        last = self.routing.consumer(self.queue, 10**6, settles=True)
        assert last.taken == [item.body for item in self.waiting]
        assert (self.queue.backlogs.waiting, self.queue.state.acquired, self.queue.state.bytes) == (
            0,
            0,
            0,
        )
        assert self.routing.stored() == []


TestQueue = pytest.mark.requirement("RCV-02", "RCV-03", "RCV-07")(QueueMachine.TestCase)
TestQueue.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


@pytest.mark.requirement("RCV-07")
def test_a_consumer_of_lower_priority_waits_for_a_load_of_a_higher_one() -> None:
    """It has passed by the message that is loaded, the other one has yet to look at it."""
    state = QueueMachine()
    state.come()
    state.come()
    state.put(closes=False, groups=[""], how_many=1, priority=0)
    state.put(closes=False, groups=["a"], how_many=2, priority=0)
    state.take_together(credit=2)
    state.come()
    state.page_out(keep=0)
    state.put(closes=False, groups=[""], how_many=1, priority=0)
    state.take_together(credit=1)
    state.teardown()
