"""Work that is done as a whole or not at all, staged until its transaction ends (RCV-06).

Posted messages reach their nodes, and topics select their subscribers, at the commit. In
a node that blocks when it is full a message takes its room when it is posted, so that no
commit is refused for want of room; in a node that rejects, room is checked at the commit.
Retired entries stay acquired, and invisible to other consumers, until the end of the
transaction. So do entries that the transaction has acquired (core 4.4.3), with an outcome or
without. All use the transaction's memory, and count towards its limits.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.errors import Fault
from broker.message import Message
from broker.routing.addresses.policy import BLOCK
from broker.routing.batches.staged_transaction import check_room
from broker.routing.capacity import CapacityCheck
from broker.routing.commit_work import check_work
from broker.routing.credit.memory import OPERATION_BYTES
from broker.routing.entries.dead_letter import REJECTED_UNSAID, Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal, rolled_back
from broker.routing.errors import LimitReached, NoSuchNode, QueueFull, RoutingError
from broker.routing.queues.duplicates import digest_of
from broker.routing.queues.node import Node
from storage.batch import DISCHARGE, Batch

if TYPE_CHECKING:
    from broker.routing.router import Router


@mypyc_attr(allow_interpreted_subclasses=True)
class RetirementListener:
    """Owner of deliveries that were retired but not settled; a rollback leaves them to it."""

    @abstractmethod
    def committed(self, entry: QueueEntry) -> None:
        """Take note that the outcome of `entry` is committed: its delivery is over."""

    @abstractmethod
    def rolled_back(self, entry: QueueEntry) -> None:
        """Take note that the outcome of `entry` is rolled back: its delivery continues."""


@mypyc_attr(allow_interpreted_subclasses=True)
class AcquisitionListener:
    """Owner of deliveries whose entries a transaction has acquired (core 4.4.3)."""

    @abstractmethod
    def acquisition_committed(self, entry: QueueEntry) -> None:
        """Take note that `entry` stays acquired, unless it has an outcome."""

    @abstractmethod
    def acquisition_rolled_back(self, entry: QueueEntry) -> None:
        """End the delivery of `entry`, which returns to its queue."""


@final
class Retirement:
    """The outcome that an entry gets when its transaction is committed.

    `cause` is that of a rejection, `annotations` an encoded map to be added to
    the message's own; `holder` is None if the delivery is settled.
    """

    def __init__(
        self,
        entry: QueueEntry,
        outcome: Disposal,
        *,
        cause: Cause = REJECTED_UNSAID,
        annotations: bytes | None = None,
        holder: RetirementListener | None = None,
    ) -> None:
        self.entry: Final = entry
        self.outcome: Final = outcome
        self.cause: Final = cause
        self.annotations: Final = annotations
        self.holder = holder

    def commit(self, batch: Batch) -> None:
        """Apply the outcome to the entry. Raise nothing: the annotations were tried before."""
        queue = self.entry.queue
        if self.holder is not None:
            # before the annotations, as the holder gives back the bytes that it counted
            self.holder.committed(self.entry)
        if self.annotations is not None:
            queue.annotate(self.entry, self.annotations, batch)
        queue.dispose(self.entry, self.outcome, batch, cause=self.cause)

    def roll_back(self, batch: Batch, *, acquired: bool = False) -> None:
        """Return the entry to its queue, or leave it to the holder of its delivery.

        If the transaction has `acquired` the entry, that is rolled back, too.
        """
        if self.holder is not None:
            self.holder.rolled_back(self.entry)
        if self.holder is None or acquired:
            self.entry.queue.dispose(self.entry, rolled_back(self.outcome), batch)


def is_repeated(node: Node, message: Message, new_ids: set[tuple[Node, bytes]]) -> bool:
    """Return whether `node` would discard `message` as a duplicate, also of one with a new id.

    Add the id to `new_ids` if it is new.
    """
    if node.duplicates is None:
        return False
    digest = digest_of(message)
    if digest is None:
        return False
    if node.duplicates.knows(message) or (node, digest) in new_ids:
        return True
    new_ids.add((node, digest))
    return False


@final
class Transaction:
    """The work of one transaction. `doomed_by` says why it can only be rolled back, if so.

    `id` is the transaction-id that the peer uses. `memory` is the number of bytes kept now.

    A limit of 0 is none. A doomed transaction keeps no messages, but keeps the
    entries that it retired until its end, as the peer assumes.
    """

    def __init__(self, router: Router, *, operations_max: i64, bytes_max: i64) -> None:
        self.doomed_by: Fault | RoutingError | None = None
        self.operations: i64 = 0
        self.bytes: i64 = 0
        self.memory: i64 = 0
        self.id = b""
        self._router: Final = router
        self._operations_max: Final[i64] = operations_max
        self._bytes_max: Final[i64] = bytes_max
        self._posted: Final[list[tuple[Node, Message]]] = []
        self._posted_bytes: i64 = 0
        self._retired: Final[dict[QueueEntry, Retirement]] = {}
        # by queue that blocks producers: messages that it is to lose, less those that it is to get
        self._freed: Final[dict[Node, int]] = {}
        self._acquired: dict[QueueEntry, AcquisitionListener] | None = None

    def post(self, node: Node, message: Message, size: i64, *, beyond_limit: bool = False) -> None:
        """Send `message`, which came in `size` bytes, to `node` at the commit; drop it if doomed.

        Raise QueueFull if a node that blocks has no room for it and it may not go `beyond_limit`.
        """
        self._count(size)
        if self.doomed_by is not None:
            return
        if not beyond_limit and node.policy.full == BLOCK and node.may_be_full():
            self._check_room(node, message)
        node.posted += 1
        node.posted_bytes += message.size
        self._posted.append((node, message))
        self._posted_bytes += size if message.large is None else message.size
        if node in self._freed:
            self._freed[node] -= 1

    def makes_room_in(self, node: Node) -> bool:
        """Return whether the commit removes more messages from a full queue than it adds.

        Always False for a queue that does not block producers, and once doomed.
        """
        return self.doomed_by is None and self._freed.get(node, 0) > 0

    def _check_room(self, node: Node, message: Message) -> None:
        """Raise QueueFull if `message` does not fit, even without the entries removed here."""
        if node.duplicates is not None and node.duplicates.knows(message):
            return
        try:
            check_room(node, message)
        except QueueFull:
            if not self._retired:
                raise
            room = CapacityCheck()
            room.add(node, message)
            self._give_back_retired(room)
            room.check_beside_posted()

    def _give_back_retired(self, room: CapacityCheck) -> None:
        for retirement in self._retired.values():
            if retirement.outcome is Disposal.REMOVE:
                room.give_back(retirement.entry)

    def acquire(self, entry: QueueEntry, listener: AcquisitionListener) -> None:
        """Record that the transaction acquires `entry`, even if doomed: it is being delivered."""
        if self._acquired is None:
            self._acquired = {}
        self._acquired[entry] = listener
        self._count(0)

    def unacquire(self, entry: QueueEntry) -> None:
        """Forget the acquisition of `entry`, which has left its queue."""
        if self._acquired is not None:
            self._acquired.pop(entry, None)

    def retire(self, retirement: Retirement) -> None:
        """Record the outcome of an entry, even if doomed, because the entry is acquired."""
        self._retired[retirement.entry] = retirement
        self._free(retirement, 1)
        annotations = retirement.annotations
        size = i64(0) if annotations is None else i64(len(annotations))
        is_counted = self._acquired is not None and retirement.entry in self._acquired
        self._count(size, operations=i64(0) if is_counted else i64(1))

    def _free(self, retirement: Retirement, messages: i64) -> None:
        """Count `messages` more that the commit removes, if `retirement` removes any."""
        queue = retirement.entry.queue
        if queue.credit_pool is not None and retirement.outcome is Disposal.REMOVE:
            self._freed[queue] = self._freed.get(queue, 0) + int(messages)

    def _count(self, size: i64, *, operations: i64 = 1) -> None:
        self.operations += operations
        self.bytes += size
        if self.doomed_by is None:
            self._hold(size + operations * OPERATION_BYTES)
        if 0 < self._operations_max < self.operations:
            self.doom(LimitReached(f"a transaction has at most {self._operations_max} operations"))
        elif 0 < self._bytes_max < self.bytes:
            self.doom(LimitReached(f"a transaction has at most {self._bytes_max} bytes"))

    def _hold(self, size: i64) -> None:
        """Count `size` more bytes of memory, or fewer if it is negative."""
        self.memory += size
        self._router.memory.transactions += size

    def withdraw(self, entry: QueueEntry) -> None:
        """Remove the outcome of `entry` from this transaction."""
        self._free(self._retired.pop(entry), -1)

    def hand_over(self, entry: QueueEntry, holder: RetirementListener) -> None:
        """Tell `holder`, from now on, of the end of the delivery of `entry`, which is retired."""
        self._retired[entry].holder = holder

    def settled(self, entry: QueueEntry) -> None:
        """Note that the delivery of `entry` is settled and has no holder; its outcome stays."""
        self._retired[entry].holder = None

    def doom(self, cause: Fault | RoutingError) -> None:
        """Allow nothing but a rollback, and drop posted messages. The first cause is reported."""
        if self.doomed_by is None:
            self.doomed_by = cause
        self._let_go_of_posted()
        self._hold(-self.memory)

    def _let_go_of_posted(self) -> None:
        """Give back the room of posted messages, and serve producers that wait for room."""
        waited_for: dict[Node, None] = {}
        for node, message in self._posted:
            node.posted -= 1
            node.posted_bytes -= message.size
            if node.credit_pool is not None:
                waited_for[node] = None
        self._posted.clear()
        for node in waited_for:
            if node.credit_pool is not None:
                node.credit_pool.serve()

    def commit(self, batch: Batch) -> None:
        """Apply all work at one moment; if it cannot be, roll all back and raise the reason."""
        try:
            self._check()
        except (Fault, RoutingError):
            self.roll_back(batch)
            raise
        self._router.context.event_log.txn = self.id
        if self._acquired is not None:
            for entry, listener in self._acquired.items():
                listener.acquisition_committed(entry)
        for retirement in self._retired.values():
            retirement.commit(batch)
        # these messages are not delivered before they are durable (`queue_persistence.py`)
        scope, batch.scope = batch.scope, DISCHARGE
        for node, message in self._posted:
            if node.duplicates is None:
                node.publish(message, batch)
            else:
                node.duplicates.publish(message, batch)
        batch.scope = scope
        stats = self._router.stats
        stats.published += len(self._posted)
        stats.published_bytes += self._posted_bytes
        stats.committed += 1
        self._clear()

    def _check(self) -> None:
        """Raise Fault or RoutingError if a commit is impossible; nothing has changed then."""
        if self.doomed_by is not None:
            raise self.doomed_by
        room: CapacityCheck | None = None
        new_ids: set[tuple[Node, bytes]] = set()
        for node, message in self._posted:
            if not self._router.has(node):
                raise NoSuchNode(f"{node.kind} {node.address} was deleted before the commit")
            if node.policy.full == BLOCK:
                continue  # the message took its room when it was posted
            if node.may_be_full() and not is_repeated(node, message, new_ids):
                if room is None:
                    room = CapacityCheck()
                room.add(node, message)
        if room is not None:
            self._give_back_retired(room)
            room.check()
        check_work(self._posted)

    def roll_back(self, batch: Batch) -> None:
        """Undo all work: drop the posted messages, and roll back acquisitions and retirements."""
        self._router.stats.rolled_back += 1
        self._router.context.event_log.txn = self.id
        if self._acquired is not None:
            self._roll_back_acquired(self._acquired, batch)
        for retirement in self._retired.values():
            retirement.roll_back(batch)
        self._clear()

    def _roll_back_acquired(
        self, acquired: dict[QueueEntry, AcquisitionListener], batch: Batch
    ) -> None:
        """Return acquired entries to their places; those without an outcome count no attempt."""
        for entry, listener in acquired.items():
            listener.acquisition_rolled_back(entry)
            retirement = self._retired.pop(entry, None)
            if retirement is None:
                entry.queue.dispose(entry, Disposal.RELEASE, batch)
            else:
                retirement.roll_back(batch, acquired=True)

    def _clear(self) -> None:
        """Drop all references: the garbage collector never sees cycles of entries and links."""
        self._let_go_of_posted()
        self._retired.clear()
        self._freed.clear()
        self._acquired = None
        self._hold(-self.memory)
        self._router.context.event_log.txn = b""
