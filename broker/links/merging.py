"""Merges what older brokers stored under addresses with a prefix, such as `queue://orders`.

Before prefixes were understood (`broker/routing/addresses/prefixes.py`), `queue://orders` was a
queue of that very name, and `topic://news` the key `/news` of a topic `topic:`. No client can reach
such a node any more: its address now means another one. So a start moves the messages of such a
queue behind those of the queue that its name means now, and binds stored subscriptions to the
topics that their addresses mean now. If the broker is killed meanwhile, the next start does the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from mypy_extensions import i64

from broker.log_events import NAME_KEPT, NAME_MERGED
from broker.message import AT_ONCE
from broker.routing.addresses import address as addresses
from broker.routing.addresses.address import Address
from broker.routing.entries.record_mapping import HELD_PLACES
from broker.routing.errors import InvalidAddress, RoutingError
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from storage.batch import Batch
from storage.records import StoredId, StoredMessage, StoredNode

MOVED_AT_ONCE: Final = 1000
"""Maximum messages that are loaded, moved and committed together."""

PREFIXED: Final = "://"
"""Ending of every prefix.

A topic's name ends before its first `/`, so a topic made by a prefix has a name like `topic:`.
"""


@final
class Merge:
    """One queue with a prefix, to be merged into the queue that its name means now.

    `places` are the position and number of each of its messages that is ready, scheduled or held
    back; `moved` counts those that have been moved. `ids` are those that it remembers for the
    detection of duplicates.
    """

    def __init__(self, origin: Queue, target: Queue) -> None:
        self.origin: Final = origin
        self.target: Final = target
        self.places: Final[list[tuple[int, int]]] = []
        self.moved = 0
        self.ids: Final[list[StoredId]] = []


@final
class Merging:
    """Finds what has to be merged while a start restores records, and merges it.

    `scheduled` is called with each message that is moved and waits for a delivery time, or is
    held back because it cannot be dead-lettered. Queues that are `quarantined` have damaged
    messages: these stay, so the store keeps the queue.
    """

    def __init__(
        self, router: Router, batch: Batch, scheduled: Callable[[StoredMessage], None]
    ) -> None:
        self.merges: Final[dict[str, Merge]] = {}
        self.quarantined: Final[set[str]] = set()
        self._router: Final = router
        self._batch: Final = batch
        self._scheduled: Final = scheduled
        self._rebound: i64 = 0
        self._targets: Final[dict[str, int]] = {}

    # -- finding, in the order in which records are restored

    def nodes(self, stored: list[StoredNode], leased: set[str]) -> None:
        """Find the queues to be merged. Call it once all of `stored` have been restored.

        Queues that have leases (`leased`, by name) stay as they are: leases know their messages
        by number.
        """
        for node in stored:
            if node.kind == QUEUE and self._router.prefixes.of(node.address):
                self._begin(node.address, has_lease=node.address in leased)

    def _begin(self, name: str, *, has_lease: bool) -> None:
        origin = self._router.queues[name]
        try:
            if has_lease:
                raise RoutingError("there is a lease on it")
            target = self._target_of(name)
        except RoutingError as reason:
            self._router.prefixes.literal.add(name)
            self._router.notices.append(
                NAME_KEPT.notice(
                    f"queue {name} keeps its name, which clients can go on using: it cannot be"
                    f" merged into the queue that {name} would mean ({reason}); the next start"
                    " tries again"
                )
            )
            return
        self.merges[name] = Merge(origin, target)
        self._targets[target.address] = -1

    def _target_of(self, name: str) -> Queue:
        """Return the queue that `name` means now, created if missing; else raise RoutingError."""
        router = self._router
        address = self._meant(name)
        node = router.queues.get(address)
        if node is None:
            created = router.create(Address(address, QUEUE), self._batch)
            assert isinstance(created, Queue)
            node = created
        if not node.may_store:
            raise RoutingError("that one stores nothing")
        return node

    def subscribed(self, address: str) -> str:
        """Return the address that a stored subscription to `address` is bound to.

        Its topic is created if it is missing: the settings may not let a client create it.
        """
        prefixes = self._router.prefixes
        if not prefixes.of(address):
            return address
        try:
            meant = self._meant(address)
            self._make_topic(Address(meant, TOPIC))
        except RoutingError as reason:
            prefixes.literal.add(address)
            self._router.notices.append(
                NAME_KEPT.notice(
                    f"a durable subscription to {address} keeps that address ({reason})"
                )
            )
            return address
        self._rebound += 1
        return meant

    def _meant(self, address: str) -> str:
        """Return `address` without its prefix; raise RoutingError if no node can have that name."""
        prefixes = self._router.prefixes
        meant = addresses.check_new(prefixes.strip(address))
        if prefixes.of(meant):
            raise InvalidAddress(f"{meant} begins with a prefix, too")
        return meant

    def _make_topic(self, address: Address) -> None:
        if not address.is_pattern and address.name not in self._router.topics:
            self._router.create(address.topic(), self._batch)

    def takes(self, queue: str, place: int, number: int) -> bool:
        """Note a stored message; return True if it is to be moved: then do not restore it."""
        merge = self.merges.get(queue)
        if merge is not None:
            merge.places.append((place, number))
            return True
        if queue in self._targets:
            self._targets[queue] = max(self._targets[queue], place % HELD_PLACES)
        return False

    def remembers(self, stored: StoredId) -> bool:
        """Note an id that a queue to be merged remembers; return False for any other node."""
        merge = self.merges.get(stored.address) if stored.kind == QUEUE else None
        if merge is not None:
            merge.ids.append(stored)
        return merge is not None

    # -- the merge itself

    def portions(self) -> Iterator[tuple[Merge, list[tuple[int, int]]]]:
        """Yield the places of messages to be moved, queue by queue, in order, in portions."""
        for merge in self.merges.values():
            highest = self._targets[merge.target.address]
            if highest >= 0:
                for priority in range(10):
                    merge.target.backlog_of(priority).begin_behind(highest // 10)
            merge.places.sort()
            for first in range(0, len(merge.places), MOVED_AT_ONCE):
                yield merge, merge.places[first : first + MOVED_AT_ONCE]

    def move(
        self, merge: Merge, places: list[tuple[int, int]], found: list[StoredMessage]
    ) -> Batch:
        """Move the messages `found` at `places` into the target; return the batch to be committed.

        Damaged messages are not in `found`: they stay in quarantine.
        """
        messages = {int(message.number): message for message in found}
        batch = Batch()
        for place, number in places:
            message = messages.get(number)
            if message is not None:
                moved = self._moved(merge, message, place)
                merge.moved += 1
                batch.append(moved)
                batch.remove(number)
                self._bring_back(merge.target, moved)
        return batch

    def _moved(self, merge: Merge, message: StoredMessage, place: int) -> StoredMessage:
        """Return the record of `message` behind all others of its priority in the target."""
        backlog = merge.target.backlog_of(message.priority)
        position = backlog.next_position
        backlog.begin_behind(position)
        delivery_count = message.delivery_count
        if place % HELD_PLACES // 10 <= merge.origin.persistence.suspected_up_to:
            # the mark of its old queue, up to which messages may have been delivered, is lost
            delivery_count = max(1, delivery_count)
        return message.moved(
            self._router.context.next_stored_number(),
            merge.target.persistence.stored_as,
            position * 10 + message.priority + (HELD_PLACES if place >= HELD_PLACES else 0),
            delivery_count=delivery_count,
        )

    def _bring_back(self, target: Queue, moved: StoredMessage) -> None:
        if moved.deliver_at_ms != AT_ONCE or moved.position >= HELD_PLACES:
            self._scheduled(moved)
            return
        target.bring_back_place(
            number=moved.number,
            place=moved.position,
            size=moved.size(),
            expires_at_ms=moved.expires_at_ms,
        )

    def finish(self) -> None:
        """Delete the nodes that have been emptied, and report it to the operator."""
        for name, merge in self.merges.items():
            self._move_ids(merge)
            # messages in quarantine could not be restored if the store deleted their queue
            is_kept = name in self.quarantined
            self._router.delete(merge.origin, Batch() if is_kept else self._batch)
            self._router.notices.append(
                NAME_MERGED.notice(
                    f"queue {name}, which an older broker made, is merged into queue"
                    f" {merge.target.address} with {merge.moved} messages: the prefix is no"
                    " part of the name any more (setting address_prefixes)"
                    + (
                        f"; its damaged messages stay in quarantine as those of {name}"
                        if is_kept
                        else ""
                    )
                )
            )
        for prefix in self._router.prefixes.understood:
            self._drop_topic(prefix.partition(PREFIXED)[0] + ":")

    def _move_ids(self, merge: Merge) -> None:
        """Let the target remember the ids of the origin, so that duplicates are detected (DUP)."""
        router, target = self._router, merge.target
        for stored in merge.ids:
            self._batch.forget(stored.number)
            if target.duplicates is not None:
                moved = StoredId(
                    number=router.duplicates.next_number(),
                    kind=stored.kind,
                    address=target.address,
                    digest=stored.digest,
                    at_ms=stored.at_ms,
                )
                self._batch.remember(moved)
                target.duplicates.bring_back(moved, self._batch)

    def _drop_topic(self, name: str) -> None:
        """Delete the topic that clients published to by a prefix, if it has no other use."""
        router = self._router
        topic = router.topics.get(name)
        if topic is None or topic.staged > 0 or (TOPIC, name) in router.policies.declared:
            return
        for queue in topic.subscriptions:
            if not router.wildcards.has(queue):
                return
        router.delete(topic, self._batch)
        router.notices.append(
            NAME_MERGED.notice(
                f"topic {name}, which an older broker made for every address that begins with"
                f" {name}//, is deleted; {self._rebound} stored subscriptions are bound to the"
                " topics that their addresses name (setting address_prefixes)"
            )
        )
