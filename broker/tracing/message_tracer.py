"""The observer of queues that makes spans of the messages whose trace is sampled.

A message has a span `NAME enqueue` until its producer may have the outcome, and for each delivery
a span `NAME deliver`, from the time at which it was ready until its settlement. Both are children
of the span of its sender: an application sees them beside each other in its own trace.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import QueueObserver
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.message_events import (
    ACCEPTED,
    DEAD_LETTERED,
    SETTLED,
    message_id_of,
    settlement_of,
    shown,
)
from broker.routing.selector.facts import Facts
from broker.security.resources import OWN_NAMES
from broker.tracing.spans import Span, SpanKind, new_span_id
from broker.tracing.trace_context import sampled_context

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.journal import Journal
    from broker.routing.queues.queue import Queue
    from broker.tracing.spans import SpanReceiver
    from broker.tracing.trace_context import TraceContext
    from storage.batch import Batch

TRACED_MAX: Final = 10_000
"""Maximum messages in queues whose times are kept; the deliveries of others have no spans."""

LEAVES_QUEUE: Final = (Disposal.REMOVE, Disposal.DEAD_LETTER)

Place = tuple["Queue", int, int]
"""A queue, a priority and a position: they name a message also after it was paged out."""


@final
class TracedMessage:
    """A message in a queue: its context, and since when it has been ready, or delivered (µs)."""

    def __init__(self, context: TraceContext, ready_us: int) -> None:
        self.context: Final = context
        self.ready_us = ready_us
        self.delivered_us = 0
        self.enqueuing: EnqueuingMessage | None = None


@final
class EnqueuingMessage:
    """A message whose producer has no outcome yet; `page` is that of the batch with the message.

    `span` lacks its end.
    """

    def __init__(self, span: Span, page: int) -> None:
        self.span: Final = span
        self.page: Final = page
        self.is_over = False


@final
class MessageTracer(QueueObserver):
    """Makes spans for the sampled messages of all queues, and passes each event on to `others`.

    `others` is the observer that the queues would have without this one.
    """

    def __init__(
        self,
        clock: Clock,
        journal: Journal,
        spans: SpanReceiver,
        *,
        others: QueueObserver | None,
    ) -> None:
        self._spans: Final = spans
        self._clock: Final = clock
        self._journal: Final = journal
        self._others: Final = others
        self._ready: Final[dict[Place, TracedMessage]] = {}
        self._scheduled: Final[dict[QueueEntry, TracedMessage]] = {}
        self._enqueuing: Final[deque[EnqueuingMessage]] = deque()

    @property
    def traced(self) -> int:
        """Return how many messages in queues are traced."""
        return len(self._ready) + len(self._scheduled)

    def committed(self) -> None:
        """End the spans of the messages that the store has now."""
        now_us = int(self._clock.wall_us())
        while self._enqueuing and self._journal.is_durable(self._enqueuing[0].page):
            self._end_enqueuing(self._enqueuing.popleft(), now_us)

    # -- what happens

    def admitted(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        context = _context_of(entry)
        if context is not None:
            self._admit(entry, context, batch, is_scheduled=deliver_at_ms > 0)
        if self._others is not None:
            self._others.admitted(entry, deliver_at_ms, batch)

    def delivered(self, entry: QueueEntry, batch: Batch) -> None:
        traced = self._ready.get(place_of(entry)) or self._found_again(entry)
        if traced is not None:
            traced.delivered_us = int(self._clock.wall_us())
        if self._others is not None:
            self._others.delivered(entry, batch)

    def settled(
        self, entry: QueueEntry, disposal: Disposal, batch: Batch, *, cause: Cause | None = None
    ) -> None:
        place = place_of(entry)
        traced = self._ready.get(place)
        if traced is not None:
            outcome, reason = settlement_of(entry, disposal, cause)
            self._end_delivery(entry, traced, outcome, reason=reason)
            if disposal in LEAVES_QUEUE:
                del self._ready[place]
        if self._others is not None:
            self._others.settled(entry, disposal, batch, cause=cause)

    def departed(self, entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
        traced = self._scheduled.pop(entry, None) or self._ready.pop(place_of(entry), None)
        # a dead-lettered message has the span of the delivery that failed
        if traced is not None and kind != DEAD_LETTERED:
            self._end_delivery(entry, traced, kind, reason=reason)
        if self._others is not None:
            self._others.departed(entry, kind, batch, reason=reason)

    def dropped(self, queue: Queue, messages: i64, batch: Batch, *, why: str) -> None:
        before = self.traced
        for place in [each for each in self._ready if each[0] is queue]:
            del self._ready[place]
        for entry in [each for each in self._scheduled if each.queue is queue]:
            del self._scheduled[entry]
        self._spans.drop(before - self.traced)
        if self._others is not None:
            self._others.dropped(queue, messages, batch, why=why)

    # -- messages

    def _admit(
        self, entry: QueueEntry, context: TraceContext, batch: Batch, *, is_scheduled: bool
    ) -> None:
        now_us = int(self._clock.wall_us())
        traced = self._scheduled.pop(entry, None)
        if traced is None:
            traced = TracedMessage(context, now_us)
            enqueuing = EnqueuingMessage(_enqueue_span(entry, context, now_us), int(batch.page))
            if entry.stored_number == NOT_STORED or self._journal.is_durable(batch.page):
                self._end_enqueuing(enqueuing, now_us)
            else:
                traced.enqueuing = enqueuing
                self._enqueuing.append(enqueuing)
        traced.ready_us = now_us
        if not self._has_room():
            return
        if is_scheduled:
            self._scheduled[entry] = traced
        else:
            self._ready[place_of(entry)] = traced

    def _found_again(self, entry: QueueEntry) -> TracedMessage | None:
        """Return a new record of a message that was in the store when the broker started."""
        context = _context_of(entry)
        if context is None or not self._has_room():
            return None
        traced = TracedMessage(context, int(self._clock.wall_us()))
        self._ready[place_of(entry)] = traced
        return traced

    def _has_room(self) -> bool:
        """Return whether one more message can be traced; count it if not."""
        if self.traced < TRACED_MAX:
            return True
        self._spans.drop(1)
        return False

    # -- spans

    def _end_enqueuing(self, enqueuing: EnqueuingMessage, now_us: int) -> None:
        if enqueuing.is_over:
            return
        enqueuing.is_over = True
        self._spans.put(replace(enqueuing.span, end_us=now_us))

    def _end_delivery(
        self, entry: QueueEntry, traced: TracedMessage, outcome: str, *, reason: str
    ) -> None:
        """Make the span of a delivery; the next one is ready from now on."""
        now_us = int(self._clock.wall_us())
        if traced.enqueuing is not None:
            # a message that was consumed before a commit is not written
            self._end_enqueuing(traced.enqueuing, now_us)
            traced.enqueuing = None
        consumer = entry.consumer
        client = "" if consumer is None else consumer.label().container_id
        attributes = attributes_of(entry, "deliver", client)
        attributes["jms_broker.outcome"] = outcome
        attributes["jms_broker.delivery_count"] = int(entry.delivery_count)
        is_error = outcome not in (ACCEPTED, SETTLED)
        self._spans.put(
            Span(
                name=f"{entry.queue.address} deliver",
                kind=SpanKind.PRODUCER,
                parent=traced.context,
                span_id=new_span_id(),
                start_us=traced.ready_us,
                end_us=now_us,
                attributes=attributes,
                events=(("delivered", traced.delivered_us),) if traced.delivered_us else (),
                error=shown(reason) or outcome if is_error else "",
            )
        )
        traced.ready_us, traced.delivered_us = now_us, 0


def _enqueue_span(entry: QueueEntry, context: TraceContext, now_us: int) -> Span:
    """Return the span of a message that arrives now, and does not end yet."""
    return Span(
        name=f"{entry.queue.address} enqueue",
        kind=SpanKind.CONSUMER,
        parent=context,
        span_id=new_span_id(),
        start_us=now_us,
        end_us=now_us,
        attributes=attributes_of(entry, "enqueue", entry.message.publisher),
    )


def place_of(entry: QueueEntry) -> Place:
    """Return the place of a message among all messages of the broker."""
    return entry.queue, int(entry.message.priority), int(entry.position)


def _context_of(entry: QueueEntry) -> TraceContext | None:
    """Return the context of a sampled message; None for others, and for the broker's responses."""
    context = sampled_context(entry.message)
    if context is None or (
        entry.queue.address.startswith(OWN_NAMES) and not entry.queue.is_temporary
    ):
        return None
    return context


def attributes_of(entry: QueueEntry, operation: str, client: str) -> dict[str, str | int | bool]:
    """Return the attributes of a span, by the names of OpenTelemetry's conventions."""
    queue = entry.queue
    found: dict[str, str | int | bool] = {
        "messaging.system": "jms",
        "messaging.operation.name": operation,
        "messaging.operation.type": "receive" if operation == "enqueue" else "send",
        "messaging.destination.name": shown(queue.address),
        "messaging.message.id": message_id_of(entry),
        "messaging.message.conversation_id": _conversation_of(entry),
        "messaging.client.id": shown(client),
        "messaging.destination.subscription.name": shown(queue.subscription),
    }
    if queue.is_temporary:
        found["messaging.destination.temporary"] = True
    return {name: value for name, value in found.items() if value != ""}


def _conversation_of(entry: QueueEntry) -> str:
    """Return the correlation id as JMS clients see it; empty if there is none."""
    found = Facts(entry.message).correlation_id()
    return shown(found) if isinstance(found, str) else ""
