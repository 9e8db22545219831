"""The lease of a simulated run: a program that takes durable messages from a queue in batches.

The program asks the router itself, since requests to `$management` are no part of the model. What
it holds is held in the model as well; so no other consumer may get it, not even after a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.amqp.outcomes import ACCEPTED, RELEASED, Modified, Outcome
from broker.journal import Waiter
from broker.routing.addresses.address import Address
from broker.routing.batches.lease import Acquirer, BatchLease, Wanted
from broker.routing.batches.lease_batch import LeaseBatch
from broker.routing.entries.entry import QueueEntry
from broker.routing.errors import RoutingError
from broker.routing.queues.node import QUEUE
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from tests.scenario.simulation_records import Consumer, Entry, Wish, Wrong

if TYPE_CHECKING:
    from tests.scenario.simulation_world import World

NAME: Final = "l"
DURABLE: Final = "JMSDeliveryMode = 'PERSISTENT'"
"""A lease stores messages that are not durable, which the model's check of the store excludes."""

EXPIRED: Final = Modified(delivery_failed=True)


def number_of(entry: QueueEntry) -> int:
    """Return the number that the body of a message contains."""
    at = entry.message.encoded.index(b"#message") + 8
    return int(entry.message.encoded[at : at + 6])


def was_had(entry: QueueEntry) -> bool:
    """Return whether a consumer had the message before, as first-acquirer says (core 3.2.1)."""
    return entry.delivery_count > 0 or entry.history is not None


