"""A store that fails under a simulated broker, and another broker on the stored state.

Whether the failed commit was applied is unknown (P2). This module checks what must hold of the
store; then the model starts anew with the stored state, and the run continues.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from broker.amqp.outcomes import ACCEPTED, RELEASED, Modified, Outcome, Rejected
from broker.amqp.performatives import RECEIVER, Attach
from broker.amqp.terminus import Source
from broker.restore import restore
from broker.routing.entries.redelivery import Disposal
from storage.records import StoredMessage
from storage.stages import STAGED
from tests.scenario.simulation_edge import MARK, NOTE
from tests.scenario.simulation_links import Link, Session, State
from tests.scenario.simulation_records import Ending, Entry, Left, Node, Wrong
from tests.scenario.simulation_subscriptions import LIVES_UNTIL, Subscription, Terms
from tests.scenario.simulation_world import World

ABANDONED: Final[dict[Disposal, Outcome]] = {
    Disposal.REMOVE: ACCEPTED,
    Disposal.RELEASE: RELEASED,
    Disposal.DEAD_LETTER: Rejected(),
    Disposal.COUNT: Modified(delivery_failed=True),
}
"""Default-outcomes with the effects that the broker has restored."""


def number_in(encoded: bytes) -> int:
    """Return the number that the body of a message contains."""
    at = encoded.index(MARK) + len(MARK)
    return int(encoded[at : at + 6])


def id_of(stored: StoredMessage) -> int:
    """Return the number that the body of a stored message contains."""
    return number_in(stored.encoded)


def all_stored(world: World) -> list[StoredMessage]:
    """Return every stored message that is not staged, those of each queue in their order."""
    held: list[StoredMessage] = []
    while part := world.run(world.store.messages(int(held[-1].number) if held else 0)):
        held += part
    queued = [each for each in held if each.queue != STAGED]
    return sorted(queued, key=lambda each: int(each.position))


def known_as(world: World, queue: str) -> Node | None:
    """Return the model's node for a queue of the store; None if it has none."""
    subscription = world.subscriptions.lasting.get(queue)
    if subscription is not None:
        return subscription.queue
    if queue in {rule.expiry for rule in world.model.rules.values()}:
        return world.model.node("queue", queue)
    return world.model.nodes.get(("queue", queue))


def was_there(world: World, node: Node, number: int) -> bool:
    """Return whether the model has put the message into `node`.

    For a node of expired messages, any sent message counts: the broker chooses when to move it.
    """
    return (node, number) in world.model.ever or (node.is_loose and number in world.sent)


def find_the_short_lived(world: World) -> None:
    """Add stored subscriptions to `lasting` that ended or began anew before the model looked."""
    lasting = world.subscriptions.lasting
    for kept in world.run(world.store.subscriptions()):
        identity = (kept.container_id, kept.name, True)
        seen = list(lasting.values())
        unseen = [
            each
            for each in world.subscriptions.begun
            if each.identity == identity and each not in seen
        ]
        if kept.queue not in lasting and unseen:
            lasting[kept.queue] = unseen[-1]


def check_store(world: World) -> None:
    """Raise Wrong if an accepted message is lost, or a stored one is unknown, duplicate or gone.

    "Gone" are messages whose acknowledgement in a committed transaction was confirmed.
    """
    there: Counter[tuple[Node, int]] = Counter()
    for stored in all_stored(world):
        node, number = known_as(world, stored.queue), id_of(stored)
        if node is None or not was_there(world, node, number):
            raise Wrong(f"message {number} is on disk in {stored.queue}, where it never was")
        there[node, number] += 1
        if there[node, number] > 1 and not node.is_loose:
            raise Wrong(f"message {number} is on disk in {stored.queue} twice")
        if (node, number) in world.gone and not node.is_loose:
            raise Wrong(f"message {number} of {stored.queue} is on disk, and was confirmed gone")
    anywhere = {number for _, number in there}
    for node in lasting_queues(world):
        for entry in node.there():
            if node.is_loose and world.model.was_published(entry.message.id):
                continue
            message = entry.message
            must_be = message.durable and message.id in world.accepted_ids
            if not must_be or message.is_over(world.model.now):
                continue
            if message.id not in anywhere or (not node.is_loose and not there[node, message.id]):
                raise Wrong(f"message {message.id} of {node.address} was accepted, and is lost")


def lasting_queues(world: World) -> list[Node]:
    """Return the queues whose durable messages a restart restores."""
    queues = [
        node for (kind, _), node in world.model.nodes.items() if kind == "queue" and not node.owner
    ]
    return [*queues, *(node for _, node in world.subscriptions.stored())]


def reborn(earlier: World) -> World:
    """Return another broker on the store of a failed one, with a model of the stored state."""
    find_the_short_lived(earlier)
    check_store(earlier)
    world = World(earlier.setting, earlier)
    try:
        world.run(world.store.open())
        world.run(restore(world.store, world.broker.router, world.broker.journal.batch))
        begin_anew(world, earlier)
        world.container.run_round()
        world.pass_time(0)
    except BaseException:
        world.close()
        raise
    earlier.close()
    return world


