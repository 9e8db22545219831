"""Spans of messages in queues: their times, outcomes, and what becomes of them at each event."""

from __future__ import annotations

import pytest

from broker.journal import Journal
from broker.message import Message
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from broker.tracing import message_tracer
from broker.tracing.message_tracer import MessageTracer
from broker.tracing.spans import Span, SpanKind
from storage.memory import MemoryStore
from tests.support.clock import WALL_START_MS, SimulatedClock
from tests.support.frames import message
from tests.support.parties import RecordingConsumer, RecordingWitness
from tests.support.routing import Routing, new_message
from tests.support.stores import GatedStore
from tests.support.traces import (
    SENDER,
    TRACE,
    UNSAMPLED,
    RecordedSpans,
    traced_bytes,
)

pytestmark = pytest.mark.requirement("OPS-09")

START_US = WALL_START_MS * 1000


class Traced:
    """A routing whose queues are traced, and the spans so far."""

    def __init__(self, *, commits_at_once: bool = True) -> None:
        self.spans = RecordedSpans()
        self.witness = RecordingWitness()
        self.journal = Journal(MemoryStore() if commits_at_once else GatedStore())
        self.clock = SimulatedClock()
        self.tracer = MessageTracer(self.clock, self.journal, self.spans, others=self.witness)
        self.routing = Routing(observer=self.tracer)
        self.queue = self.routing.queue("orders")

    def put(self, message: Message | None = None, queue: Queue | None = None) -> None:
        (queue or self.queue).put(message or traced(), self.routing.batch)
        self.routing.pump()

    def consumer(self, queue: Queue | None = None) -> RecordingConsumer:
        return self.routing.consumer(queue or self.queue, credit=10)

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.routing.advance(milliseconds)

    def settled(self, consumer: RecordingConsumer, disposal: Disposal) -> None:
        consumer.dispose(disposal, self.routing.batch)
        self.routing.pump()

    def forget(self) -> None:
        """Let the tracer know nothing of the messages in the queue, as after a start or a purge."""
        self.tracer.dropped(self.queue, 1, self.routing.batch, why="a test")

    def commit(self) -> None:
        """Do what the broker does when the store has the batch."""
        self.journal.durable_page = self.routing.batch.page
        self.tracer.committed()


def traced(*, durable: bool = False, deliver_at_ms: int = 0) -> Message:
    """Return a message of a sampled trace."""
    return new_message(
        traced_bytes(), durable=durable, deliver_at_ms=deliver_at_ms, publisher="shop"
    )


def times_ms(span: Span) -> tuple[float, float]:
    """Return start and end of a span in ms since the start of the test."""
    return (span.start_us - START_US) / 1000, (span.end_us - START_US) / 1000


def test_a_message_has_a_span_when_it_arrives_and_one_for_its_delivery() -> None:
    broker = Traced()
    broker.put()
    broker.advance(70)
    consumer = broker.consumer()
    broker.advance(30)
    broker.settled(consumer, Disposal.REMOVE)
    enqueue, deliver = broker.spans.spans
    assert (enqueue.name, enqueue.kind) == ("orders enqueue", SpanKind.CONSUMER)
    assert (deliver.name, deliver.kind) == ("orders deliver", SpanKind.PRODUCER)
    assert times_ms(enqueue) == (0, 0)
    assert times_ms(deliver) == (0, 100)
    assert deliver.events == (("delivered", START_US + 70_000),)
    assert [(each.parent.trace_id, each.parent.span_id) for each in (enqueue, deliver)] == [
        (TRACE, SENDER)
    ] * 2
    assert enqueue.span_id != deliver.span_id
    assert (deliver.error, deliver.attributes["jms_broker.outcome"]) == ("", "accepted")


def test_the_attributes_of_spans() -> None:
    broker = Traced()
    broker.put()
    (enqueue,) = broker.spans.spans
    assert enqueue.attributes == {
        "messaging.system": "jms",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "receive",
        "messaging.destination.name": "orders",
        "messaging.client.id": "shop",
    }
    temporary = broker.routing.temporary_queue()
    broker.put(queue=temporary)
    assert broker.spans.spans[-1].attributes["messaging.destination.temporary"] is True


def test_a_durable_message_arrives_with_its_commit() -> None:
    broker = Traced(commits_at_once=False)
    broker.put(traced(durable=True))
    broker.advance(20)
    assert broker.spans.spans == []
    broker.commit()
    assert [times_ms(each) for each in broker.spans.spans] == [(0, 20)]
    broker.commit()
    assert broker.spans.names() == ["orders enqueue"]


