"""A lease, another consumer and restarts in any order, compared with a short model.

Every message is in one place at a time: ready, in a batch, held by the other consumer, or done. A
batch never changes until it is settled or its lease ends.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.routing.entries.redelivery import Disposal
from tests.support.leases import HOUR_MS, acquire, opened
from tests.support.routing import Routing, encoded, new_message, page_out
from tests.unit.links.test_recovery import restarted

pytestmark = pytest.mark.requirement("PIP-02", "PIP-05", "PIP-07", "PIP-10")

SLICES = 3


class Model:
    """The broker under test, and the expected places of its messages."""

    def __init__(self) -> None:
        self.routing = Routing(paging_window=64)
        self.sent = 0
        self.done: list[bytes] = []
        self.batches: dict[int, list[list[tuple[bytes, int]]]] = {}
        self.groups: dict[str, list[bytes]] = {}
        self.lease = opened(self.routing)

    def body(self, number: int) -> tuple[bytes, str]:
        group = f"g{number % 4}" if number % 3 == 0 else ""
        return encoded(b"%d" % number, group=group), group

    # -- steps

    def put(self, amount: int) -> None:
        for _ in range(amount * 9):
            body, group = self.body(self.sent)
            priority = 1 if group else self.sent % 3
            message = new_message(body, group=group, durable=True, priority=priority)
            if group:
                self.groups.setdefault(group, []).append(body)
            self.routing.queue().put(message, self.routing.batch)
            self.sent += 1
        self.routing.pump()

    def acquire(self, amount: int) -> None:
        number = int(self.lease.batch_number) + 1
        if len(self.batches) < 10 and acquire(
            self.routing, self.lease, max_messages=amount * 20, slices=SLICES
        ):
            self.batches[number] = self.read(number)

    def read(self, number: int) -> list[list[tuple[bytes, int]]]:
        leases = self.routing.router.leases
        parts = [
            leases.slice_of("l", self.lease.fencing_token, number, index=index)
            for index in range(SLICES)
        ]
        return [
            [(entry.message.encoded, int(entry.delivery_count)) for entry in part] for part in parts
        ]

    def settle(self, amount: int) -> None:
        upto = min(int(self.lease.settled) + amount % 3, int(self.lease.batch_number))
        self.routing.router.leases.settle(
            "l", self.lease.fencing_token, upto, batch=self.routing.batch
        )
        for number in [each for each in self.batches if each <= upto]:
            for part in self.batches.pop(number):
                self.done += [body for body, _ in part]

    def consume(self, amount: int) -> None:
        """Let another consumer take `amount` messages, accept half of them, and detach."""
        other = self.routing.consumer(self.routing.queue(), amount)
        leased = {
            body
            for lease_batch in self.batches.values()
            for part in lease_batch
            for body, _ in part
        }
        for members in self.groups.values():
            if leased.intersection(members):
                assert not set(other.taken).intersection(members), "a group has one consumer"
        for index, entry in enumerate(other.entries):
            if index % 2:
                self.done.append(entry.message.encoded)
                entry.queue.accept(entry, self.routing.batch)
            else:
                entry.queue.dispose(entry, Disposal.RELEASE, self.routing.batch)
        self.routing.queue().detach_consumer(other, self.routing.queue(), self.routing.batch)
        self.routing.pump()

    def release(self, amount: int) -> None:
        if amount < 5:
            self.routing.router.leases.release("l", self.routing.batch)
            self.begin_anew()

    def run_out(self, amount: int) -> None:
        if amount < 5:
            self.routing.advance(HOUR_MS)
            self.begin_anew()

    def begin_anew(self) -> None:
        before = self.lease.fencing_token
        gone = "l" not in self.routing.router.leases.named
        self.lease = opened(self.routing)
        assert self.lease.fencing_token > before
        if gone:
            self.batches.clear()
            assert self.lease.batch_number == 0

    def restart(self, amount: int) -> None:
        self.routing.pump()
        self.routing = restarted(self.routing)
        if amount % 2:
            page_out(self.routing.queue())
        found = self.routing.router.leases.find("l")
        assert (found.batch_number, found.settled) == (self.lease.batch_number, self.lease.settled)
        self.lease = opened(self.routing)

    # -- invariants

    def check(self) -> None:
        for number, before in self.batches.items():
            assert self.read(number) == before
        queue = self.routing.queue()
        held = sum(len(part) for lease_batch in self.batches.values() for part in lease_batch)
        assert (queue.state.acquired, queue.backlogs.waiting) == (
            held,
            self.sent - held - len(self.done),
        )
        assert len(set(self.done)) == len(self.done)

    def finish(self) -> None:
        """Check that all remaining messages are delivered, each once."""
        self.settle(0)
        while True:
            upto = int(self.lease.batch_number)
            leases = self.routing.router.leases
            leases.settle("l", self.lease.fencing_token, upto, batch=self.routing.batch)
            for lease_batch in self.batches.values():
                self.done += [body for part in lease_batch for body, _ in part]
            self.batches.clear()
            taken = acquire(self.routing, self.lease, slices=SLICES)
            if not taken:
                break
            self.done += taken
        assert sorted(self.done) == sorted(self.body(number)[0] for number in range(self.sent))
        assert self.routing.stored() == []


STEPS = ("put", "acquire", "settle", "consume", "release", "run_out", "restart")


@settings(max_examples=4 * settings().max_examples)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), min_size=10, max_size=40))
def test_every_message_is_in_one_place(steps: list[tuple[str, int]]) -> None:
    model = Model()
    happen = {
        "put": model.put,
        "acquire": model.acquire,
        "settle": model.settle,
        "consume": model.consume,
        "release": model.release,
        "run_out": model.run_out,
        "restart": model.restart,
    }
    for step, amount in steps:
        happen[step](max(1, amount) if step in ("acquire", "consume") else amount)
        model.check()
    model.finish()