def begin_anew(world: World, earlier: World) -> None:
    """Give the model the nodes, subscriptions and messages of the store."""
    for stored in world.run(world.store.nodes()):
        world.model.node(stored.kind, stored.address)
    queues: dict[str, Node] = {}
    for kept in world.run(world.store.subscriptions()):
        before = earlier.subscriptions.lasting.get(kept.queue)
        if before is None:
            raise Wrong(f"the subscription {kept.name} is on disk, and never was")
        topic = world.model.node("topic", kept.address)
        subscription = subscribe_again(world, before, topic)
        world.subscriptions.lasting[kept.queue] = subscription
        queues[kept.queue] = subscription.queue
    assert world.stored is not None
    for message in all_stored(world):
        world.stored.add(id_of(message))
        known = known_as(earlier, message.queue)
        node = queues.get(message.queue) or world.model.node("queue", message.queue)
        assert known is not None
        put_back(world, node, message, known, earlier)
    bring_back_sources(world, earlier, queues)
    check_sources(world, earlier, queues)
    world.lease.come_back(earlier.lease)
    world.sink.come_back(earlier.sink)


def bring_back_sources(world: World, earlier: World, queues: dict[str, Node]) -> None:
    """Give the model the suspended sources that the broker has restored, with their deliveries."""
    for terminus in world.broker.router.termini.all():
        container_id, name, _ = terminus.key
        queue, kept = terminus.queue, terminus.deliveries
        assert queue is not None
        assert kept is not None
        node = queues[queue.persistence.stored_as]
        source = Source(default_outcome=ABANDONED[terminus.disposal])
        link = Link(
            # its connection has ended, as all have
            session=Session(
                world=world, owner=earlier.edges[0], container_id=container_id, window=0
            ),
            attach=Attach(name=name, handle=0, role=RECEIVER, source=source),
            incoming=False,
            state=State.ENDED,
            node=node,
        )
        for each in kept.all():
            assert each.entry is not None
            number = number_in(each.entry.message.encoded)
            entry = next(entry for entry in node.waiting if entry.message.id == number)
            node.waiting.remove(entry)
            node.held[entry] = link
            # the store knows what has been told of it
            entry.delivery_count, entry.is_recovered = int(each.entry.delivery_count), False
            link.due[each.tag] = Left(entry)
        terms = terminus.expiry.terms
        world.suspended.restore(link, Terms(LIVES_UNTIL[terms.policy], 1000 * int(terms.timeout_s)))


def check_sources(world: World, earlier: World, queues: dict[str, Node]) -> None:
    """Raise Wrong if a client can no longer resume a stored delivery, as it has been promised."""
    back = {each.key: each.deliveries for each in world.broker.router.termini.all()}
    named = {each.queue: name for name, each in earlier.subscriptions.lasting.items()}
    for link in [*earlier.links.values(), *earlier.suspended.links()]:
        node = queues.get(named.get(link.node, "")) if link.is_stored and link.node else None
        there = set() if node is None else {entry.message.id for entry in node.there()}
        kept = back.get(link.key())
        for number, (owner, entry) in link.session.unsettled.items():
            if owner is not link or entry is None or not entry.message.durable:
                continue
            is_there = entry.message.id in there and not entry.message.is_over(world.model.now)
            tag = link.session.tags[number]
            if is_there and (kept is None or kept.find(tag) is None):
                raise Wrong(f"link {link.attach.name} cannot resume {tag!r} after a restart")


def subscribe_again(world: World, before: Subscription, topic: Node) -> Subscription:
    """Return the subscription as a restart restores it: with no consumers.

    If its kind ends with its last connection, it is over now, or after its timeout.
    """
    assert before.identity is not None
    subscriptions = world.subscriptions
    queue = Node("queue", topic.address, topic.rule, topic=topic, wish=before.queue.wish)
    topic.subscriptions.append(queue)
    again = Subscription(before.identity, before.is_shared, topic, queue, before.terms)
    subscriptions.all[again] = None
    subscriptions.named[before.identity] = again
    if again.terms.end_at(Ending.CONNECTION):
        if again.terms.timeout:
            again.deadline = world.model.now + again.terms.timeout
        else:
            subscriptions.end(again)
    return again


def put_back(world: World, node: Node, stored: StoredMessage, known: Node, earlier: World) -> None:
    """Put the entry of a stored message into the model."""
    model, number = world.model, id_of(stored)
    due = int(stored.deliver_at_ms)
    moved = replace(world.sent[number].message, arrived=int(stored.arrived_ms), ttl=0, due=0)
    message = earlier.model.ever.get((known, number), moved)
    message = replace(message, is_noted=NOTE in stored.encoded, publisher=stored.publisher)
    entry = Entry((0, 0), message, node, delivery_count=int(stored.delivery_count))
    entry.is_recovered = entry.is_from_store = True
    if (known, number) in earlier.model.given:
        entry.was_given = True
        model.given.add((node, number))
    model.ever[node, number] = message
    if node.is_deleted:
        return
    node.place(entry)
    if due:
        model.sleepy[node] = None
        node.lay_down(entry, due)
    else:
        node.waiting.append(entry)
        node.waiting.sort()
