"""Staging and commits without links: the steps of a sink on a router, one call each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from broker.links.recovery import Recovery
from broker.message import AT_ONCE, NEVER, NOWHERE, Message, Origin
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.batches.staged_transaction import StagedTransaction, Task
from broker.routing.batches.staging_area import StagingArea
from broker.routing.queues.node import QUEUE
from broker.routing.queues.queue import Queue
from storage.stages import STAGED
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing, encoded, new_message

QUERY = "orders"


def task(partition: int = 0, attempt: int = 0, *, batch: int = 0, query: str = QUERY) -> Task:
    return Task(query=query, batch=batch, partition=partition, attempt=attempt)


class Staging:
    """The senders and the driver of a query; the driver counts what each task has `sent`."""

    def __init__(
        self, routing: Routing | None = None, *, stages: StagingArea | None = None
    ) -> None:
        self.routing = Routing() if routing is None else routing
        self.stages = self.routing.router.staging_area if stages is None else stages
        self.sent: Counter[tuple[str, int, int, int]] = Counter()

    def stage(
        self, wanted: Task, address: str = "q", *, kind: str = QUEUE, origin: Origin = NOWHERE
    ) -> StagedTransaction:
        """Return the stage to which a link of the task would be attached."""
        target = self.routing.router.resolve(
            self.routing.router.parse(address, kind), self.routing.batch
        )
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
        settles: bool = False,
    ) -> StagedTransaction:
        """Send messages of a task, over a link that is detached afterwards.

        `settles`: it sends them settled, so that they may stay in memory until the commit.
        """
        stage = self.stage(wanted, address, kind=kind)
        sender = RecordingProducer()
        stage.join(sender, settles=settles)
        for body in bodies:
            message = new_message(
                encoded(body),
                durable=durable,
                priority=priority,
                expires_at_ms=expires_at_ms,
                deliver_at_ms=deliver_at_ms,
            )
            stage.put(message, self.routing.batch)
            self.sent[wanted.key()] += 1
        stage.leave(sender)
        return stage

    def commit(
        self,
        *tasks: tuple[int, int],
        batch: int = 0,
        query: str = QUERY,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Commit a batch of these tasks (partition, attempt), from the store or from memory.

        `counts` are the reported messages per task; by default the true counts.
        """
        self.routing.commit()
        if counts is None:
            counts = [self.sent[query, batch, *each] for each in tasks]
        told = [(*each, count) for each, count in zip(tasks, counts, strict=True)]
        if self.stages.can_commit_at_once(query, batch, told):
            chosen = self.stages.choose(query, batch, told)
            found = [list(stage.kept) for stage in chosen]
        else:
            chosen = self.stages.choose(query, batch, told)
            for stage in chosen:
                stage.store_kept(self.routing.batch)
            self.routing.commit()
            load = self.routing.store.load_now
            found = [[stage.read(each) for each in load(list(stage.numbers))] for stage in chosen]
        self.commit_loaded(query, batch, chosen, found=found)
        self.routing.pump()

    def commit_loaded(
        self,
        query: str,
        number: int,
        chosen: list[StagedTransaction],
        *,
        found: list[list[Message]],
    ) -> None:
        """Commit the stages `chosen`, of which `found` has all messages, in one go."""
        batch = self.routing.batch
        self.stages.begin_commit(query, number, chosen, batch=batch)
        for stage, messages in zip(chosen, found, strict=True):
            self.stages.publish(stage, messages, batch)
            stage.end(batch)
        self.drop_up_to(query, number)

    def drop_up_to(self, query: str, number: int) -> int:
        """End all stages up to that batch; return how many messages they had."""
        return self._drop(self.stages.take_up_to(query, number))

    def abort(self, query: str, number: int) -> int:
        """End the stages of one batch; return how many messages they had."""
        return self._drop(self.stages.take_batch(query, number))

    def end(self, query: str) -> int:
        """Forget a sink; return how many messages its stages had."""
        return self._drop(self.stages.take_all(query, self.routing.batch))

    def trim(self, wanted: Task, count: int) -> int:
        """Drop all but the first messages of an attempt; return how many were dropped."""
        dropped = 0
        for cut in self.stages.cut(wanted, count, self.routing.batch):
            dropped += int(cut.left())
            cut.let_go(cut.left(), self.routing.batch)
        return dropped

    def _drop(self, stages: list[StagedTransaction]) -> int:
        dropped = sum(int(stage.messages()) for stage in stages)
        for stage in stages:
            stage.end(self.routing.batch)
        return dropped

    def stored(self) -> int:
        """Return the number of staged messages in the store after a commit."""
        self.routing.commit()
        found = self.routing.store.load_now(list(range(1, 1000)))
        return len([each for each in found if each.queue == STAGED])

    def waiting(self, address: str = "q") -> list[bytes]:
        """Return the bodies that a browser of the queue sees."""
        browser = self.routing.browser(self.routing.queue(address), 1000)
        return [body_of(copy) for copy in browser.copies]


def body_of(copy: bytes) -> bytes:
    """Return the body from which `encoded` made a message."""
    return copy[copy.index(b"\x00\x53\x75") + 5 :]


def restarted(
    before: Staging, *, policy: AddressPolicy | None = None, stage_retention_ms: int = 0
) -> Staging:
    """Return a router with the stored state only; its clock and the driver continue.

    The broker was stopped, not killed: what was in memory alone is stored.
    """
    old = before.routing
    before.stages.store_kept(old.batch)
    old.commit()
    new = Routing(store=old.store, policy=policy, stage_retention_ms=stage_retention_ms)
    new.clock.advance(old.clock.now_ms() - new.clock.now_ms())
    new.router.context.number_from(int(old.router.context.next_stored_number()))
    recovery = Recovery(new.router, new.batch)
    recovery.nodes(asyncio.run(old.store.nodes()), asyncio.run(old.store.leases()))
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
    after = Staging(new)
    after.sent = before.sent
    return after


def depth(queue: Queue) -> tuple[int, int]:
    """Return the numbers of messages in `queue` and of those staged for it."""
    return int(queue.contents()), int(queue.staged)
