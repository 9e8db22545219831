"""Staging and commits without links: what a sink does to a router, one call each."""

from __future__ import annotations

import asyncio

from broker.links.recovery import Recovery
from broker.message import AT_ONCE, NEVER, NOWHERE, Origin
from broker.routing.node import QUEUE
from broker.routing.policy import AddressPolicy
from broker.routing.queue import Queue
from broker.routing.stage import Stage, Task
from broker.routing.stages import Stages
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing, encoded, new_message

QUERY = "orders"


def task(partition: int = 0, attempt: int = 0, *, batch: int = 0, query: str = QUERY) -> Task:
    return Task(query=query, batch=batch, partition=partition, attempt=attempt)


class Staging:
    """The senders and the driver of a query."""

    def __init__(self, routing: Routing | None = None, *, stages: Stages | None = None) -> None:
        self.routing = Routing() if routing is None else routing
        self.stages = self.routing.router.stages if stages is None else stages

    def stage(
        self, wanted: Task, address: str = "q", *, kind: str = QUEUE, origin: Origin = NOWHERE
    ) -> Stage:
        """The stage that a link of that task would be attached to."""
        target = self.routing.router.resolve(address, kind, self.routing.batch)
        self.stages.check(wanted, target, address)
        return self.stages.begin(wanted, target, address, origin=origin)

    def send(
        self,
        wanted: Task,
        *bodies: bytes,
        address: str = "q",
        kind: str = QUEUE,
        durable: bool = True,
        priority: int = 4,
        expires_at_ms: int = NEVER,
        deliver_at_ms: int = AT_ONCE,
    ) -> Stage:
        """Have a task send messages, over a link that is then gone."""
        stage = self.stage(wanted, address, kind=kind)
        sender = RecordingProducer()
        stage.join(sender)
        for body in bodies:
            message = new_message(
                encoded(body),
                durable=durable,
                priority=priority,
                expires_at_ms=expires_at_ms,
                deliver_at_ms=deliver_at_ms,
            )
            stage.put(message, self.routing.batch)
        stage.leave(sender)
        return stage

    def commit(self, *tasks: tuple[int, int], batch: int = 0, query: str = QUERY) -> None:
        """Commit a batch of these tasks (partition, attempt), of which the store has all."""
        self.routing.commit()
        chosen = self.stages.choose(query, batch, list(tasks))
        load = self.routing.store.load_now
        found = [[stage.read(each) for each in load(list(stage.numbers))] for stage in chosen]
        self.stages.commit(query, batch, chosen, found=found, batch=self.routing.batch)
        self.routing.pump()

    def waiting(self, address: str = "q") -> list[bytes]:
        """What a browser of a queue sees."""
        browser = self.routing.browser(self.routing.queue(address), 1000)
        return [body_of(copy) for copy in browser.copies]


def body_of(copy: bytes) -> bytes:
    """What `encoded` was given."""
    return copy[copy.index(b"\x00\x53\x75") + 5 :]


def restarted(
    old: Routing, *, policy: AddressPolicy | None = None, stage_retention_ms: int = 0
) -> Staging:
    """A router with what the store of `old` has, and nothing else; its clock goes on."""
    old.commit()
    new = Routing(store=old.store, policy=policy, stage_retention_ms=stage_retention_ms)
    new.clock.advance(old.clock.now_ms() - new.clock.now_ms())
    new.router.number_from(int(old.router.next_stored_number()))
    recovery = Recovery(new.router, new.batch)
    for node in asyncio.run(old.store.nodes()):
        recovery.node(node)
    for subscription in asyncio.run(old.store.subscriptions()):
        recovery.subscription(subscription)
    for sink in asyncio.run(old.store.sinks()):
        recovery.sink(sink)
    for stage in asyncio.run(old.store.stages()):
        recovery.stage(stage)
    recovery.places(asyncio.run(old.store.places(0)))
    for message in old.store.load_now(recovery.scheduled()):
        recovery.message(message)
    recovery.finish()
    return Staging(new)


def depth(queue: Queue) -> tuple[int, int]:
    """How many messages `queue` has, and how many are staged for it."""
    return int(queue.contents()), int(queue.staged)
