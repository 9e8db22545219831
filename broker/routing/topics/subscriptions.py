"""All subscriptions and the names in use; only this module begins or ends a subscription."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.log_events import SUBSCRIPTION_ADOPTED, SUBSCRIPTION_ANEW
from broker.routing.addresses.address import SUBSCRIPTION_PREFIX
from broker.routing.addresses.identity import SubscriptionIdentity, identity_in, identity_of
from broker.routing.context import RoutingChange
from broker.routing.entries.participants import Consumer
from broker.routing.errors import HeldExclusively, InvalidAddress, LimitReached, NoSuchNode
from broker.routing.queues.node import TOPIC
from broker.routing.queues.queue import Queue
from broker.routing.topics.detached_subscriptions import GRACE_MS, KeptSubscriptions, has_grace
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.subscription import (
    REFUSALS,
    AttachRule,
    AttachVerdict,
    ConsumerDetach,
    Subscription,
    SubscriptionExpiry,
    SubscriptionKind,
    SubscriptionSpec,
    SubscriptionState,
    SubscriptionTraits,
    judge,
)
from broker.routing.topics.topic import Topic
from storage.batch import Batch
from storage.records import StoredSubscription

if TYPE_CHECKING:
    from broker.routing.router import Router

SUBSCRIPTIONS_MAX: Final[i64] = 100_000
"""Maximum named subscriptions of the broker: clients choose names, which may stay for ever."""

CREATED: Final = "subscription.created"
RESTARTED: Final = "subscription.restarted"
ADOPTED: Final = "subscription.adopted"
DELETED: Final = "subscription.deleted"
"""The changes of durable subscriptions that the audit records."""


@final
class Subscriptions:
    """All subscriptions by their queues, and the named ones also by identity.

    At its end a subscription is removed here and from its topic before its consumers are told.
    """

    def __init__(
        self,
        router: Router,
        subscriptions_max: i64 = SUBSCRIPTIONS_MAX,
        *,
        grace_ms: i64 = GRACE_MS,
        kept: KeptSubscriptions | None = None,
    ) -> None:
        self.named: Final[dict[SubscriptionIdentity, Subscription]] = {}
        self.of: Final[dict[Queue, Subscription]] = {}
        self._owned: Final[dict[str, dict[Subscription, None]]] = {}
        self.kept: Final = KeptSubscriptions() if kept is None else kept
        self._grace_ms: Final[i64] = grace_ms
        self._router: Final = router
        self._max: Final[i64] = subscriptions_max

    def find(self, row: AttachRule) -> Subscription | None:
        """Return the subscription that an attach of that row means, None if it does not exist."""
        identity = row.identity
        return None if identity is None else self.named.get(identity)

    def identified(self, text: str) -> Subscription | None:
        """Return the named subscription whose `identity_of` is `text`, or None."""
        identity = identity_in(text)
        return None if identity is None else self.named.get(identity)

    def check(
        self,
        asked: SubscriptionTraits,
        row: AttachRule,
        spec: SubscriptionSpec | None,
        *,
        link: SubscriptionTraits | None,
        held: Subscription | None,
    ) -> AttachVerdict:
        """Judge an attach; raise HeldExclusively or NoSuchNode if it is refused.

        `link` has the traits of the live link of its name, and `held` is the subscription from
        which that link consumes; None without one. `spec` is None for a lookup.
        """
        there = self.find(row)
        if there is None:
            state = SubscriptionState(link=link)
        else:
            state = SubscriptionState(
                link=link,
                exists=True,
                is_shared=there.is_shared,
                wants_the_same=spec is None or there.spec.is_like(spec),
                consumers=i64(len(there.queue.consumers.attached)),
                holds=held is there,
            )
        verdict = judge(asked, state)
        if verdict is AttachVerdict.MISSING:
            raise NoSuchNode("no durable subscription of this name")
        if verdict in REFUSALS:
            raise HeldExclusively(verdict.value)
        return verdict

    # -- owners

    def owned(self, user: str) -> int:
        """Return the number of durable subscriptions that `user` owns; empty: without an owner."""
        return len(self._owned.get(user, {}))

    def owned_bytes(self, user: str) -> i64:
        """Return the bytes of messages in these subscriptions."""
        size: i64 = 0
        for subscription in self._owned.get(user, {}):
            size += subscription.queue.state.bytes
        return size

    def _own(self, subscription: Subscription) -> None:
        if subscription.is_durable():
            self._owned.setdefault(subscription.owner, {})[subscription] = None

    def _disown(self, subscription: Subscription) -> None:
        if subscription.is_durable():
            owned = self._owned[subscription.owner]
            del owned[subscription]
            if not owned:
                del self._owned[subscription.owner]

    # -- beginnings

    def begin(
        self,
        row: AttachRule,
        spec: SubscriptionSpec,
        terms: SubscriptionExpiry,
        *,
        topic: Topic | None,
        batch: Batch,
        owner: str = "",
    ) -> Subscription:
        """Begin a subscription; one of the same identity ends with its backlog (SUB-21).

        That one has no consumers: `check` has made sure of it. `topic` is the one that
        `Router.topic_of` returned for the address of `spec`. Raise InvalidAddress or
        LimitReached; then nothing has changed.
        """
        router = self._router
        identity = row.identity
        is_durable = identity is not None and identity[2]
        if is_durable and topic is not None and topic.is_temporary:
            raise InvalidAddress(f"{topic.address} does not last as long as the subscription")
        there = None if identity is None else self.named.get(identity)
        if identity is not None and there is None and i64(len(self.named)) >= self._max:
            raise LimitReached(f"the broker has its {self._max} named subscriptions")
        stored_as = SUBSCRIPTION_PREFIX + secrets.token_urlsafe(16) if is_durable else ""
        queue = self._new_queue(spec, topic, stored_as, identity=identity)
        router.bind(spec.address, spec.filter, queue, topic=topic)
        dropped: i64 = 0
        if there is not None:
            dropped = self._make_way(there, spec, batch)
        subscription = Subscription(
            self,
            identity=identity,
            is_shared=row.use is SubscriptionKind.SHARED,
            spec=spec,
            terms=terms,
            queue=queue,
            grace_ms=self._grace_ms if identity is None and has_grace(spec.address) else 0,
            begun_on=batch.page if is_durable else -1,
            owner=owner,
        )
        self.of[queue] = subscription
        if identity is not None:
            self.named[identity] = subscription
            if is_durable:
                self._own(subscription)
                batch.add_subscription(as_stored_subscription(subscription))
                self.note(CREATED if there is None else RESTARTED, subscription, dropped=dropped)
        return subscription

    def _new_queue(
        self,
        spec: SubscriptionSpec,
        topic: Topic | None,
        stored_as: str,
        *,
        identity: SubscriptionIdentity | None,
    ) -> Queue:
        router = self._router
        return Queue(
            address=spec.address.text if topic is None else topic.address,
            policy=router.policy_of(spec.address.text) if topic is None else topic.policy,
            context=router.context,
            owner=-1 if topic is None else topic.owner,
            is_subscription=True,
            subscription="" if identity is None else identity_of(identity),
            stored_as=stored_as,
        )

    def bring_back(
        self,
        stored: StoredSubscription,
        spec: SubscriptionSpec,
        terms: SubscriptionExpiry,
        *,
        batch: Batch,
    ) -> Subscription:
        """Restore a durable subscription from the store, at a start. Raise as `Router.bind` does.

        Its last consumer left when the broker ended, so it may be over at once.
        """
        identity = (stored.container_id, stored.name, True)
        topic = self._router.topic_of(spec.address, batch)
        queue = self._new_queue(spec, topic, stored.queue, identity=identity)
        self._router.bind(spec.address, spec.filter, queue, topic=topic)
        subscription = Subscription(
            self,
            identity=identity,
            is_shared=stored.is_shared,
            spec=spec,
            terms=terms,
            queue=queue,
            owner=stored.owner,
        )
        self.of[queue] = subscription
        self.named[identity] = subscription
        self._own(subscription)
        self._router.expiries.link_ended(
            subscription.expiry, Ending.CONNECTION_LOST, batch, connection=-1, session=-1
        )
        return subscription

    def adopt(self, subscription: Subscription, owner: str, batch: Batch) -> None:
        """Give a subscription without an owner to the user that is the first to attach to it."""
        self._disown(subscription)
        subscription.owner = owner
        self._own(subscription)
        if subscription.is_durable():
            batch.own_subscription(subscription.queue.persistence.stored_as, owner)
        self.note(ADOPTED, subscription)
        self._router.notices.append(
            SUBSCRIPTION_ADOPTED.notice(
                f"subscription {subscription.name()}, which had no owner, belongs to {owner} now"
            )
        )

    def _make_way(self, there: Subscription, spec: SubscriptionSpec, batch: Batch) -> i64:
        """End a subscription that begins anew; report and return how many messages are lost."""
        lost = there.queue.contents()
        if lost > 0:
            self._router.stats.backlog_dropped += lost
            self._router.notices.append(
                SUBSCRIPTION_ANEW.notice(
                    f"subscription {there.name()} to {there.spec.address.text} starts anew, to "
                    f"{spec.address.text}: {lost} messages dropped"
                )
            )
        self._remove(there, batch)
        return lost

    def note(self, action: str, subscription: Subscription, *, dropped: i64 = 0) -> None:
        """Note a change of a durable subscription for the audit; others are not recorded."""
        changes, identity = self._router.changes, subscription.identity
        if changes.are_recorded and identity is not None and identity[2]:
            name = subscription.spec.address.text
            change = RoutingChange(action, TOPIC, name, identity=identity, dropped=dropped)
            changes.found.append(change)

    # -- consumers

    def join(self, subscription: Subscription, consumer: Consumer) -> None:
        """Attach `consumer` to `subscription`, which no longer expires for want of a consumer."""
        subscription.queue.attach_consumer(consumer)
        if subscription.kept_as is not None:
            self.kept.forget(subscription)
        self._router.expiries.resume(subscription.expiry)

    def leave(
        self, subscription: Subscription, consumer: Consumer, batch: Batch, *, how: ConsumerDetach
    ) -> None:
        """Detach `consumer` from `subscription` (SUB-25, SUB-30 to SUB-33).

        Raise HeldExclusively if that was to end a durable subscription from which others
        consume: then the consumer has left, and nothing else has changed.
        """
        closed = how.ending is Ending.LINK_CLOSED
        queue = subscription.queue
        queue.detach_consumer(consumer, queue, batch)
        if subscription.is_over:
            return
        if queue.consumers.attached:
            if closed and subscription.is_durable():
                raise HeldExclusively(f"others consume from subscription {subscription.name()}")
            return
        if not closed and subscription.identity is None:
            self.give_up(how.key, batch)
            if not self.kept.has_room():
                self.end(subscription, batch)
                return
            self.kept.keep(subscription, how.key)
        self._router.expiries.link_ended(
            subscription.expiry, how.ending, batch, connection=how.connection, session=how.session
        )

    # -- ends

    def give_up(self, key: tuple[str, str], batch: Batch) -> None:
        """End the subscription kept for the subscriber of that key, which asked for another."""
        kept = self.kept.find(key)
        if kept is not None:
            self.end(kept, batch)

    def end_all_of(self, topic: Topic, batch: Batch) -> None:
        """End every subscription of `topic`, which is deleted, except those to a pattern."""
        wildcards = self._router.wildcards
        for queue in list(topic.subscriptions):
            subscription = self.of.get(queue)
            if subscription is not None and not wildcards.has(queue):
                self.end(subscription, batch)

    def unsubscribe(self, identity: SubscriptionIdentity, batch: Batch) -> bool:
        """End the subscription with this identity; raise HeldExclusively if it has consumers.

        Return False if it has ended meanwhile, which is what was wanted.
        """
        subscription = self.named.get(identity)
        if subscription is None:
            return False
        if subscription.queue.consumers.attached:
            raise HeldExclusively(f"others consume from subscription {subscription.name()}")
        self.end(subscription, batch)
        return True

    def end(self, subscription: Subscription, batch: Batch) -> None:
        """End `subscription` and delete its messages; its consumers are told. Idempotent."""
        if not subscription.is_over:
            self.note(DELETED, subscription, dropped=subscription.queue.contents())
            self._remove(subscription, batch)

    def _remove(self, subscription: Subscription, batch: Batch) -> None:
        subscription.is_over = True
        identity = subscription.identity
        queue = subscription.queue
        if identity is not None:
            del self.named[identity]
            if identity[2]:
                self._disown(subscription)
                batch.remove_subscription(queue.persistence.stored_as)
        self.kept.forget(subscription)
        self._router.expiries.end(subscription.expiry)
        self._router.unbind(queue)
        del self.of[queue]
        # before its messages: unsettled ones get the default-outcome of their source (core 3.5.3)
        self._router.termini.end_those_of(queue, batch)
        queue.delete(batch)


def as_stored_subscription(subscription: Subscription) -> StoredSubscription:
    """Return the record that the store keeps of a durable subscription."""
    identity = subscription.identity
    assert identity is not None
    scope, name, _ = identity
    terms = subscription.terms
    wanted = subscription.spec.filter
    return StoredSubscription(
        queue=subscription.queue.persistence.stored_as,
        container_id=scope,
        name=name,
        is_shared=subscription.is_shared,
        address=subscription.spec.address.text,
        filters=[(each.key, each.encoded) for each in subscription.spec.stated],
        excluded_publisher="" if wanted is None else wanted.excluded_publisher,
        durability=terms.durability,
        expiry_policy=terms.expiry_policy,
        timeout_s=terms.timeout_s,
        owner=subscription.owner,
    )