def test_a_message_that_is_consumed_before_its_commit_has_both_spans() -> None:
    broker = Traced(commits_at_once=False)
    consumer = broker.consumer()
    broker.put(traced(durable=True))
    broker.settled(consumer, Disposal.REMOVE)
    assert broker.spans.names() == ["orders enqueue", "orders deliver"]
    broker.commit()
    assert broker.spans.names() == []


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"x", id="no context"),
        pytest.param(traced_bytes(UNSAMPLED), id="not sampled"),
        pytest.param(message(properties={"a": 1}), id="other properties"),
    ],
)
def test_other_messages_have_no_spans(data: bytes) -> None:
    broker = Traced()
    consumer = broker.consumer()
    broker.put(new_message(data))
    broker.settled(consumer, Disposal.REMOVE)
    assert broker.spans.spans == []
    assert len(broker.witness.heard) == 1  # the next observer hears of them all the same


@pytest.mark.parametrize(
    ("disposal", "outcome", "error"),
    [
        (Disposal.REMOVE, "accepted", ""),
        (Disposal.RELEASE, "released", "released"),
        (Disposal.FAIL, "modified", "delivery-failed"),
        (Disposal.DEAD_LETTER, "rejected", "rejected"),
    ],
)
def test_an_outcome(disposal: Disposal, outcome: str, error: str) -> None:
    broker = Traced()
    consumer = broker.consumer()
    broker.put()
    broker.spans.names()
    broker.settled(consumer, disposal)
    deliver = broker.spans.spans[0]
    assert deliver.name == "orders deliver"
    assert (deliver.attributes["jms_broker.outcome"], deliver.error) == (outcome, error)


def test_each_delivery_has_a_span_from_the_end_of_the_one_before() -> None:
    broker = Traced()
    broker.put()
    first = broker.consumer()
    broker.advance(10)
    broker.settled(first, Disposal.FAIL)
    broker.advance(5)
    broker.settled(first, Disposal.REMOVE)
    delivers = broker.spans.spans[1:]
    assert [times_ms(each) for each in delivers] == [(0, 10), (10, 15)]
    assert [each.attributes["jms_broker.delivery_count"] for each in delivers] == [0, 1]


def test_a_dead_letter_arrives_in_its_queue() -> None:
    broker = Traced()
    consumer = broker.consumer()
    broker.put()
    broker.settled(consumer, Disposal.DEAD_LETTER)
    assert broker.spans.names() == ["orders enqueue", "orders deliver", "DLQ enqueue"]


def test_a_message_that_expires_ends_without_a_delivery() -> None:
    broker = Traced()
    broker.put(new_message(traced_bytes(), expires_at_ms=WALL_START_MS + 50))
    broker.advance(60_000)
    broker.consumer()
    names = [each.name for each in broker.spans.spans]
    assert names == ["orders enqueue", "orders deliver"]
    ended = broker.spans.spans[1]
    assert (ended.attributes["jms_broker.outcome"], ended.error) == ("expired", "expired")


def test_a_scheduled_message_is_ready_at_its_delivery_time() -> None:
    broker = Traced()
    broker.put(traced(deliver_at_ms=WALL_START_MS + 500))
    consumer = broker.consumer()
    broker.advance(600)
    broker.settled(consumer, Disposal.REMOVE)
    assert [each.name for each in broker.spans.spans] == ["orders enqueue", "orders deliver"]
    assert times_ms(broker.spans.spans[1]) == (600, 600)


def test_each_subscriber_of_a_topic_has_its_spans() -> None:
    broker = Traced()
    topic = broker.routing.topic("news")
    consumers = [broker.routing.consumer(topic, credit=1) for _ in range(2)]
    topic.put(traced(), broker.routing.batch)
    broker.routing.pump()
    for consumer in consumers:
        broker.settled(consumer, Disposal.REMOVE)
    assert sorted(broker.spans.names()) == ["news deliver"] * 2 + ["news enqueue"] * 2


def test_a_message_from_before_the_start_has_spans_of_its_deliveries() -> None:
    broker = Traced()
    broker.put()
    broker.forget()
    consumer = broker.consumer()
    broker.settled(consumer, Disposal.REMOVE)
    assert broker.spans.names() == ["orders enqueue", "orders deliver"]


def test_purged_and_deleted_messages_are_forgotten() -> None:
    broker = Traced()
    broker.put()
    broker.put(traced(deliver_at_ms=WALL_START_MS + 500))
    assert broker.tracer.traced == 2
    broker.forget()
    assert (broker.tracer.traced, broker.spans.dropped) == (0, 2)


def test_what_is_kept_is_limited_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_tracer, "TRACED_MAX", 2)
    broker = Traced()
    for _ in range(3):
        broker.put()
    assert (broker.tracer.traced, broker.spans.dropped) == (2, 1)
    consumer = broker.consumer()
    for _ in range(3):
        broker.settled(consumer, Disposal.REMOVE)
    assert broker.spans.names() == ["orders enqueue"] * 3 + ["orders deliver"] * 2
    assert broker.tracer.traced == 0
