"""A store that fails under a simulated broker, and another broker on the stored state.

Whether the failed commit was applied is unknown (P2). This module checks what must hold of the
store; then the model starts anew with the stored state, and the run continues.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from broker.restore import restore
from storage.records import StoredMessage
from storage.stages import STAGED
from tests.scenario.simulation_edge import MARK, NOTE
from tests.scenario.simulation_records import Ending, Entry, Node, Wrong
from tests.scenario.simulation_subscriptions import Subscription
from tests.scenario.simulation_world import World


def id_of(stored: StoredMessage) -> int:
    """Return the number that the body of a stored message contains."""
    at = stored.encoded.index(MARK) + len(MARK)
    return int(stored.encoded[at : at + 6])


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
    world.lease.come_back(earlier.lease)
    world.sink.come_back(earlier.sink)


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
