"""The world of a simulated run, common to its connections: broker, time, store and model."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.amqp.limits import Limits
from broker.amqp.outcomes import Accepted, Outcome, Rejected
from broker.routing.addresses.address import TEMPORARY_PREFIX
from broker.routing.addresses.policy import REJECT, AddressPolicy
from broker.routing.queues.queue import Queue
from broker.routing.timer_queue import NOTHING
from storage.api import Store, StoreError
from storage.memory import MemoryStore
from tests.scenario.simulation_leases import LeaseProgram
from tests.scenario.simulation_model import Model
from tests.scenario.simulation_records import Ending, Entry, Message, Node, Rule, Wrong
from tests.scenario.simulation_stages import SinkProgram
from tests.scenario.simulation_subscriptions import Subscriptions
from tests.scenario.simulation_termini import SuspendedSources
from tests.support.broker import Broker
from tests.support.memory import Quiet
from tests.support.routing import page_out
from tests.support.stored import stored_messages
from tests.support.stores import GatedStore

if TYPE_CHECKING:
    from tests.scenario.simulation_edge import Edge
    from tests.scenario.simulation_links import Link

T = TypeVar("T")

RULES: Final = {
    "small": Rule(limit=4),
    "narrow": Rule(bytes_limit=3000),
    "mortal": Rule(expiry="EXP"),
    "hopeless": Rule(attempts=1, dead_letter=""),
    "patient": Rule(attempts=0),
    "slow": Rule(attempts=5, pause=70),
}
"""Addresses with a rule of their own."""

DEFAULT: Final = Rule()


@dataclass(frozen=True)
class Setting:
    """The configuration of a run's broker."""

    credit: int = 10
    incoming_window: int = 2048
    pacing_mark: int = 2000
    waits_for_disk: bool = False
    pages_out: bool = False
    idle_time_out_ms: int = 0
    operations_max: int = 100_000
    transaction_timeout_ms: int = 300_000
    resume_max_s: int = 0
    queues: tuple[str, ...] = ("q",)
    topics: tuple[str, ...] = ("t",)


@dataclass(frozen=True)
class Sent:
    """A message that a client has written; `kind` and `address` are those that the relay uses."""

    message: Message
    payload: bytes
    kind: str
    address: str


