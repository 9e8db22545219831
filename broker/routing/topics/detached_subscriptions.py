"""Subscriptions without a name, kept while their one subscriber may come back.

They are kept by container-id and link name, and continue to collect messages: as their
expiry-policy and timeout say (SUB-25), and, for a durable or transient topic, through a grace
period after the connection was lost (DST-11, DST-12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.addresses.address import Address
from broker.routing.addresses.durability import Durability

if TYPE_CHECKING:
    from broker.routing.topics.subscription import Subscription

KEPT_MAX: Final[i64] = 10_000
"""Maximum kept subscriptions: a client could lose connection after connection, or leave one link
behind for each name."""

GRACE_MS: Final[i64] = 60_000


def has_grace(address: Address) -> bool:
    """Return whether a private subscription to `address` has a grace period without connection."""
    promised = address.durability
    return promised is Durability.DURABLE or promised is Durability.TRANSIENT


@final
class KeptSubscriptions:
    """Subscriptions that wait for their subscribers, by the container-id and link name of each."""

    def __init__(self, kept_max: i64 = KEPT_MAX) -> None:
        self._kept_max: Final[i64] = kept_max
        self._kept: Final[dict[tuple[str, str], Subscription]] = {}

    def count(self) -> i64:
        """Return the number of waiting subscriptions."""
        return i64(len(self._kept))

    def has_room(self) -> bool:
        """Return whether one more subscription may wait."""
        return i64(len(self._kept)) < self._kept_max

    def keep(self, subscription: Subscription, key: tuple[str, str]) -> None:
        """Let `subscription` wait for the subscriber of that `key`, for which none waits yet."""
        subscription.kept_as = key
        self._kept[key] = subscription

    def find(self, key: tuple[str, str]) -> Subscription | None:
        """Return the subscription that waits for the subscriber of that `key`, or None."""
        return self._kept.get(key)

    def forget(self, subscription: Subscription) -> None:
        """Let `subscription` wait no longer. Idempotent."""
        key = subscription.kept_as
        if key is not None:
            subscription.kept_as = None
            del self._kept[key]
