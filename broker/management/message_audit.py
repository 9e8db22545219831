"""Audit records of single messages, for the queues that the settings list (`audit.messages`).

A queue that is not listed has no observer for it, so its messages cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mypy_extensions import i64

from broker.audit.record import BROKER, Actor, AuditEvent, time_text
from broker.links.container import Container
from broker.links.linkless import Client
from broker.management.auditing import actor_at
from broker.routing.addresses.pattern import matches
from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import (
    NOBODY,
    Consumer,
    Label,
    ObserverChoice,
    QueueObserver,
)
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.message_events import (
    DELIVERED,
    ENQUEUED,
    LEASED,
    PURGED,
    SCHEDULED,
    is_leased,
    message_id_of,
    settlement_of,
)
from broker.routing.queues.queue import Queue
from broker.security.patterns import MANY, PatternError, parse, words_of
from broker.security.resources import OWN_NAMES, QUEUE
from storage.batch import Batch


class AuditedQueues(ObserverChoice):
    """Queues with a name of `patterns`, each a pattern as in the rules file: `queue:hr.#`.

    Raise PatternError for a pattern that is none, or is not of queues.
    """

    def __init__(self, patterns: Iterable[str], container: Container) -> None:
        self._container: Final = container
        self._patterns: Final = [_words(text) for text in patterns]

    def observer_of(self, address: str, other: QueueObserver | None) -> QueueObserver | None:
        words = words_of(address)
        if address.startswith(OWN_NAMES):
            return other
        if not any(matches(pattern, words) for pattern in self._patterns):
            return other
        return MessageAudit(self._container, f"{QUEUE}:{address}", other)


class MessageAudit(QueueObserver):
    """Records each event of the messages of one queue, under the names of the event log.

    The actor is the client that has sent the message or holds it; the broker itself if none has
    caused the event.
    """

    def __init__(self, container: Container, resource: str, other: QueueObserver | None) -> None:
        self._container: Final = container
        self._resource: Final = resource
        self._other: Final = other

    def admitted(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        if deliver_at_ms > 0:
            self._record(entry, SCHEDULED, deliver_at=time_text(int(deliver_at_ms)))
        else:
            self._record(entry, ENQUEUED)
        if self._other is not None:
            self._other.admitted(entry, deliver_at_ms, batch)

    def delivered(self, entry: QueueEntry, batch: Batch) -> None:
        self._record(entry, LEASED if is_leased(entry) else DELIVERED)
        if self._other is not None:
            self._other.delivered(entry, batch)

    def settled(
        self, entry: QueueEntry, disposal: Disposal, batch: Batch, *, cause: Cause | None = None
    ) -> None:
        kind, reason = settlement_of(entry, disposal, cause)
        self._record(entry, kind, reason=reason)
        if self._other is not None:
            self._other.settled(entry, disposal, batch, cause=cause)

    def departed(self, entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
        self._record(entry, kind, reason=reason)
        if self._other is not None:
            self._other.departed(entry, kind, batch, reason=reason)

    def dropped(self, queue: Queue, messages: i64, batch: Batch, *, why: str) -> None:
        if messages > 0:
            after = {"messages": int(messages), "reason": why}
            self._tell(PURGED, self._sender(), after)
        if self._other is not None:
            self._other.dropped(queue, messages, batch, why=why)

    def _record(
        self, entry: QueueEntry, kind: str, *, reason: str = "", deliver_at: str = ""
    ) -> None:
        consumer = entry.consumer
        label = NOBODY if consumer is None else consumer.label()
        facts = {"message_id": message_id_of(entry), "reason": reason, "deliver_at": deliver_at}
        holder: Actor | None = None
        if is_leased(entry):
            facts["lease"] = label.container_id
        else:
            facts.update(container_id=label.container_id, link=label.link)
            holder = self._holder(consumer, label)
        actor = self._sender() if holder is None else holder
        after: dict[str, object] = {name: text for name, text in facts.items() if text}
        if entry.delivery_count:
            after["delivery_count"] = int(entry.delivery_count)
        self._tell(kind, actor, after)

    def _holder(self, consumer: Consumer | None, label: Label) -> Actor | None:
        """Return the client of a consumer; None if there is none, or it has left."""
        client: Client | None = self._container.peer_of(label)
        if client is None and consumer is not None and not label.session:
            # a broker without JMS over HTTP is spared the module
            from broker.links.receipts import SingleConsumer

            client = consumer.client if isinstance(consumer, SingleConsumer) else None
        return None if client is None else actor_at(client.identity, client.entrance)

    def _sender(self) -> Actor:
        """Return the client whose input or request is processed right now."""
        client: Client | None = self._container.receiving
        if client is None:
            client = self._container.posting
        return BROKER if client is None else actor_at(client.identity, client.entrance)

    def _tell(self, kind: str, actor: Actor, after: dict[str, object]) -> None:
        event = AuditEvent(
            action=f"message.{kind}", resource=self._resource, actor=actor, after=after
        )
        self._container.audit.record(event)


def _words(text: str) -> list[str]:
    """Return the words of a pattern of queues, in their normal form."""
    pattern = parse(text)
    if pattern.kind != QUEUE or pattern.has_variables():
        raise PatternError(f"{text!r}: only queue:NAME, where * and # may stand for words")
    tokens = pattern.tokens(is_keyed=False) or ()
    return [each if isinstance(each, str) else "#" if each == MANY else "*" for each in tokens]
