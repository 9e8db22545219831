"""Seeded runs of a whole broker on simulated time and network, and the checks at their end.

A seed determines a setting and a list of operations, so its run is the same each time.

    python -m tests.scenario.simulation 100

runs the first hundred seeds and stops at one that fails; `test_simulation.py` runs more.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import RECEIVER, Attach, Open
from broker.amqp.terminus import NOT_DURABLE, UNSETTLED_STATE, Source, Target
from broker.routing.timer_queue import NOTHING
from tests.scenario.simulation_attaches import QUEUES, TOPICS, filters_for
from tests.scenario.simulation_client import Client, ClientLink, ClientSession
from tests.scenario.simulation_edge import Edge
from tests.scenario.simulation_operations import CLIENTS, Operation, apply
from tests.scenario.simulation_records import Wrong
from tests.scenario.simulation_run import Run
from tests.scenario.simulation_world import Setting

LENGTH: Final = 200

FAILING: Final = 0.6
"""Probability that a run whose broker waits for the disk has failing commits."""

LEASING: Final = 0.6
"""Probability that a run has a lease; each run whose broker waits for the disk has one."""

LEASED: Final = 24
"""Operations of the lease in such a run, in the place of others; half as many are of a sink."""

FAILURES: Final = 4
"""Maximum failing commits per run; after each, another broker continues with the stored state."""

WEIGHTS: Final = {
    "connect": 2,
    "attach_sender": 3,
    "attach_receiver": 6,
    "grant": 6,
    "detach": 3,
    "come_back": 10,
    "steal": 2,
    "look_up": 1,
    "declare": 3,
    "discharge": 3,
    "send": 14,
    "settle": 12,
    "accept_all": 4,
    "end": 1,
    "close": 1,
    "crash": 1,
    "stall": 1,
    "echo": 1,
    "wait": 4,
    "commit": 4,
    "deliver": 5,
}
"""Relative frequency of each operation; every run draws its own weights from these."""

RESUME_MAX_S: Final = 300
"""Seconds for which links that end may leave deliveries behind, in every second pair of seeds."""

COUNTED: Final = (
    "published",
    "unroutable",
    "delivered",
    "acknowledged",
    "requeued",
    "dead_lettered",
    "dropped",
    "committed",
    "rolled_back",
    "links_attached",
    "links_refused",
    "links_stolen",
)


def operations_of(seed: int) -> tuple[Setting, list[Operation]]:
    """Return the setting and the operations that the seed determines."""
    draw = random.Random(seed)
    setting = Setting(
        credit=draw.choice((1, 4, 10, 100)),
        incoming_window=draw.choice((2, 8, 2048)),
        pacing_mark=draw.choice((1, 5, 2000)),
        waits_for_disk=draw.random() < 0.3,
        idle_time_out_ms=draw.choice((0, 0, 20_000)),
        queues=tuple(draw.sample(QUEUES, draw.choice((1, 2, 3)))),
        topics=tuple(draw.sample(TOPICS, 1)),
        operations_max=draw.choice((5, 100_000)),
        transaction_timeout_ms=draw.choice((1500, 300_000)),
        pages_out=seed % 2 == 1,
        resume_max_s=RESUME_MAX_S if seed % 4 > 1 else 0,
    )
    weights = [weight * draw.choice((0, 1, 1, 3)) for weight in WEIGHTS.values()]
    kinds = draw.choices(list(WEIGHTS), [each + 0.2 for each in weights], k=LENGTH)
    clients = draw.randint(1, CLIENTS)
    operations = [Operation(kind, draw.randrange(clients), draw.getrandbits(32)) for kind in kinds]
    if setting.waits_for_disk or draw.random() < LEASING:
        for at in draw.sample(range(LENGTH), LEASED):
            kind = draw.choice(("lease", "lease", "lease", "settle_lease"))
            if draw.random() < 0.05:
                kind = "release_lease"
            operations[at] = Operation(kind, 0, draw.getrandbits(32))
        for at in draw.sample(range(LENGTH), LEASED // 2):
            kind = draw.choice(("stage", "commit_stage"))
            operations[at] = Operation(kind, 0, draw.getrandbits(32))
    if setting.waits_for_disk and draw.random() < FAILING:
        for at in draw.sample(range(LENGTH), draw.randint(1, FAILURES)):
            operations[at] = Operation("break_store", 0, draw.getrandbits(32))
    return setting, operations


def run(setting: Setting, operations: Sequence[Operation]) -> None:
    """Apply the operations, then end the run; raise Wrong, or another error, if the broker errs."""
    simulated = Run(setting)
    try:
        for each in operations:
            apply(simulated, each)
        Ending(simulated).check()
    finally:
        simulated.world.close()


@dataclass
class Ending:
    """The end of a run: deliver everything, disconnect all clients, consume what remains."""

    run: Run

    def check(self) -> None:
        self.run.world.lease.release()
        self.run.world.sink.end()
        self._calm_down()
        self._check_senders()
        self._check_store()
        self._leave()
        self._check_nobody_is_left()
        self._unsubscribe()
        self._consume()
        self._check_nothing_is_left()
        self._check_counters()

    def _calm_down(self) -> None:
        """Carry and commit everything, and let time pass, until nothing moves any more."""
        run, world = self.run, self.run.world
        quiet = 0
        while quiet < 3:
            for client in run.everybody():
                client.reads = True
            turns = run.carry_all()
            world.commit(all_of_them=True)
            for client in run.everybody():
                for session in client.live_sessions():
                    session.settle_second()
            turns += run.carry_all()
            world.pass_time(10)
            quiet = 0 if turns else quiet + 1

    def _check_senders(self) -> None:
        """Raise Wrong if a client is left without credit, window, outcome or settlement."""
        for client in self.run.everybody():
            for session in client.live_sessions():
                for link in session.senders():
                    if link.half or link.outbox:
                        facts = f"credit {link.credit}, room {session.room}"
                        raise Wrong(f"link {link.name} cannot send: {facts}")
        for edge in self.run.world.edges:
            for served in edge.live_sessions():
                owed = [number for number, each in served.awaited.items() if each.is_owed]
                if owed:
                    raise Wrong(f"deliveries {owed} have no outcome")
                if served.echoes:
                    raise Wrong(f"deliveries {served.echoes} are not settled")

    def _check_store(self) -> None:
        """Raise Wrong unless the store has the same messages and delivery-counts as the model."""
        world = self.run.world
        lasting = [
            (address, node)
            for (kind, address), node in world.model.nodes.items()
            if kind == "queue" and node.owner is None and not node.rule.expiry and not node.is_loose
        ]
        for address, node in [*lasting, *world.subscriptions.stored()]:
            entries = [each for each in node.there() if each.message.durable]
            before = {entry.message.id for entry in entries if entry.is_from_store}
            there = [
                (entry.message.id, max(entry.message.id in before, entry.delivery_count))
                for entry in entries
                if not entry.message.ttl
            ]
            kept = [
                (number, max(number in before, count))
                for number, count in world.kept(address)
                if not world.sent[number].message.ttl
            ]
            if sorted(kept) != sorted(there):
                raise Wrong(f"{address}: {kept} are on disk, not {there}")

    def _leave(self) -> None:
        for number, client in enumerate(self.run.everybody()):
            if number % 2:
                client.close()
            else:
                client.lose()
        self.run.carry_all()
        self.run.world.pass_time(3000 + 1000 * self.run.world.setting.resume_max_s)

    def _check_nobody_is_left(self) -> None:
        container = self.run.world.container
        if container.peer_count() or container.link_count():
            raise Wrong(f"{container.peer_count()} peers, {container.link_count()} links are left")
        for address, queue in self.run.world.broker.router.queues.items():
            if (
                queue.state.acquired
                or queue.consumers.attached
                or queue.producers
                or queue.is_temporary
            ):
                raise Wrong(f"queue {address} still has consumers, producers or deliveries")
        for address, topic in self.run.world.broker.router.topics.items():
            if topic.producers or topic.is_temporary:
                raise Wrong(f"topic {address} still has producers")
        for each in self.run.world.subscriptions.all:
            is_held = each.queue.held and not self.run.world.suspended.has(each.queue)
            if each.terms.lives_until is not None or each.consumers or is_held:
                raise Wrong(f"subscription {each.identity} still has consumers or deliveries")

    def _consume(self) -> None:
        """Consume all messages of all queues; those of the expiry queue EXP come last."""
        world = self.run.world
        session = self._enter("last")
        addresses = [address for kind, address in world.model.nodes if kind == "queue"]
        for address in sorted({*addresses, "DLQ", "EXP"}):
            self._receive(session, address, Source(address=address, capabilities=["queue"]))
        self._take_all()
        session.client.close()
        self.run.carry_all()

    def _unsubscribe(self) -> None:
        """Consume what subscriptions without end have kept, and unsubscribe from them."""
        for each in list(self.run.world.subscriptions.all):
            scope, name, durable = each.identity or each.key or ("", "", False)
            said = ["topic", *["shared"] * each.is_shared, *["global"] * (scope is None)]
            session = self._enter(scope or each.queue.wish.excluded or "last")
            source = Source(
                address=each.topic.address,
                durable=UNSETTLED_STATE if durable else NOT_DURABLE,
                capabilities=said,
                filter=filters_for(each.queue.wish),
            )
            link = self._receive(session, name, source)
            self._take_all()
            link.detach(closed=True)
            self.run.carry_all()
            session.client.close()
            self.run.carry_all()

    def _enter(self, container_id: str) -> ClientSession:
        world = self.run.world
        edge = Edge(world, 1 << 20)
        world.edges.append(edge)
        client = Client(edge, Open(container_id=container_id, max_frame_size=4096))
        self.run.clients[-1] = client
        session = client.begin(window=1000, first_transfer=0, first_delivery=0)
        self.run.carry_all()
        return session

    def _receive(self, session: ClientSession, name: str, source: Source) -> ClientLink:
        handle = len(session.links)
        link = session.links[handle] = ClientLink(
            session=session,
            name=name,
            handle=handle,
            sends=False,
            address=source.address,
            kind="queue",
            answer=ACCEPTED,
        )
        session.put(Attach(name=name, handle=handle, role=RECEIVER, source=source, target=Target()))
        link.grant(5)
        return link

    def _take_all(self) -> None:
        """Receive all messages, and let pass the time that delays and expiries take."""
        world = self.run.world
        self.run.carry_all()
        for _ in range(3):
            world.commit(all_of_them=True)
            world.pass_time(1100)
            self.run.carry_all()
            world.commit(all_of_them=True)
            self.run.carry_all()
        world.commit(all_of_them=True)

    def _check_nothing_is_left(self) -> None:
        world = self.run.world
        for (_, address), node in world.model.nodes.items():
            left = [each for each in node.waiting if not each.message.is_over(world.model.now)]
            if left or node.asleep or (node.rule.expiry and node.waiting):
                raise Wrong(f"{address}: {[each.message.id for each in node.waiting]} are lost")
            world.perhaps_expired += len(node.waiting)
        for address, queue in world.broker.router.queues.items():
            if queue.backlogs.waiting or queue.state.acquired or queue.state.bytes:
                raise Wrong(
                    f"{address}: {queue.backlogs.waiting} waiting, "
                    f"{queue.state.acquired} acquired, "
                    f"{queue.state.bytes} bytes are left"
                )
            if world.kept(address):
                raise Wrong(f"{address}: {world.kept(address)} are left on disk")
        for address, topic in world.broker.router.topics.items():
            if topic.subscriptions:
                raise Wrong(f"topic {address} still has subscriptions")
        if world.broker.router.bindings or world.broker.router.expiries.waiting():
            raise Wrong("bindings or leases are left")
        if world.broker.router.leases.named and not world.lease.may_rest:
            raise Wrong("a lease is left")
        world.pass_time(400_000)
        if (
            not world.lease.may_rest
            and world.broker.router.timer_queue.next_deadline_ms() != NOTHING
        ):
            raise Wrong("the timer queue is not empty")
        if world.container.peer_count() or world.container.touched:
            raise Wrong("somebody is left")

    def _check_counters(self) -> None:
        world = self.run.world
        counted = Counter(world.broker.stats.as_dict())
        for name in COUNTED:
            if counted[name] != world.model.stats[name]:
                raise Wrong(f"{name} is {counted[name]}, not {world.model.stats[name]}")
        memory = world.broker.router.memory
        if memory.total() or memory.held:
            raise Wrong(f"{memory.total()} bytes, {memory.held} held, count that nothing takes")
        if counted["connections_opened"] != counted["connections_closed"]:
            raise Wrong("connections_opened is not connections_closed")
        expired = world.model.stats["expired"]
        if not expired <= counted["expired"] <= expired + world.perhaps_expired:
            raise Wrong(f"expired is {counted['expired']}, not {expired}")


# -- seeds


def failure_of(setting: Setting, operations: Sequence[Operation]) -> Exception | None:
    """Return the error with which the run fails; None if it is correct."""
    try:
        run(setting, operations)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed shows it
        return error
    return None


def first_failure(seeds: Iterable[int]) -> tuple[int, Exception] | None:
    """Return the first of the seeds that fails, with its error; None if none fails."""
    for seed in seeds:
        failure = failure_of(*operations_of(seed))
        if failure is not None:
            return seed, failure
    return None


def main() -> int:
    """Run the seeds below the number that the command line gives; return 1 if one fails, else 0."""
    found = first_failure(range(int(sys.argv[1])))
    if found is None:
        return 0
    seed, failure = found
    print(f"seed {seed}: {type(failure).__name__}: {failure}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