class Confirmed(Waiter):
    """Calls `then` once what was noted before is durable."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then: Final = then

    def committed(self) -> None:
        self._then()


class LeaseProgram(Acquirer):
    """The program that has the lease, and the model of what it holds.

    `durable` has the numbers of the messages of each batch that the program has been told of;
    batches up to `settled` may be gone, and those up to `gone` must be. `is_over`: the end of the
    lease is noted, or begun by time.
    """

    def __init__(self, world: World) -> None:
        self._world: Final = world
        self._lease: BatchLease | None = None
        self._consumer = Consumer(wish=Wish(DURABLE))
        self._held: dict[QueueEntry, Entry] = {}
        self._batches: dict[int, list[QueueEntry]] = {}
        self.durable: dict[int, list[int]] = {}
        self.settled = 0
        self.gone = 0
        self.is_over = False
        self.may_rest = False
        "True if the broker may remember the lease for a month, which needs a timer."

    # -- what the program does

    def acquire(self, address: str, *, ttl_ms: int, most: int) -> None:
        """Request the next batch of up to `most` messages; open the lease if there is none."""
        router, journal = self._world.broker.router, self._world.broker.journal
        if self._lease is None:
            queue = router.resolve(Address(address, QUEUE), journal.batch)
            assert isinstance(queue, Queue)
            self._begin(address, ttl_ms)
            selector = parse_selector(DURABLE)
            self._lease = router.leases.open(
                NAME, queue, selector=selector, ttl_ms=ttl_ms, batch=journal.batch
            )
        lease = self._lease
        if lease.gathering is None and len(lease.batches) < 3:
            number = int(lease.batch_number) + 1
            wanted = Wanted(max_messages=most, slices=2)
            router.leases.acquire(NAME, lease.fencing_token, number, wanted=wanted, acquirer=self)
        self._go_on()

    def _begin(self, address: str, ttl_ms: int) -> None:
        self._consumer = Consumer(self._world.model.node("queue", address), wish=Wish(DURABLE))
        self._batches, self.durable = {}, {}
        self.settled = self.gone = 0
        self.is_over = False
        self.may_rest = self.may_rest or ttl_ms > 0

    def acquired(self, lease_batch: LeaseBatch | None) -> None:
        if lease_batch is not None:
            number, entries = int(lease_batch.number), list(lease_batch.entries)
            self._batches[number] = entries
            told, ids = self.durable, [number_of(entry) for entry in entries]
            self._confirm(lambda: told.update({number: ids}))

    def refused(self, why: RoutingError) -> None:
        """Take note of nothing: the lease has ended."""

    def settle(self) -> None:
        """Settle the oldest batch, if there is one."""
        lease = self._lease
        if lease is None or not self._batches:
            return
        number, world = min(self._batches), self._world
        leases, journal = world.broker.router.leases, world.broker.journal
        leases.settle(NAME, lease.fencing_token, number, batch=journal.batch)
        self.settled = number
        entries = [self._let_go(entry, ACCEPTED) for entry in self._batches.pop(number)]

        def confirm() -> None:
            if self._lease is lease:  # and not a later one of the name, with batches of its own
                self.gone = number
            world.gone.update((entry.node, entry.message.id) for entry in entries)

        self._confirm(confirm)
        self._go_on()

    def release(self) -> None:
        """End the lease, if there is one: its messages wait again."""
        if self._lease is not None:
            broker = self._world.broker
            broker.router.leases.release(NAME, broker.journal.batch)
            self._end(RELEASED)
            self._go_on()

    def _confirm(self, then: Callable[[], None]) -> None:
        self._world.broker.journal.submit(Confirmed(then))

    def _go_on(self) -> None:
        self._world.container.run_round()
        self._world.look()

    # -- what the broker has done

    def look(self) -> list[Consumer]:
        """Take over what the broker has given to the lease, or taken from it, since the last look.

        Return the consumer in the model if it got anything.
        """
        lease = self._lease
        if lease is not None and lease.is_over:
            self._end(EXPIRED)
        elif lease is not None:
            for entry in lease.entries():
                if entry not in self._held:
                    self._held[entry] = self._took(entry)
        return [self._consumer] if self._consumer.got else []

    def _took(self, taken: QueueEntry) -> Entry:
        told = (int(taken.delivery_count), not was_had(taken))
        node = self._consumer.node
        given = self._world.model.given
        was_given = (node, number_of(taken)) in given
        entry = self._world.model.gave(self._consumer, number_of(taken), told)
        if not was_given:
            # no client has it before the batch is durable, and then the store knows who has it
            entry.was_given = False
            given.discard((entry.node, entry.message.id))
        return entry

    def _end(self, outcome: Outcome) -> None:
        """Return all messages; those of a batch that is not complete count no delivery."""
        batched = {entry for entries in self._batches.values() for entry in entries}
        for entry in list(self._held):
            self._let_go(entry, outcome if entry in batched else RELEASED)
        self._batches = {}
        self._lease = None
        self.is_over = True

    def _let_go(self, entry: QueueEntry, outcome: Outcome) -> Entry:
        known = self._held.pop(entry)
        self._world.model.settle(known, outcome, explicit=outcome is not EXPIRED)
        return known

    # -- a restart

    def come_back(self, earlier: LeaseProgram) -> None:
        """Check the lease of the store, and hold in the model what it holds."""
        self.may_rest = earlier.may_rest
        lease = self._world.broker.router.leases.named.get(NAME)
        if not earlier.is_over:
            earlier.check_kept({} if lease is None else lease.batches)
        if lease is None:
            return
        self._begin(lease.queue.address, int(lease.ttl_ms))
        self._lease = lease
        self.settled = int(lease.settled)
        for number, lease_batch in lease.batches.items():
            self._batches[number] = list(lease_batch.entries)
            self.durable[number] = [number_of(entry) for entry in lease_batch.entries]
            for entry in lease_batch.entries:
                self._held[entry] = self._hold_again(entry)

    def check_kept(self, batches: dict[int, LeaseBatch]) -> None:
        """Raise Wrong unless each batch that the program knows is there as it was, or settled."""
        for number, ids in self.durable.items():
            there = batches.get(number)
            kept = None if there is None else [number_of(entry) for entry in there.entries]
            if number <= self.gone and kept is not None:
                raise Wrong(f"batch {number} of the lease was settled, and is back")
            if number > self.settled and kept != ids:
                raise Wrong(f"batch {number} of the lease has {kept}, not {ids}")

    def _hold_again(self, kept: QueueEntry) -> Entry:
        node = self._consumer.node
        assert node is not None
        found = [entry for entry in node.waiting if entry.message.id == number_of(kept)]
        if not found:
            raise Wrong(f"message {number_of(kept)} is leased, and not on disk")
        entry = found[0]
        node.waiting.remove(entry)
        node.held[entry] = self._consumer
        entry.is_recovered = False
        entry.is_returned = was_had(kept)
        entry.delivery_count = int(kept.delivery_count)
        return entry
