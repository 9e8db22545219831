"""Two transactions and plain work in any order, compared with a model: all or nothing, in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import PAUSE_MAX_MS, Disposal
from broker.routing.transaction import Retirement, Transaction
from tests.support.routing import Routing, new_message

OUTCOMES: Final = (Disposal.REMOVE, Disposal.DEAD_LETTER, Disposal.RELEASE, Disposal.FAIL)
GONE: Final = (Disposal.REMOVE, Disposal.DEAD_LETTER)


@dataclass
class Expected:
    """A message's place, and the number of its failed attempts."""

    place: int
    failed: int = 0


@dataclass
class Staged:
    """The work of one transaction."""

    sent: list[bytes] = field(default_factory=list)
    retired: list[tuple[bytes, Disposal]] = field(default_factory=list)


class World:
    """The real queue, and the model of it. Transactions are `None` (plain work), 0 and 1."""

    def __init__(self) -> None:
        policy = AddressPolicy(max_delivery_count=0, dead_letter="")
        self.routing = Routing(policy=policy)
        self.queue = self.routing.queue()
        self.consumer = self.routing.consumer(self.queue)
        self.real = [self._begun(), self._begun()]
        self.staged = [Staged(), Staged()]
        self.waiting: dict[bytes, Expected] = {}
        self.held: dict[bytes, tuple[QueueEntry, Expected]] = {}
        self.locked: dict[bytes, Expected] = {}
        self.bodies = 0
        self.places = 0

    def _begun(self) -> Transaction:
        return Transaction(self.routing.router, operations_max=0, bytes_max=0)

    def send(self, number: int | None) -> None:
        """Send a message in transaction `number`, or as plain work if it is None."""
        self.bodies += 1
        body = b"%d" % self.bodies
        message = new_message(body, durable=True)
        if number is None:
            self.queue.put(message, self.routing.batch)
            self._appears(body)
        else:
            self.real[number].post(self.queue, message, len(body))
            self.staged[number].sent.append(body)

    def _appears(self, body: bytes) -> None:
        self.places += 1
        self.waiting[body] = Expected(self.places)

    def receive(self) -> None:
        """Check that the consumer gets the first ready message, with its delivery-count."""
        self.routing.advance(int(PAUSE_MAX_MS))
        before = len(self.consumer.entries)
        self.routing.give(self.queue, self.consumer, 1)
        self.consumer.credit = 0
        if not self.waiting:
            assert len(self.consumer.entries) == before
            return
        body = min(self.waiting, key=lambda each: self.waiting[each].place)
        entry = self.consumer.entries.pop()
        assert entry.message.encoded == body
        assert int(entry.delivery_count) == self.waiting[body].failed
        self.held[body] = (entry, self.waiting.pop(body))

    def settle(self, number: int | None, index: int, outcome: Disposal) -> None:
        """Settle a held message in transaction `number`, or as plain work if it is None."""
        if not self.held:
            return
        body = list(self.held)[index % len(self.held)]
        entry, expected = self.held.pop(body)
        if number is None:
            self.queue.dispose(entry, outcome, self.routing.batch)
            self._ends(body, expected, outcome)
            return
        self.real[number].retire(Retirement(entry, outcome))
        self.staged[number].retired.append((body, outcome))
        self.locked[body] = expected

    def _ends(self, body: bytes, expected: Expected, outcome: Disposal) -> None:
        if outcome in GONE:
            return
        expected.failed += outcome is Disposal.FAIL
        self.waiting[body] = expected

    def discharge(self, number: int, *, fail: bool) -> None:
        """Commit or roll back transaction `number`, in reality and in the model."""
        work, staged = self.real[number], self.staged[number]
        self.real[number], self.staged[number] = self._begun(), Staged()
        if fail:
            work.roll_back(self.routing.batch)
        else:
            work.commit(self.routing.batch)
            for body in staged.sent:
                self._appears(body)
        for body, outcome in staged.retired:
            if fail:
                outcome = Disposal.RELEASE if outcome is Disposal.RELEASE else Disposal.FAIL
            self._ends(body, self.locked.pop(body), outcome)

    def check(self) -> None:
        """Check which messages are ready, acquired and stored."""
        assert int(self.queue.backlogs.waiting) == len(self.waiting)
        assert int(self.queue.state.acquired) == len(self.held) + len(self.locked)
        there = {**self.waiting, **self.locked, **{body: it[1] for body, it in self.held.items()}}
        stored = {each.encoded: int(each.delivery_count) for each in self.routing.stored()}
        assert stored == {body: expected.failed for body, expected in there.items()}


PARTS: Final = st.sampled_from([None, 0, 1])
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("send"), PARTS),
        st.tuples(st.just("receive")),
        st.tuples(st.just("settle"), PARTS, st.integers(0, 5), st.sampled_from(OUTCOMES)),
        st.tuples(st.just("discharge"), st.sampled_from([0, 1]), st.booleans()),
    ),
    min_size=30,
    max_size=80,
)


@pytest.mark.requirement("RCV-06", "RCV-08")
@given(STEPS)
def test_transactions_are_all_or_nothing(steps: list[tuple[object, ...]]) -> None:
    world = World()
    for number in (None, None, 0, 1):
        world.send(number)
    for step in steps:
        match step:
            case ("send", int() | None as number):
                world.send(number)
            case ("settle", int() | None as number, int(index), Disposal() as outcome):
                world.settle(number, index, outcome)
            case ("discharge", int(number), bool(fail)):
                world.discharge(number, fail=fail)
            case _:
                world.receive()
        world.check()
    for number in (0, 1):
        world.discharge(number, fail=True)
    while world.waiting:
        world.receive()
    world.check()
    assert not world.locked
