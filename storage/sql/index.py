"""The index of a store's rows in memory, and the conversion of a batch to rows by means of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from sqlalchemy.sql.expression import ClauseElement

from storage.batch import Batch
from storage.sql import delivered, events, ids, leases, stages, unsettled, users
from storage.sql.chunks import Chunks
from storage.sql.rows import subscription_row
from storage.sql.segments.packing import unknown_queues
from storage.sql.segments.segments import SegmentChanges, Segments
from storage.sql.statements import (
    DELETE_NODE,
    DELETE_QUEUE,
    DELETE_SUBSCRIPTION,
    INSERT_NODE,
    INSERT_QUEUE,
    INSERT_SUBSCRIPTION,
    SET_MARK,
    SET_SUBSCRIPTION_OWNER,
)

NUMBERS: Final = "numbers"
"""Mark with the highest reserved message number."""

QUEUES: Final = "queues"
"""Mark with the highest reserved queue id: messages of a removed queue may still be stored."""

TIDY: Final = "tidy"
"""Mark that is 1 as long as no queue was removed and no volatile message was stored: then a start
has no messages to look for and delete."""

NUMBERS_AT_ONCE: Final = 1_000_000
"""Message numbers that one write of the mark reserves."""

QUEUES_AT_ONCE: Final = 1000
"""Queue ids that one write of the mark reserves."""

Row = tuple[object, ...]


@final
class Changes:
    """The rows to write for one batch, in the order of the attributes."""

    def __init__(self) -> None:
        self.statements: Final[list[tuple[ClauseElement, Sequence[Row]]]] = []
        """Statements for queues, nodes, subscriptions, marks, delivered positions, remembered ids,
        contents, events, stages, leases and users."""
        self.segments = SegmentChanges()


@final
class Index:
    """Ids of queues, segments, damaged messages (`left_out`), and the highest reserved numbers.

    `suspected` has by id of queue the position up to which messages may have been delivered before
    the start.
    """

    def __init__(self) -> None:
        self.queue_ids: Final[dict[str, int]] = {}
        self._names: dict[int, str] | None = None
        self.numbers_up_to = 0
        self.queues_up_to = 0
        self.chunks = Chunks()
        self._last_queue = 0
        self.segments: Final = Segments()
        self.left_out: set[int] = set()
        self.suspected: dict[int, int] = {}
        self._has_volatile = False

    def speak_for(self, *, numbers: int, queues: int) -> None:
        """Begin behind the message numbers and queue ids that are reserved already."""
        self.numbers_up_to = numbers
        self.queues_up_to = self._last_queue = queues

    def names(self) -> dict[int, str]:
        """Return the names of queues by their ids; built once until queues change."""
        if self._names is None:
            self._names = {queue: name for name, queue in self.queue_ids.items()}
        return self._names

    def apply(self, batch: Batch) -> Changes:
        """Apply `batch` to the index and return the rows to write. Call once per batch.

        `segments` must have learned the segments that it wants (`wanted`) before this.
        """
        changes = Changes()
        if batch.nodes_removed or batch.subscriptions_removed:
            self._remove(batch, changes)
        if batch.has_volatile and not self._has_volatile:
            self._has_volatile = True
            changes.statements.append((SET_MARK, [(0, TIDY)]))
        self._add(batch, changes)
        if batch.last_number() > self.numbers_up_to:
            self.numbers_up_to = batch.last_number() + NUMBERS_AT_ONCE
            changes.statements.append((SET_MARK, [(self.numbers_up_to, NUMBERS)]))
        changes.segments = self.segments.apply(batch, self.queue_ids)
        if batch.delivered:
            changes.statements.extend(delivered.statements_of(batch.delivered, self.queue_ids))
        if batch.ids is not None:
            changes.statements.extend(ids.statements_of(batch.ids))
        if batch.contents is not None or self.chunks.uses.any():
            changes.statements.extend(self.chunks.apply(batch))
        if batch.events is not None:
            changes.statements.extend(events.statements_of(batch.events))
        if batch.stages is not None:
            changes.statements.extend(stages.statements_of(batch.stages))
        if batch.leases is not None:
            changes.statements.extend(leases.statements_of(batch.leases))
        if batch.users is not None:
            changes.statements.extend(users.statements_of(batch.users))
        if batch.unsettled is not None:
            changes.statements.extend(unsettled.statements_of(batch.unsettled))
        return changes

    def _remove(self, batch: Batch, changes: Changes) -> None:
        """Remove nodes, queues, subscriptions; the messages left over are deleted at a start."""
        names = [node.address for node in batch.nodes_removed if node.kind == "queue"]
        names += batch.subscriptions_removed
        gone = [(name,) for name in names if self.queue_ids.pop(name, None) is not None]
        nodes = [(node.kind, node.address) for node in batch.nodes_removed]
        subscriptions = [(queue,) for queue in batch.subscriptions_removed]
        if gone:
            self._names = None
            changes.statements.append((SET_MARK, [(0, TIDY)]))
        for statement, rows in (
            (DELETE_QUEUE, gone),
            (DELETE_NODE, nodes),
            (DELETE_SUBSCRIPTION, subscriptions),
        ):
            if rows:
                changes.statements.append((statement, rows))

    def _add(self, batch: Batch, changes: Changes) -> None:
        """Add nodes, subscriptions, and every queue that these or messages name."""
        queues: list[Row] = []
        for node in batch.nodes_added:
            if node.kind == "queue":
                self._add_queue(node.address, queues)
        for subscription in batch.subscriptions_added:
            self._add_queue(subscription.queue, queues)
        for name in unknown_queues(batch.appended, self.queue_ids):
            self._add_queue(name, queues)
        if self._last_queue > self.queues_up_to:
            self.queues_up_to = self._last_queue + QUEUES_AT_ONCE
            changes.statements.append((SET_MARK, [(self.queues_up_to, QUEUES)]))
        if queues:
            changes.statements.append((INSERT_QUEUE, queues))
        if batch.nodes_added:
            nodes = [
                (
                    *(node.kind, node.address, node.creator, node.auto_created),
                    *(node.kind, node.address),
                )
                for node in batch.nodes_added
            ]
            changes.statements.append((INSERT_NODE, nodes))
        if batch.subscriptions_added:
            subscriptions = [subscription_row(each) for each in batch.subscriptions_added]
            changes.statements.append((INSERT_SUBSCRIPTION, subscriptions))
        if batch.subscription_owners:
            owners = [(owner, queue) for queue, owner in batch.subscription_owners.items()]
            changes.statements.append((SET_SUBSCRIPTION_OWNER, owners))

    def _add_queue(self, name: str, rows: list[Row]) -> None:
        if name not in self.queue_ids:
            self._names = None
            self._last_queue += 1
            self.queue_ids[name] = self._last_queue
            rows.append((self._last_queue, name))
