"""Numbers of subscriptions, summed up when they are asked for."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from broker.routing.topics.subscription import Subscription


@final
class SubscriptionTotals:
    """The number of subscriptions by whether they are shared and durable."""

    def __init__(self) -> None:
        self.shared_durable: i64 = 0
        self.shared_volatile: i64 = 0
        self.unshared_durable: i64 = 0
        self.unshared_volatile: i64 = 0

    def add(self, subscriptions: list[Subscription]) -> None:
        """Count these subscriptions."""
        for subscription in subscriptions:
            is_durable = subscription.is_durable()
            if subscription.is_shared:
                if is_durable:
                    self.shared_durable += 1
                else:
                    self.shared_volatile += 1
            elif is_durable:
                self.unshared_durable += 1
            else:
                self.unshared_volatile += 1
