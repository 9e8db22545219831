"""A hundred consumers of one queue, each with a selector of its own, without sockets.

    python -P tests/bench/selectors.py 100000

A router receives messages as from links, with five application properties; each matches one of the
consumers. First, all messages are in the queue before the consumers attach; then, the consumers are
there before the messages, which arrive 250 at a time. Run it as a file with -P, so that the
installed, compiled package is used and not the sources of the checkout.

It prints one JSON object: thread CPU time in µs per message both ways, the longest time in ms for
which all other work had to wait, how often a message was judged, and whether the broker is
compiled.
"""

import json
import random
import sys
import time
from typing import Final

import broker.routing.queues.selection as selection_module
from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.types import Int, Map
from broker.clock import SystemClock
from broker.message import NEVER, Message
from broker.routing.addresses.policy import AddressPolicy, Policies
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.participants import Consumer
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from broker.routing.selector import parse_selector
from broker.stats import Stats
from storage.batch import Batch

CONSUMERS: Final = 100
BATCH: Final = 250
CREDIT: Final = 1000


class Taker(Consumer):
    """Settles every message at once, and always has credit."""

    def __init__(self, number: int, batch: object) -> None:
        self.filter = ConsumerFilter(parse_selector(f"region = 'north' AND number = {number}"))
        self.taken = 0
        self._batch = batch

    def has_room(self) -> bool:
        return True

    def has_credit(self) -> bool:
        return True

    def deliver(self, entry: QueueEntry) -> None:
        self.taken += 1
        entry.queue.accept(entry, self._batch)  # type: ignore[arg-type]

    def browsed(self, entry: QueueEntry) -> None:  # noqa: ARG002 - the signature of every consumer
        raise RuntimeError("a consumer is no browser")

    def nothing_waits(self) -> None:
        raise RuntimeError("nobody drains")

    def node_deleted(self) -> None:
        raise RuntimeError("nothing is deleted")


def message(number: int) -> Message:
    properties: list[tuple[object, object]] = [
        ("region", "north"),
        ("source", "bench"),
        ("urgent", False),
        ("weight", 1.5),
        ("number", Int(number)),
    ]
    out = BytesWriter()
    put_descriptor(out, 0x74)
    put_value(out, Map(properties))
    put_descriptor(out, 0x75)
    put_value(out, b"x" * 100)
    return Message(
        encoded=out.getvalue(),
        durable=False,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=NEVER,
    )


class Run:
    """A queue with its messages and consumers, and the CPU time that it has used."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.batch = Batch()
        policies = Policies([], AddressPolicy(), "queue")
        self.router = Router(clock=SystemClock(), stats=Stats(), policies=policies)
        node = self.router.resolve(self.router.parse("bench", "queue"), self.batch)
        assert isinstance(node, Queue)
        self.queue = node
        self.takers = [Taker(number, self.batch) for number in range(CONSUMERS)]
        self.messages = [message(number) for number in range(CONSUMERS)]
        self._chance = random.Random(1)
        self.spent_ns = 0
        self.longest_ns = 0

    def put(self, count: int) -> None:
        for _ in range(count):
            wanted_by = self._chance.randrange(CONSUMERS)
            self.queue.put(self.messages[wanted_by], self.batch)

    def attach(self) -> None:
        for taker in self.takers:
            self.queue.attach_consumer(taker)
            self.queue.consumer_ready(taker, drain=False)

    def work(self) -> None:
        """Do the loop's work after a read and when the timer is due, until nothing is left."""
        while True:
            start = time.thread_time_ns()
            self.router.timer_queue.tick(self.router.clock.now_ms())
            self.router.pump(self.batch)
            spent = time.thread_time_ns() - start
            self.spent_ns += spent
            self.longest_ns = max(self.longest_ns, spent)
            if self.router.timer_queue.next_deadline_ms() < 0:
                return

    def cpu_us(self) -> float:
        taken = sum(taker.taken for taker in self.takers)
        if taken != self.count:
            raise RuntimeError(f"{taken} of {self.count} messages taken")
        return self.spent_ns / 1000 / self.count


def waiting(count: int) -> Run:
    run = Run(count)
    run.put(count)
    run.attach()
    run.work()
    return run


def arriving(count: int) -> Run:
    run = Run(count)
    run.attach()
    for first in range(0, count, BATCH):
        run.put(min(BATCH, count - first))
        run.work()
    return run


def main() -> None:
    count = int(sys.argv[1])
    arriving(max(count // 100, BATCH))  # warms caches, discarded
    first, then = waiting(count), arriving(count)
    selection = first.queue.delivery._selection
    assert selection is not None
    figures = {
        "waiting_us": first.cpu_us(),
        "arriving_us": then.cpu_us(),
        "longest_ms": max(first.longest_ns, then.longest_ns) / 1e6,
        "judged": int(selection.judged) / count,
        "compiled": not str(selection_module.__file__).endswith(".py"),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
