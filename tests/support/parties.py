"""Consumers, producers and observers of a node without links, which record what happens."""

from broker.routing.entries.dead_letter import Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer, Producer, QueueObserver
from broker.routing.entries.redelivery import Disposal
from storage.batch import Batch


class RecordingConsumer(Consumer):
    """A consumer that receives an entry per `credit`, except while `held`.

    With `settles` it accepts each entry at once, recorded in that batch.
    """

    def __init__(self, credit: int = 0, *, settles: Batch | None = None) -> None:
        self.credit = credit
        self.held = False
        self.entries: list[QueueEntry] = []
        self.taken: list[bytes] = []
        self.copies: list[bytes] = []
        self.drains = 0
        self.lost_its_node = False
        self._settles = settles

    def has_room(self) -> bool:
        return self.credit > 0 and not self.held

    def has_credit(self) -> bool:
        return self.credit > 0

    def deliver(self, entry: QueueEntry) -> None:
        assert self.has_room()
        self.credit -= 1
        self.taken.append(entry.message.encoded)
        if self._settles is None:
            self.entries.append(entry)
        else:
            entry.queue.accept(entry, self._settles)

    def browsed(self, entry: QueueEntry) -> None:
        assert self.has_room()
        self.credit -= 1
        self.copies.append(entry.message.encoded)

    def nothing_waits(self) -> None:
        self.credit = 0
        self.drains += 1

    def node_deleted(self) -> None:
        self.lost_its_node = True

    def dispose(self, disposal: Disposal, batch: Batch, *, index: int = 0) -> QueueEntry:
        """Dispose of an acquired entry, the oldest unless `index` names another."""
        entry = self.entries.pop(index)
        entry.queue.dispose(entry, disposal, batch)
        return entry


class RecordingProducer(Producer):
    """A producer that counts its resumptions and records the credit it is granted.

    Like a link, it asks for more once half of the credit is used. It answers a recall if
    `gives_back`.
    """

    def __init__(self, most: int = 500, *, gives_back: bool = True) -> None:
        self.resumed = 0
        self.credit = 0
        self.granted: list[int] = []
        self.recalls = 0
        self._most = most
        self._gives_back = gives_back
        self.lost_its_node = False

    def resume(self) -> None:
        self.resumed += 1

    def most(self) -> int:
        return self._most

    def outstanding(self) -> int:
        return self.credit

    def grant(self, credit: int) -> None:
        assert credit > 0
        self.credit += credit
        self.granted.append(credit)

    def recall(self) -> None:
        self.recalls += 1
        if self._gives_back:
            self.credit = 0

    def node_gone(self) -> None:
        self.lost_its_node = True


class RecordingWitness(QueueObserver):
    """Records the disposal and the delivery-count of each settled entry."""

    def __init__(self) -> None:
        self.heard: list[tuple[bytes, int, Disposal]] = []

    def settled(
        self,
        entry: QueueEntry,
        disposal: Disposal,
        batch: Batch,  # noqa: ARG002 - a test knows it
        *,
        cause: Cause | None = None,  # noqa: ARG002
    ) -> None:
        self.heard.append((entry.message.encoded, int(entry.delivery_count), disposal))
