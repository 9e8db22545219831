"""Volatile subscribers whose connection was lost, while they may come back (DST-11, DST-12).

Only those of durable and transient topics: their subscriptions have no name, but are kept
by container-id and link name, and go on collecting until the grace is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.terminus import LINK_DETACH
from broker.routing.durability import Durability, canonical, durability_of
from broker.routing.lifetime import Ending, Lease, Lifetimes, Mortal, Terms
from broker.routing.party import Consumer
from broker.routing.subscription import Interest, Subscription
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.subscriptions import Subscriptions

KEPT_MAX: Final[i64] = 10_000
"""Subscriptions that wait for their subscribers: a peer could lose one connection after another."""

GRACE_MS: Final[i64] = 60_000


def has_grace(subscription: Subscription, ending: Ending) -> bool:
    """Whether a subscription goes on without its subscriber, whose link has ended so."""
    if ending is not Ending.CONNECTION_LOST or subscription.identity is not None:
        return False
    promised = durability_of(canonical(subscription.interest.address))
    return promised is Durability.DURABLE or promised is Durability.TRANSIENT


@final
class Kept(Mortal):
    """One such subscription; `key` is the container-id and link name of who may have it back."""

    def __init__(
        self, home: KeptSubscriptions, subscription: Subscription, key: tuple[str, str]
    ) -> None:
        self.subscription: Final = subscription
        self.key: Final = key
        self.lease: Final = Lease(self, home.terms)
        self._home: Final = home

    def expired(self, batch: Batch) -> None:
        self._home.expired(self, batch)


@final
class KeptSubscriptions:
    """All that wait for their subscribers."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        lifetimes: Lifetimes,
        *,
        grace_ms: i64,
        kept_max: i64 = KEPT_MAX,
    ) -> None:
        self.terms: Final = Terms(LINK_DETACH, grace_ms=grace_ms)
        self._kept_max: Final[i64] = kept_max
        self._subscriptions: Final = subscriptions
        self._lifetimes: Final = lifetimes
        self._kept: Final[dict[tuple[str, str], Kept]] = {}

    def count(self) -> i64:
        """How many wait."""
        return i64(len(self._kept))

    def keep(
        self, subscription: Subscription, consumer: Consumer, batch: Batch, *, key: tuple[str, str]
    ) -> None:
        """`consumer` has gone, and may come back by the container-id and link name of `key`."""
        queue = subscription.queue
        queue.detach_consumer(consumer, queue, batch)
        earlier = self._kept.get(key)
        if earlier is not None:
            self._end(earlier, batch)
        if self.terms.grace_ms == 0 or i64(len(self._kept)) >= self._kept_max:
            self._subscriptions.end(subscription, batch)
            return
        kept = Kept(self, subscription, key)
        self._kept[key] = kept
        self._lifetimes.link_ended(
            kept.lease, Ending.CONNECTION_LOST, batch, connection=-1, session=-1
        )

    def take(self, key: tuple[str, str], interest: Interest, batch: Batch) -> Subscription | None:
        """What was kept for that link, which wants the same; what it does not want is over."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        subscription = kept.subscription
        if subscription.is_over or not subscription.interest.is_like(interest):
            self._end(kept, batch)
            return None
        del self._kept[kept.key]
        self._lifetimes.end(kept.lease)
        return subscription

    def expired(self, kept: Kept, batch: Batch) -> None:
        """Nobody has come back in time."""
        self._end(kept, batch)

    def _end(self, kept: Kept, batch: Batch) -> None:
        del self._kept[kept.key]
        self._lifetimes.end(kept.lease)
        self._subscriptions.end(kept.subscription, batch)
