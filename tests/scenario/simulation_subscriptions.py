"""Subscriptions as the model has them: which receive a message, and which links may join one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from broker.amqp.performatives import Attach
from broker.amqp.terminus import (
    CONNECTION_CLOSE,
    LINK_DETACH,
    NEVER,
    NOT_DURABLE,
    SESSION_END,
)
from tests.scenario.simulation_records import EVERYTHING, Ending, Node, Wish, Wrong

if TYPE_CHECKING:
    from tests.scenario.simulation_links import Link, Session
    from tests.scenario.simulation_world import World

SubscriptionIdentity = tuple[str | None, str, bool]
"""Container-id, or None for all containers; name; whether durable."""

Key = tuple[str, str, bool]
"""Container-id, name and direction of a link."""


class Facts(NamedTuple):
    """The properties by which an attach names its subscription (SUB-01 to SUB-12)."""

    is_shared: bool = False
    is_global: bool = False
    is_durable: bool = False

    def identity(self, name: str, container_id: str) -> SubscriptionIdentity | None:
        """Return the identity of the subscription; None if no other link can name it."""
        if not self.is_shared and not self.is_durable:
            return None
        cut = name.split("|")[0] if self.is_shared else name
        return (None if self.is_global else container_id, cut, self.is_durable)


NO_FACTS = Facts()
"""The facts of a link to a queue."""


def facts_of(attach: Attach) -> Facts:
    """Return the facts of a receiver's attach; one without a source looks up a durable one."""
    source = attach.source
    if source is None:
        said = attach.desired_capabilities
        return Facts("shared" in said, "global" in said, is_durable=True)
    if source.dynamic:
        return NO_FACTS
    said = source.capabilities
    return Facts("shared" in said, "global" in said, source.durable != NOT_DURABLE)


LIVES_UNTIL = {
    LINK_DETACH: Ending.DETACHED,
    SESSION_END: Ending.SESSION,
    CONNECTION_CLOSE: Ending.CONNECTION,
    NEVER: None,
}


@dataclass(frozen=True)
class Terms:
    """The event at which a node or subscription without links ends, or `timeout` ms after it.

    Without an event it has no end.
    """

    lives_until: Ending | None = Ending.DETACHED
    timeout: int = 0

    def end_at(self, ending: Ending) -> bool:
        if ending is Ending.CLOSED:
            return True
        return self.lives_until is not None and ending.value >= self.lives_until.value


@dataclass(eq=False)
class Subscription:
    """A subscription's queue, from the first subscriber to the end of its kind (SUB-25)."""

    identity: SubscriptionIdentity | None
    is_shared: bool
    topic: Node
    queue: Node
    terms: Terms
    key: Key | None = None
    "The link that may resume the subscription, if it has no name."
    left: Session | None = None
    "The session of its last consumer, while its end or its connection's end is awaited."
    deadline: int | None = None
    consumers: dict[Link, None] = field(default_factory=dict)
    is_over: bool = False

    def is_durable(self) -> bool:
        return self.identity is not None and self.identity[2]

    def is_for(self, topic: Node, wish: Wish) -> bool:
        return self.topic is topic and self.queue.wish == wish


