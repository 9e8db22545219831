"""A router on simulated time with a store, and messages to put into it."""

import asyncio
from collections.abc import Sequence

from librt.strings import BytesWriter

from broker.amqp.composite import FieldWriter
from broker.amqp.descriptors import DATA, PROPERTIES
from broker.amqp.encode import put_binary, put_descriptor
from broker.message import AT_ONCE, NEVER, Message, Origin, optional_fields_of
from broker.routing.addresses.address import Address
from broker.routing.addresses.policy import AddressPolicy, Policies
from broker.routing.addresses.prefixes import Prefixes
from broker.routing.credit.commit_delay import CommitDelay
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.groups import Groups
from broker.routing.entries.participants import QueueObserver
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.message_events import EventLogLimits
from broker.routing.queues.paging import Load, Reader
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from broker.routing.topics.subscription import (
    PRIVATE_ROW,
    AttachRule,
    Subscription,
    SubscriptionExpiry,
    SubscriptionSpec,
)
from broker.routing.topics.topic import Topic
from broker.stats import Stats
from storage.batch import Batch
from storage.memory import MemoryStore
from storage.records import StoredMessage
from tests.support.clock import SimulatedClock
from tests.support.parties import RecordingConsumer
from tests.support.stored import stored_messages


def new_message(
    body: bytes = b"x",
    *,
    priority: int = 4,
    durable: bool = False,
    expires_at_ms: int = NEVER,
    deliver_at_ms: int = AT_ONCE,
    arrived_ms: int = 0,
    ttl_ms: int = -1,
    key: str = "",
    publisher: str = "",
    group: str = "",
    closes_group: bool = False,
) -> Message:
    """Return a message whose `encoded` is `body`: routing never decodes it."""
    return Message(
        encoded=body,
        durable=durable,
        priority=priority,
        ttl_ms=ttl_ms,
        arrived_ms=arrived_ms,
        expires_at_ms=expires_at_ms,
        origin=Origin(publisher, key),
        optional_fields=optional_fields_of(deliver_at_ms, group, closes_group=closes_group),
    )


def encoded(body: bytes, *, group: str = "", closes_group: bool = False) -> bytes:
    """Return a message as a client encodes it; a store restores only what is in these bytes."""
    out = BytesWriter()
    if group:
        fields = FieldWriter()
        for _ in range(10):
            fields.skip()
        fields.string(group)
        fields.uint(2**32 - 1 if closes_group else -1)
        fields.close(out, PROPERTIES)
    put_descriptor(out, DATA)
    put_binary(out, body)
    return out.getvalue()


class Shelf(Reader):
    """A reader that loads entries from the store of a routing, at once unless it `is_slow`.

    A slow one collects them in `loads` until `bring` is called.
    """

    def __init__(self, routing: "Routing") -> None:
        self.is_slow = False
        self.loads: list[Load] = []
        self._routing = routing

    def read(self, load: Load) -> None:
        self.loads.append(load)
        if not self.is_slow:
            self.bring()

    def bring(self) -> None:
        """Complete the pending loads; the caller has to dispatch afterwards."""
        routing = self._routing
        while self.loads:
            load = self.loads.pop(0)
            load.finish(routing.store.load_now(load.numbers()), routing.batch)
            routing.router.context.paging.resume()


