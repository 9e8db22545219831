"""Restores nodes, subscriptions and messages from the store, before any client connects."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.outcomes import read_outcome
from broker.amqp.received_outcomes import ReceivedOutcomes
from broker.amqp.terminus import filter_from
from broker.links.filters import in_force
from broker.links.leased import LeasedMessages
from broker.links.merging import Merging
from broker.message import AT_ONCE
from broker.routing.addresses.address import Address
from broker.routing.entries.record_mapping import HELD_PLACES
from broker.routing.queues.node import TOPIC
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from broker.routing.termini.suspended import SuspendedTerminus
from broker.routing.topics.lifetime import Ending, ExpiryPolicy
from broker.routing.topics.subscription import SubscriptionExpiry, SubscriptionSpec
from storage.batch import Batch
from storage.leases import StoredLeases
from storage.records import (
    StoredId,
    StoredMessage,
    StoredNode,
    StoredPlaces,
    StoredSubscription,
)
from storage.stages import STAGED, StoredSink, StoredStage
from storage.unsettled import StoredOutcome


@final
class Recovery:
    """Takes records from the store: nodes, then subscriptions, sinks and stages, then messages.

    Within their kind, records may come in any order.

    Only messages with a delivery time, messages held back until they can be moved, and leased
    messages are loaded; for all others, only their places are noted. A message up to the position
    of `deliveries` may have been delivered, and is marked so (RCV-08): an alarm that may be false,
    but is never missing. Nothing counts towards the redelivery limit. Leased messages are never
    offered to other consumers. They have no mark, since their batches have their delivery counts;
    if a batch is damaged, any message of its queue may have been delivered.
    """

    def __init__(self, router: Router, batch: Batch) -> None:
        self._router: Final = router
        self._leased_unknown: Final[list[Queue]] = []
        self._batch: Final = batch
        self._queues: Final[dict[str, Queue]] = {}
        self._scheduled: Final[list[int]] = []
        self._messages: Final[list[StoredMessage]] = []
        self._leased: Final = LeasedMessages(router, batch)
        self.merging: Final = Merging(router, batch, self._messages.append)
        router.context.suspect()

    def nodes(self, stored: list[StoredNode], leases: StoredLeases) -> None:
        """Restore all queues and topics. Those with `leases` are exempt from merging."""
        for node in stored:
            self._router.bring_back(node)
        self.merging.nodes(stored, {lease.queue for lease in leases.leases})

    def subscription(self, stored: StoredSubscription) -> None:
        """Restore a durable subscription, and bind it anew."""
        filters = in_force([filter_from(key, encoded) for key, encoded in stored.filters])
        address = self.merging.subscribed(stored.address)
        spec = SubscriptionSpec(
            Address(address, TOPIC), filters.of(stored.excluded_publisher), filters.stated
        )
        terms = SubscriptionExpiry(
            durability=stored.durability,
            expiry_policy=stored.expiry_policy,
            timeout_s=stored.timeout_s,
        )
        made = self._router.subscriptions.bring_back(stored, spec, terms, batch=self._batch)
        if not made.is_over:
            self._queues[stored.queue] = made.queue

    def leases(self, stored: StoredLeases) -> None:
        """Restore the leases, which know their messages by number."""
        leases = self._router.leases
        leases.fencing_token = max(leases.fencing_token, stored.fencing_token)
        for lease in stored.leases:
            self._leased.lease(lease, self._queue(lease.queue))
        for name in stored.damaged:
            queue = self._leased.damaged(name)
            if queue is not None:
                self._leased_unknown.append(queue)
        for lease_batch in stored.batches:
            self._leased.lease_batch(lease_batch)

    def remembered_id(self, stored: StoredId) -> None:
        """Restore an id for duplicate detection; forget it if its node detects none any more."""
        self._router.duplicates.has_been_given(stored.number)
        if self.merging.remembers(stored):
            return
        node = self._router.find(Address(stored.address, stored.kind))
        if node is None or node.duplicates is None:
            self._batch.forget(stored.number)
        else:
            node.duplicates.bring_back(stored, self._batch)

    def outcomes(self, stored: list[StoredOutcome]) -> None:
        """Restore targets whose senders may resume deliveries; their time begins anew."""
        targets: dict[tuple[str, str], list[StoredOutcome]] = {}
        for each in stored:
            targets.setdefault((each.container_id, each.link), []).append(each)
        for key, outcomes in targets.items():
            kept = ReceivedOutcomes()
            for each in outcomes:
                kept.arrived(each.tag)
                kept.decided(each.tag, read_outcome(each.outcome, 0, i64(len(each.outcome))))
            first = outcomes[0]
            terminus = SuspendedTerminus(
                (key[0], key[1], True),
                first.owner,
                address=first.address,
                terms=ExpiryPolicy(first.expiry_policy, timeout_s=first.timeout_s),
                outcomes=kept,
            )
            terminus.is_stored = True
            self._router.termini.suspend(
                terminus, Ending.CONNECTION_LOST, self._batch, connection=-1, session=-1
            )

    def sink(self, stored: StoredSink) -> None:
        """Restore which batch a query has committed last."""
        self._router.staging_area.bring_back_sink(stored)

    def stage(self, stored: StoredStage) -> None:
        """Restore a stage, which its query has not committed. Call it after nodes and sinks."""
        self._router.staging_area.bring_back(stored, self._batch)

    def deliveries(self, delivered: dict[str, int]) -> None:
        """Restore the position up to which messages may have been delivered, by queue.

        Call it before `places`: messages that come after the start get positions behind it.
        """
        for name, position in delivered.items():
            queue = self._queue(name)
            if queue is not None:
                queue.persistence.restore(position)

    def places(self, part: StoredPlaces) -> None:
        """Note where stored messages are, for their queues, stages, leases and merges."""
        for index in range(len(part.numbers)):
            number = part.numbers[index]
            if part.queues[index] == STAGED:
                place, size = part.positions[index], part.sizes[index]
                self._router.staging_area.place(number, place, size=size, batch=self._batch)
                continue
            if self.merging.takes(part.queues[index], part.positions[index], number):
                continue
            queue = self._queue(part.queues[index])
            if queue is None:
                continue  # of a subscription that has just ended, with all of its messages
            if self._leased.claim(number):
                continue
            if part.deliver_at_ms[index] != AT_ONCE or part.positions[index] >= HELD_PLACES:
                self._scheduled.append(number)
                continue
            queue.bring_back_place(
                number=number,
                place=part.positions[index],
                size=part.sizes[index],
                expires_at_ms=part.expires_at_ms[index],
            )

    def _queue(self, name: str) -> Queue | None:
        queue = self._queues.get(name)
        return self._router.queues.get(name) if queue is None else queue

    def scheduled(self) -> list[int]:
        """Return the numbers of messages held back or waiting for a delivery time, ascending."""
        return self._scheduled

    def message(self, stored: StoredMessage) -> None:
        """Take the record of one of the `scheduled` messages."""
        self._messages.append(stored)

    def leased(self) -> list[int]:
        """Return the numbers of the messages that leases have, ascending."""
        return self._leased.numbers()

    def leased_message(self, stored: StoredMessage) -> None:
        """Take the record of one of the `leased` messages."""
        self._leased.message(stored)

    def finish(self) -> None:
        """Finish leases and merges, and put the loaded messages into their queues, in order."""
        self._leased.finish()
        self.merging.finish()
        self._messages.sort(key=_position)
        for stored in self._messages:
            queue = self._queue(stored.queue)
            if queue is not None and stored.position >= HELD_PLACES:
                self._router.moves.bring_back(queue, stored)
            elif queue is not None:
                queue.bring_back(
                    queue.entry_of(stored, stored.position // 10), stored.deliver_at_ms
                )
        self._messages.clear()
        for queue in self._leased_unknown:
            self._suspect_all(queue)

    def _suspect_all(self, queue: Queue) -> None:
        """Treat all messages that `queue` has now as possibly delivered, also after a next kill."""
        behind: i64 = 0
        for backlog in queue.backlogs.existing():
            behind = max(behind, backlog.next_position)
        for backlog in queue.backlogs.existing():
            backlog.begin_behind(behind)
        self._batch.mark_delivered(queue.persistence.stored_as, behind * 10 + 9)
        queue.persistence.restore(behind * 10 + 9)


def _position(stored: StoredMessage) -> int:
    return int(stored.position)