class Subscriptions:
    """All subscriptions, and those that have a name."""

    def __init__(self, world: World) -> None:
        self.all: dict[Subscription, None] = {}
        self.named: dict[SubscriptionIdentity, Subscription] = {}
        self.kept: dict[Key, Subscription] = {}
        self.lasting: dict[str, Subscription] = {}
        "Durable subscriptions that a check has found, by the names of their queues in the store."
        self.begun: list[Subscription] = []
        self._world = world

    def meant(self, link: Link, topic: Node, wish: Wish) -> Subscription | None:
        """Return the subscription that the attach of `link` means; None if it must be refused.

        It may begin now. (SUB-21, SUB-22, SUB-38, SUB-40)
        """
        holder = self._world.links.get(link.key())
        held = None if holder is None else holder.subscription
        identity = link.facts.identity(link.attach.name, link.session.container_id)
        if identity is None:
            same = held is not None and held.identity is None and held.is_for(topic, wish)
            return held if same else self.private(link, topic, wish)
        there = self.named.get(identity)
        if there is not None:
            others = [each for each in there.consumers if each is not holder]
            if there.is_shared is not link.facts.is_shared or (others and not there.is_shared):
                return None
            if there.is_for(topic, wish):
                return there
        if (there is not None and there.consumers) or (identity[2] and topic.owner is not None):
            return None
        if there is not None:
            self.end(there)
        return self._begin(link, identity, topic, wish)

    def private(self, link: Link, topic: Node, wish: Wish) -> Subscription:
        """Return a subscription that no other link can name, kept for this link or new."""
        kept = self.kept.get(link.key())
        if kept is not None and kept.is_for(topic, wish):
            return kept
        return self._begin(link, None, topic, wish)

    def _begin(
        self, link: Link, identity: SubscriptionIdentity | None, topic: Node, wish: Wish
    ) -> Subscription:
        """Begin a subscription, which receives what is published from now on."""
        queue = Node("queue", topic.address, topic.rule, topic.owner, topic=topic, wish=wish)
        topic.subscriptions.append(queue)
        terms = terms_of(link)
        begun = Subscription(identity, link.facts.is_shared, topic, queue, terms)
        self.all[begun] = None
        self.begun.append(begun)
        if identity is not None:
            self.named[identity] = begun
        return begun

    def join(self, subscription: Subscription, link: Link) -> None:
        """Add `link` to its consumers, so that the subscription does not end."""
        subscription.consumers[link] = None
        subscription.left = subscription.deadline = None
        self._forget(subscription)

    def leave(self, subscription: Subscription, link: Link, ending: Ending) -> bool:
        """Remove `link` from its consumers (SUB-30 to SUB-33); return whether it overreached.

        A closing detach overreaches if other consumers have the durable subscription.
        """
        subscription.consumers.pop(link, None)
        if subscription.is_over:
            return False
        closed = ending is Ending.CLOSED
        if subscription.consumers:
            return closed and subscription.is_durable()
        if subscription.identity is None and not closed:
            self.give_up(link)
            subscription.key = link.key()
            self.kept[link.key()] = subscription
        subscription.left = link.session
        self._reach(subscription, ending)
        return False

    def _reach(self, subscription: Subscription, ending: Ending) -> None:
        if not subscription.terms.end_at(ending):
            return
        subscription.left = None
        if ending is Ending.CLOSED or not subscription.terms.timeout:
            self.end(subscription)
        else:
            subscription.deadline = self._world.model.now + subscription.terms.timeout

    def session_ended(self, session: Session) -> None:
        for each in [each for each in self.all if each.left is session]:
            self._reach(each, Ending.SESSION)

    def connection_ended(self, owner: object) -> None:
        for each in list(self.all):
            if each.left is not None and each.left.owner is owner:
                self._reach(each, Ending.CONNECTION)

    def run_out(self, now: int) -> None:
        """End the subscriptions whose deadline has passed."""
        for each in list(self.all):
            if each.deadline is not None and each.deadline <= now:
                self.end(each)

    def give_up(self, link: Link) -> None:
        """End the subscription kept for `link`, which has attached, or left, with another one."""
        kept = self.kept.get(link.key())
        if kept is not None:
            self.end(kept)

    def _forget(self, subscription: Subscription) -> None:
        if subscription.key is not None:
            del self.kept[subscription.key]
            subscription.key = None

    def unsubscribe(self, identity: SubscriptionIdentity) -> bool:
        """End the subscription (SUB-34); return True if consumers prevent that."""
        there = self.named.get(identity)
        if there is None:
            return False
        if there.consumers:
            return True
        self.end(there)
        return False

    def end(self, subscription: Subscription) -> None:
        """End the subscription and delete its messages."""
        subscription.is_over = True
        del self.all[subscription]
        self._forget(subscription)
        if subscription.identity is not None:
            del self.named[subscription.identity]
        queue = subscription.queue
        self._world.suspended.end_all_of(queue)
        queue.is_deleted = True
        self._world.note_deleted(queue)
        subscription.topic.subscriptions.remove(queue)

    def end_all_of(self, topic: Node) -> None:
        for each in list(self.all):
            if each.topic is topic:
                self.end(each)

    def check(self) -> None:
        """Raise Wrong unless the broker has exactly these subscriptions and their messages."""
        there = self._world.broker.router.subscriptions
        if set(there.named) != set(self.named) or len(there.of) != len(self.all):
            raise Wrong(f"subscriptions {list(there.named)}, not {list(self.named)}")
        for identity, subscription in self.named.items():
            queue = there.named[identity].queue
            if subscription.is_durable():
                self.lasting[queue.persistence.stored_as] = subscription
            self._world.count_queue(f"subscription {identity}", queue, subscription.queue)
            if len(queue.consumers.attached) != len(subscription.consumers):
                raise Wrong(
                    f"subscription {identity} has {len(queue.consumers.attached)} consumers"
                )

    def stored(self) -> list[tuple[str, Node]]:
        """Return the durable subscriptions: the name of each in the store, and its queue."""
        there = self._world.broker.router.subscriptions.named
        return [
            (there[identity].queue.persistence.stored_as, each.queue)
            for identity, each in self.named.items()
            if each.is_durable()
        ]


def terms_of(link: Link) -> Terms:
    """Return the terms that the first subscriber sets, or those of the dynamic topic it creates."""
    source = link.attach.source
    assert source is not None
    if link.creation is not None:
        return Terms(link.creation.lives_until)
    return Terms(LIVES_UNTIL[source.expiry_policy], int(source.timeout) * 1000)


def wish_of(attach: Attach, container_id: str) -> Wish:
    """Return the wish that the filters of a receiver's attach express."""
    filters = {} if attach.source is None else {each.key: each for each in attach.source.filter}
    if not filters:
        return EVERYTHING
    selector = filters.get("selector")
    return Wish(
        selector="" if selector is None else str(selector.value),
        excluded=container_id if "no-local" in filters else "",
    )