class World:
    """One broker and everything that the run knows of it."""

    def __init__(self, setting: Setting, earlier: World | None = None) -> None:
        self.setting = setting
        self.store: Store = _store(setting) if earlier is None else earlier.store
        self.broker: Broker = Broker(
            store=self.store,
            watcher=Quiet(),
            limits=Limits(
                incoming_window=setting.incoming_window,
                idle_time_out_ms=setting.idle_time_out_ms,
                transaction_operations_max=setting.operations_max,
                transaction_timeout_ms=setting.transaction_timeout_ms,
                resume_max_s=setting.resume_max_s,
            ),
            policy=_policy(DEFAULT),
            patterns=[(address, _policy(rule)) for address, rule in RULES.items()],
            credit=setting.credit,
            pacing_mark=setting.pacing_mark,
            clock=None if earlier is None else earlier.broker.clock,
        )
        self.container = self.broker.container
        self.model = Model(RULES)
        self.model.now = int(self.broker.clock.wall_ms())
        self.default_rule = DEFAULT
        self.links: dict[tuple[str, str, bool], Link] = {}
        self.edges: list[Edge] = []
        self.written: list[tuple[Edge, bytes]] = []
        self.served: set[Link] = set()
        self.ended: set[Link] = set()
        "Links ended since the last look: the rest of a delivery may have been written before."
        self.subscriptions = Subscriptions(self)
        self.suspended = SuspendedSources(self)
        self.lease = LeaseProgram(self)
        self.sink = SinkProgram(self)
        self.sent: dict[int, Sent] = {} if earlier is None else earlier.sent
        self.accepted_ids: set[int] = set() if earlier is None else earlier.accepted_ids
        self.gone: set[tuple[Node, int]] = set()
        "Entries retired by transactions whose commit was confirmed."
        self.stored: set[int] | None = set() if setting.waits_for_disk else None
        self.perhaps_expired = 0
        self._unstored: list[Message] = []
        "Messages accepted since the last look that are not stored."
        self._loop = asyncio.new_event_loop()
        self._pages_out = setting.pages_out
        self._loads = setting.pages_out or earlier is not None
        "True if contents may have to be read: a restart does not bring them back to memory."
        self._working: list[asyncio.Task[None]] = []
        if setting.waits_for_disk:
            after = self.container.run_round
            for run in (self.broker.journal.run(after), self.broker.windows.run(after)):
                self._working.append(self._loop.create_task(run))

    # -- what the edges ask

    def find(self, kind: str, address: str) -> Node | None:
        """Return the node, created now unless the address is a temporary one."""
        if address.startswith(TEMPORARY_PREFIX):
            return self.model.nodes.get((kind, address))
        return self.model.node(kind, address)

    def delete(self, node: Node) -> None:
        """Delete a temporary node, and end every link to it."""
        if node.is_deleted:
            return
        self.model.nodes.pop((node.kind, node.address), None)
        node.is_deleted = True
        self.note_deleted(node)
        self.subscriptions.end_all_of(node)
        for link in list(self.links.values()):
            if link.node is not None and link.node.is_deleted:
                link.end(Ending.DETACHED, by_fault=True)

    def note_deleted(self, node: Node) -> None:
        self.suspended.end_all_of(node)
        gone = [*node.waiting, *node.asleep]
        self.perhaps_expired += sum(entry.message.ttl > 0 for entry in gone)
        node.waiting.clear()
        node.asleep.clear()
        node.held.clear()

    def arrived(self, link: Link) -> tuple[Node | None, Message]:
        """Return the message that `link` has sent now, and its node (None if there is none)."""
        sent = self.sent[link.number]
        publisher = link.session.container_id
        message = replace(sent.message, arrived=self.model.now, publisher=publisher)
        return self.find(sent.kind, sent.address) if link.is_relay else link.node, message

    def publish(self, link: Link) -> tuple[type[Accepted | Rejected], Message]:
        """Put the message that `link` has sent into its node; return the outcome it must have."""
        node, message = self.arrived(link)
        if node is None or not self.model.put(node, message):
            self.model.stats["unroutable"] += 1
            return Rejected, message
        self.model.stats["published"] += 1
        return Accepted, message

    def note_sent(self, record: Message, payload: bytes, address: str) -> None:
        """Record a message that is sent to a queue by other means than a link."""
        self.sent[record.id] = Sent(record, payload, "queue", address)

    def note(self, entry: Entry) -> None:
        """Record that the message has a message-annotation more."""
        entry.message = replace(entry.message, is_noted=True)

    def accepted(self, link: Link, message: Message) -> None:
        """Record that the broker has reported a message of `link` as accepted."""
        sent = self.sent[message.id]
        node = self.find(sent.kind, sent.address) if link.is_relay else link.node
        if node is not None:
            self.promised(node, message)

    def promised(self, node: Node, message: Message) -> None:
        """Record that the broker has promised to keep a message."""
        self.accepted_ids.add(message.id)
        is_stored = self.stored is None or message.id in self.stored
        if message.durable and not is_stored and node.owner is None:
            self._unstored.append(message)

    def confirmed(self, retired: dict[Entry, Outcome]) -> None:
        """Record that the broker has confirmed a commit which retired these entries."""
        for entry, outcome in retired.items():
            if isinstance(outcome, Accepted):
                self.gone.add((entry.node, entry.message.id))

    def _check_stored(self) -> None:
        """Raise Wrong if an accepted durable message is neither stored nor consumed (PRD-03).

        A message consumed before its batch was closed is never written.
        """
        accepted, self._unstored = self._unstored, []
        for message in accepted:
            durable = [node for _, node in self.subscriptions.stored()]
            for node in [*self.model.nodes.values(), *durable]:
                left = [each for each in node.there() if each.message.id == message.id]
                if node.is_loose and self.model.was_published(message.id):
                    continue
                if left and node.kind == "queue" and not message.is_over(self.model.now):
                    raise Wrong(f"message {message.id} is accepted before it is on disk")

    # -- rounds

    def look(self) -> None:
        """Check what the broker has written since the last look, and what it has left unwritten."""
        self._let_answers_out()
        if self._loads and self._working:
            self._step()
            self._let_answers_out()
        leasing = self.lease.look()
        written, self.written = self.written, []
        frames = [(edge, edge.read(data)) for edge, data in written]
        for edge, each in frames:
            edge.judge(each)
        self.ended.clear()
        self._check_stored()
        served, self.served = self.served, set()
        ready = []
        # a message may have to wait for a commit, whichever consumer has room
        is_idle = self.broker.journal.is_idle()
        for link in self.links.values():
            link.limit = link.delivery_count + link.credit
            if link.has_room():
                if link.has_due() and is_idle:
                    raise Wrong(f"link {link.attach.name}: deliveries are not resumed")
                if link.drain and is_idle:
                    raise Wrong(f"link {link.attach.name} is not drained")
                ready.append(link)
            elif link.pieces is not None and not link.incoming and link.session.may_send():
                raise Wrong(f"link {link.attach.name}: half a delivery, with room for the rest")
        self.model.check_round(ready if is_idle else (), [*served, *leasing])
        if self.broker.watcher.errors:
            raise Wrong(f"a bug has shown: {self.broker.watcher.errors[0]!r}")
        self._count()
        if self._pages_out:
            for queue in self.broker.queues():
                page_out(queue, up_to=self.broker.journal.durable_up_to)

    def _count(self) -> None:
        for (kind, address), node in self.model.nodes.items():
            if kind != "queue" or node.is_loose:
                continue
            queue = self.broker.router.queues.get(address)
            if queue is not None:
                self.count_queue(address, queue, node)
            elif node.there():
                raise Wrong(f"{address} is not there any more")
        self.subscriptions.check()

    def count_queue(self, name: str, queue: Queue, node: Node) -> None:
        """Raise Wrong unless the queue holds as many messages as `node`, expired ones aside."""
        if queue.state.acquired != len(node.held):
            raise Wrong(f"{name}: {queue.state.acquired} acquired, not {len(node.held)}")
        if queue.backlogs.waiting != len(node.waiting):
            over = sum(entry.message.is_over(self.model.now) for entry in node.waiting)
            if not len(node.waiting) - over <= queue.backlogs.waiting <= len(node.waiting):
                raise Wrong(f"{name}: {queue.backlogs.waiting} waiting, not {len(node.waiting)}")
        over = sum(entry.message.is_over(self.model.now) for entry in node.asleep)
        if not len(node.asleep) - over <= queue.state.held() <= len(node.asleep):
            raise Wrong(f"{name}: {queue.state.held()} held back, not {len(node.asleep)}")

    # -- time and disk

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass; whatever becomes due meanwhile happens when it is due."""
        clock, timer_queue = self.broker.clock, self.broker.router.timer_queue
        end = clock.now_ms() + milliseconds
        while True:
            deadline = timer_queue.next_deadline_ms()
            is_last = deadline == NOTHING or deadline > end
            clock.advance(max(0, int((end if is_last else deadline) - clock.now_ms())))
            self.model.now = int(clock.wall_ms())
            self.model.wake()
            self.suspended.run_out(self.model.now)
            self.subscriptions.run_out(self.model.now)
            for edge in self.edges:
                edge.transactions.run_out(self.model.now)
            if is_last:
                return
            self.container.tick()
            self.look()

    def commit(self, *, all_of_them: bool = False) -> None:
        """Let the oldest commit end, if one is under way, and let the journal continue.

        With `all_of_them`, repeat this until no commit is under way.
        """
        store = self.store
        while isinstance(store, GatedStore):
            self._step()
            self.look()
            if not store.commits:
                return
            self._let_through(store)
            self.look()
            if not all_of_them:
                return

    def _let_through(self, store: GatedStore) -> None:
        batch = store.commits.pop(0)
        store.let_through()
        for message in batch.appended:
            if message is None:
                continue
            at = message.encoded.index(b"#message") + 8
            assert self.stored is not None
            self.stored.add(int(message.encoded[at : at + 6]))
        self._step()

    def _let_answers_out(self) -> None:
        """Complete commits while an attach's answer waits for one, which the model does not."""
        store = self.store
        while isinstance(store, GatedStore) and any(edge.peer.withholds() for edge in self.edges):
            self._step()
            if store.commits:
                self._let_through(store)
            elif any(edge.peer.withholds() for edge in self.edges):
                raise Wrong("an answer waits for a commit, and there is none")

    def _step(self) -> None:
        self._run_on()
        for work in self._working:
            if work.done():
                raise Wrong(f"work on the store has ended: {work.exception()!r}")

    def _run_on(self) -> None:
        for _ in range(3):
            self._loop.call_soon(self._loop.stop)
            self._loop.run_forever()

    def fail(self, *, applied: bool) -> bool:
        """Fail the commit under way, which may be `applied`; return whether there was one."""
        store = self.store
        if not isinstance(store, GatedStore):
            return False
        committing = self._working[0]
        self._step()
        self.look()
        if not store.commits:
            return False
        batch = store.commits.pop(0)
        store.let_through(failing=True, applied=batch if applied else None)
        self._run_on()
        if not committing.done() or not isinstance(committing.exception(), StoreError):
            raise Wrong("the journal goes on though the store has failed")
        if self.written or store.commits:
            raise Wrong("something is answered or committed though the store has failed")
        return True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, an operation of the store that waits for no commit."""
        return self._loop.run_until_complete(work)

    def kept(self, address: str) -> list[tuple[int, int]]:
        """Return number and delivery-count of a queue's durable messages in the store."""
        messages = self._loop.run_until_complete(stored_messages(self.store, address))
        found = []
        for each in messages:
            at = each.encoded.index(b"#message") + 8
            found.append((int(each.encoded[at : at + 6]), int(each.delivery_count)))
        return found

    def close(self) -> None:
        """Cancel the tasks and close the event loop."""
        for work in self._working:
            work.cancel()
            with suppress(asyncio.CancelledError, StoreError):
                self._loop.run_until_complete(work)
        self._loop.close()


def _store(setting: Setting) -> Store:
    return GatedStore() if setting.waits_for_disk else MemoryStore()


def _policy(rule: Rule) -> AddressPolicy:
    return AddressPolicy(
        dead_letter=rule.dead_letter,
        expiry=rule.expiry,
        max_delivery_count=rule.attempts,
        redelivery_delay_ms=rule.pause,
        max_messages=rule.limit,
        max_bytes=rule.bytes_limit,
        full=REJECT,
    )
