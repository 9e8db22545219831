"""A store that lasts as long as its process: the reference implementation of `storage.api`."""

from itertools import takewhile
from typing import Final, final

from storage.api import ContentError, Store
from storage.batch import Batch
from storage.contents import ContentChanges, ContentUses
from storage.events import (
    ID,
    EventChanges,
    EventColumns,
    EventPage,
    EventQuery,
    EventRow,
    columns_of,
)
from storage.ids import IdChanges
from storage.leases import LeaseChanges, StoredLease, StoredLeaseBatch, StoredLeases
from storage.records import StoredId, StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.stages import StageChanges, StoredSink, StoredStage
from storage.unsettled import StoredOutcome, TargetKey, UnsettledChanges
from storage.users import StoredToken, StoredUser, StoredUsers, UserChanges


@final
class MemoryStore(Store):
    """A store in dictionaries: its contents are lost with the process."""

    def __init__(self) -> None:
        self._nodes: Final[dict[tuple[str, str], StoredNode]] = {}
        self._queues: Final[dict[str, dict[int, StoredMessage]]] = {}
        self._queue_of: Final[dict[int, str]] = {}
        self._subscriptions: Final[dict[str, StoredSubscription]] = {}
        self._ids: Final[dict[int, StoredId]] = {}
        self._unsettled: Final[dict[TargetKey, dict[bytes, StoredOutcome]]] = {}
        self._chunks: Final[dict[int, dict[int, bytes]]] = {}
        self._uses: Final = ContentUses()
        self._delivered: Final[dict[str, int]] = {}
        self._events: Final[list[EventRow]] = []
        self._stages: Final[dict[int, StoredStage]] = {}
        self._sinks: Final[dict[str, StoredSink]] = {}
        self._leases: Final[dict[str, StoredLease]] = {}
        self._batches: Final[dict[tuple[str, int], StoredLeaseBatch]] = {}
        self._fencing_token = 0
        self._users: Final[dict[str, StoredUser]] = {}
        self._tokens: Final[dict[str, StoredToken]] = {}
        self._salt_secret = b""

    @property
    def name(self) -> str:
        return "memory"

    @property
    def commits_at_once(self) -> bool:
        return True

    @property
    def first_number(self) -> int:
        return 1

    @property
    def keeps_contents(self) -> bool:
        return False

    @property
    def keeps_users(self) -> bool:
        return False

    @property
    def first_content(self) -> int:
        return 1

    async def open(self) -> None:
        """Do nothing: there is no file or connection to open."""

    def commit_now(self, batch: Batch) -> None:
        if batch.contents is not None:
            self._keep_chunks(batch.contents)
        self._change_nodes(batch)
        for message in batch.appended:
            if message is not None:
                self._queues.setdefault(message.queue, {})[int(message.number)] = message
                self._queue_of[int(message.number)] = message.queue
                if message.content is not None:
                    number = int(message.number)
                    self._uses.add(number, int(message.content.number), message.queue)
        for number, position in batch.fallen_due:
            old = self._message(number)
            if old is not None:
                self._replace(old.fallen_due(position))
        for number, delivery_count in batch.counted:
            old = self._message(number)
            if old is not None:
                self._replace(old.with_count(delivery_count))
        for number, encoded in batch.rewritten:
            old = self._message(number)
            if old is not None:
                self._replace(old.with_bytes(encoded))
        self._delivered.update(batch.delivered)
        if batch.removed:
            self._remove(batch.removed)
        if batch.ids is not None:
            self._change_ids(batch.ids)
        if batch.contents is not None:
            for content in batch.contents.let_go:
                self._uses.let_go(content)
        if batch.events is not None:
            self._change_events(batch.events)
        if batch.stages is not None:
            self._change_stages(batch.stages)
        if batch.leases is not None:
            self._change_leases(batch.leases)
        if batch.users is not None:
            self._change_users(batch.users)
        if batch.unsettled is not None:
            self._change_unsettled(batch.unsettled)

    def _change_nodes(self, batch: Batch) -> None:
        """Remove and add nodes and subscriptions, and change the owners of subscriptions."""
        for node in batch.nodes_removed:
            self._nodes.pop((node.kind, node.address), None)
            if node.kind == "queue":
                self._empty(node.address)
        for queue in batch.subscriptions_removed:
            self._subscriptions.pop(queue, None)
            self._empty(queue)
        for subscription in batch.subscriptions_added:
            self._subscriptions[subscription.queue] = subscription
        for queue, owner in batch.subscription_owners.items():
            there = self._subscriptions.get(queue)
            if there is not None:
                there.owner = owner
        for node in batch.nodes_added:
            self._nodes.setdefault((node.kind, node.address), node)

    def _remove(self, numbers: list[int]) -> None:
        for number in numbers:
            queue_of = self._queue_of.pop(number, None)
            if queue_of is not None:
                del self._queues[queue_of][number]
        self._uses.remove(numbers)

    def _change_events(self, changes: EventChanges) -> None:
        self._events.extend(changes.rows)
        trim = changes.trim
        if trim is None or not self._events:
            return
        upto = self._events[0][ID] + trim.step
        # the newest row always stays: its id is the last one given
        taken = takewhile(lambda row: row[ID] < upto and trim.takes(row), self._events[:-1])
        del self._events[: sum(1 for _ in taken)]

    def _change_stages(self, changes: StageChanges) -> None:
        for number in changes.removed:
            self._stages.pop(number, None)
        for query in changes.forgotten:
            self._sinks.pop(query, None)
        self._stages.update(changes.added)
        self._sinks.update(changes.sinks)

    def _change_leases(self, changes: LeaseChanges) -> None:
        self._fencing_token = max(self._fencing_token, int(changes.fencing_token))
        for key in list(self._batches):
            if key[0] in changes.ended:
                del self._batches[key]
        for name, lease in changes.leases.items():
            if lease is None:
                self._leases.pop(name, None)
            else:
                self._leases[name] = lease
        for key, lease_batch in changes.batches.items():
            if lease_batch is None:
                self._batches.pop(key, None)
            else:
                self._batches[key] = lease_batch

    def _change_users(self, changes: UserChanges) -> None:
        for name, user in changes.users.items():
            if user is None:
                self._users.pop(name, None)
            else:
                self._users[name] = user
        for key, token in changes.tokens.items():
            if token is None:
                self._tokens.pop(key, None)
            else:
                self._tokens[key] = token
        self._salt_secret = changes.salt_secret or self._salt_secret

    def _change_unsettled(self, changes: UnsettledChanges) -> None:
        for target in changes.ended:
            self._unsettled.pop(target, None)
        for target, outcomes in changes.outcomes.items():
            kept = self._unsettled.setdefault(target, {})
            for tag, stored in outcomes.items():
                if stored is None:
                    kept.pop(tag, None)
                else:
                    kept[tag] = stored
            if not kept:
                del self._unsettled[target]

    def _change_ids(self, changes: IdChanges) -> None:
        for stored in changes.remembered:
            if stored is not None:
                self._ids[int(stored.number)] = stored
        for number in changes.forgotten:
            self._ids.pop(number, None)

    def _keep_chunks(self, changes: ContentChanges) -> None:
        for content in changes.held:
            self._uses.hold(content)
        for content, index, data in changes.chunks:
            self._chunks.setdefault(content, {})[index] = data

    def _empty(self, queue: str) -> None:
        self._delivered.pop(queue, None)
        for number in self._queues.pop(queue, {}):
            del self._queue_of[number]
        self._uses.remove_queue(queue)

    def _message(self, number: int) -> StoredMessage | None:
        queue = self._queue_of.get(number)
        return None if queue is None else self._queues[queue][number]

    def _replace(self, message: StoredMessage) -> None:
        self._queues[self._queue_of[int(message.number)]][int(message.number)] = message

    async def commit(self, batch: Batch) -> None:
        self.commit_now(batch)

    async def nodes(self) -> list[StoredNode]:
        return list(self._nodes.values())

    async def subscriptions(self) -> list[StoredSubscription]:
        return list(self._subscriptions.values())

    async def delivered(self) -> dict[str, int]:
        return self._delivered.copy()

    async def messages(self, behind: int) -> list[StoredMessage]:
        numbers = sorted([number for number in self._queue_of if number > behind])
        return [self._queues[self._queue_of[number]][number] for number in numbers]

    async def places(self, behind: int) -> StoredPlaces:
        found = StoredPlaces()
        for message in await self.messages(behind):
            found.numbers.append(int(message.number))
            found.queues.append(message.queue)
            found.positions.append(int(message.position))
            found.sizes.append(message.size())
            found.expires_at_ms.append(int(message.expires_at_ms))
            found.deliver_at_ms.append(int(message.deliver_at_ms))
        return found

    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        return self.load_now(numbers)

    def load_now(self, numbers: list[int]) -> list[StoredMessage]:
        found = []
        for number in numbers:
            message = self._message(number)
            if message is not None:
                found.append(message)
        return found

    async def unsettled(self) -> list[StoredOutcome]:
        found: list[StoredOutcome] = []
        for _, kept in sorted(self._unsettled.items()):
            found.extend(stored for _, stored in sorted(kept.items()))
        return found

    async def ids(self, behind: int) -> list[StoredId]:
        return [stored for number, stored in sorted(self._ids.items()) if number > behind]

    async def stages(self) -> list[StoredStage]:
        return [stage for _, stage in sorted(self._stages.items())]

    async def sinks(self) -> list[StoredSink]:
        return [sink for _, sink in sorted(self._sinks.items())]

    async def leases(self) -> StoredLeases:
        leases = [lease for _, lease in sorted(self._leases.items())]
        batches = [lease_batch for _, lease_batch in sorted(self._batches.items())]
        return StoredLeases(leases, batches, fencing_token=self._fencing_token)

    async def users(self) -> StoredUsers:
        return StoredUsers([user for _, user in sorted(self._users.items())], self._salt_secret)

    async def tokens(self) -> list[StoredToken]:
        return [token for _, token in sorted(self._tokens.items())]

    async def read_chunk(self, content: int, index: int) -> bytes:
        found = self._chunks.get(content, {}).get(index)
        if found is None:
            raise ContentError(f"content {content} has no chunk {index}")
        return found

    async def sweep(self) -> bool:
        for content in self._uses.garbage:
            self._chunks.pop(content, None)
        self._uses.garbage.clear()
        return False

    @property
    def first_event(self) -> int:
        return self._events[-1][ID] + 1 if self._events else 1

    async def events(self, query: EventQuery) -> EventPage:
        found: list[EventRow] = []
        for row in self._events:
            if row[ID] > query.behind and query.takes(row):
                if len(found) == query.at_most:
                    return EventPage(found, looked_to=found[-1][ID], is_last=False)
                found.append(row)
        return EventPage(found, looked_to=max(query.behind, self.first_event - 1), is_last=True)

    async def event_columns(self, query: EventQuery) -> EventColumns:
        at = self._event_behind(int(query.behind))
        looked_at = self._events[at : at + int(query.at_most)]
        newest = self.first_event - 1
        if query.up_to > 0:
            newest = min(newest, int(query.up_to))
        looked_to = min(looked_at[-1][ID], newest) if looked_at else int(query.behind)
        found = [row for row in looked_at if query.takes(row)]
        return columns_of(found, looked_to=looked_to, is_last=looked_to >= newest)

    def _event_behind(self, behind: int) -> int:
        """Return the index of the first row with an id above `behind`: ids ascend."""
        low, high = 0, len(self._events)
        while low < high:
            middle = (low + high) >> 1
            if self._events[middle][ID] <= behind:
                low = middle + 1
            else:
                high = middle
        return low

    async def event_bounds(self) -> tuple[int, int]:
        return (self._events[0][ID], self._events[-1][ID]) if self._events else (0, 0)

    async def close(self) -> None:
        self._delivered.clear()  # the broker has counted all deliveries