class Routing:
    """Everything between links and store, in which nothing happens unless a test causes it."""

    def __init__(
        self,
        *,
        policy: AddressPolicy | None = None,
        patterns: Sequence[tuple[str, AddressPolicy]] = (),
        default_kind: str = "queue",
        pacing_mark: int = 2000,
        nodes_max: int = 100_000,
        bindings_max: int = 1_000_000,
        subscriptions_max: int = 100_000,
        observer: QueueObserver | None = None,
        hold_us: int = 0,
        commits_take_time: bool = False,
        store: MemoryStore | None = None,
        paging_window: int = -1,
        event_log_limits: EventLogLimits | None = None,
        stage_retention_ms: int = 0,
        prefixes: Prefixes | None = None,
        auto_create_max: int = 0,
    ) -> None:
        self.clock = SimulatedClock()
        self.stats = Stats()
        self.store = store or MemoryStore()
        self.batch = Batch()
        self.router = Router(
            clock=self.clock,
            stats=self.stats,
            policies=Policies(
                list(patterns),
                policy or AddressPolicy(),
                default_kind,
                prefixes=prefixes,
                auto_create_max=auto_create_max,
            ),
            pacing_mark=pacing_mark,
            nodes_max=nodes_max,
            bindings_max=bindings_max,
            subscriptions_max=subscriptions_max,
            observer=observer,
            commit_delay=CommitDelay(hold_us),
            commits_take_time=commits_take_time,
            paging_window=paging_window,
            event_log_limits=event_log_limits,
            stage_retention_ms=stage_retention_ms,
        )
        self.shelf = Shelf(self)
        self.router.context.paging.reader = self.shelf

    def queue(self, address: str = "q") -> Queue:
        node = self.router.resolve(self.router.parse(address, "queue"), self.batch)
        assert isinstance(node, Queue)
        return node

    def temporary_queue(self, owner: int = 1) -> Queue:
        node = self.router.create_temporary("queue", owner)
        assert isinstance(node, Queue)
        return node

    def topic(self, address: str = "t") -> Topic:
        node = self.router.resolve(self.router.parse(address, "topic"), self.batch)
        assert isinstance(node, Topic)
        return node

    def put(self, queue: Queue | Topic, *bodies: bytes, priority: int = 4) -> None:
        for body in bodies:
            queue.put(new_message(body, priority=priority), self.batch)

    def consumer(
        self,
        queue: Queue | Topic,
        credit: int = 0,
        *,
        settles: bool = False,
        priority: int = 0,
        exclusive: bool = False,
    ) -> RecordingConsumer:
        """Return a consumer that is ready for `credit` messages; on a topic, a subscriber."""
        consumer = RecordingConsumer(settles=self.batch if settles else None)
        consumer.priority = priority
        consumer.exclusive = exclusive
        if isinstance(queue, Topic):
            queue = self.subscribe(queue, consumer)
        else:
            queue.attach_consumer(consumer)
        self.give(queue, consumer, credit)
        return consumer

    def subscribe(self, topic: Topic, consumer: RecordingConsumer) -> Queue:
        """Return the queue of a private subscription for `consumer`, with its filter (SUB-01)."""
        subscriptions = self.router.subscriptions
        spec = SubscriptionSpec(Address(topic.address), consumer.filter)
        consumer.filter = None
        subscription = subscriptions.begin(
            PRIVATE_ROW, spec, SubscriptionExpiry(), topic=topic, batch=self.batch
        )
        subscriptions.join(subscription, consumer)
        return subscription.queue

    def unsubscribe(self, queue: Queue, consumer: RecordingConsumer) -> None:
        """Detach `consumer` and end its subscription; it may have ended already."""
        queue.detach_consumer(consumer, queue, self.batch)
        subscription = self.router.subscriptions.of.get(queue)
        if subscription is not None:
            self.router.subscriptions.end(subscription, self.batch)

    def browser(self, queue: Queue, credit: int = 0) -> RecordingConsumer:
        consumer = RecordingConsumer()
        queue.attach_browser(consumer)
        self.give(queue, consumer, credit)
        return consumer

    def give(
        self, queue: Queue, consumer: RecordingConsumer, credit: int, *, drain: bool = False
    ) -> None:
        """Set the consumer's credit, and dispatch."""
        consumer.credit = credit
        queue.consumer_ready(consumer, drain=drain)
        self.pump()

    def put_grouped(self, queue: Queue, *names: str) -> None:
        """Put messages named by group and number, like `a1`; a final `!` closes the group."""
        for name in names:
            message = new_message(name.encode(), group=name[0], closes_group=name[-1] == "!")
            queue.put(message, self.batch)
        self.pump()

    def leave(self, queue: Queue, consumer: RecordingConsumer, disposal: Disposal) -> None:
        """Detach `consumer` as a link does, after disposing of the entries that it holds."""
        while consumer.entries:
            consumer.dispose(disposal, self.batch)
        queue.detach_consumer(consumer, queue, self.batch)
        self.pump()

    def pump(self) -> None:
        self.router.pump(self.batch)
        while self.router.context.rounds.woken:
            self.router.pump(self.batch)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, and do what is due."""
        self.clock.advance(milliseconds)
        self.router.timer_queue.tick(self.clock.now_ms())
        self.pump()

    def commit(self) -> None:
        """Commit the changes recorded so far."""
        self.store.commit_now(self.batch)
        self.batch = Batch()

    def page_out(self, keep: int = 0) -> None:
        """Page out everything that the store has, except `keep` chunks of each queue."""
        self.commit()
        subscriptions = [each.queue for each in self.router.subscriptions.named.values()]
        for queue in [*self.router.queues.values(), *subscriptions]:
            page_out(queue, keep)

    def stored(self, address: str = "q") -> list[StoredMessage]:
        """Commit, and return the stored messages of a queue."""
        self.commit()
        return asyncio.run(stored_messages(self.store, address))

    def stored_nodes(self) -> list[tuple[str, str]]:
        """Commit, and return kind and address of every stored node."""
        self.commit()
        return [(node.kind, node.address) for node in asyncio.run(self.store.nodes())]


def groups_of(queue: Queue) -> Groups:
    """Return the message groups of `queue`, which has had some."""
    groups = queue.delivery._groups
    assert groups is not None
    return groups


def page_out(queue: Queue, keep: int = 0, up_to: int = 2**62) -> None:
    """Page out what the store has of `queue`, except `keep` chunks."""
    for backlog in queue.backlogs.existing():
        if backlog.paged is not None:
            backlog.page_out(keep, up_to)
            backlog.paged.count()


def bodies(entries: Sequence[QueueEntry]) -> list[bytes]:
    return [entry.message.encoded for entry in entries]


def counts(queue: Queue) -> tuple[int, int, int]:
    """Return the numbers of waiting and of acquired entries, and the bytes of all of them."""
    return queue.backlogs.waiting, queue.state.acquired, queue.state.bytes


def bind(router: Router, address: str, queue: Queue, batch: Batch) -> None:
    """Bind `queue` to a subscriber's address."""
    parsed = router.parse(address)
    router.bind(parsed, None, queue, topic=router.topic_of(parsed, batch))


def begin_subscription(
    router: Router,
    row: AttachRule,
    wanted: SubscriptionSpec,
    terms: SubscriptionExpiry,
    batch: Batch,
) -> Subscription:
    """Begin a subscription, as an attach does."""
    topic = router.topic_of(wanted.address, batch)
    return router.subscriptions.begin(row, wanted, terms, topic=topic, batch=batch)
