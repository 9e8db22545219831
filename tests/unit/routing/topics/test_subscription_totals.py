"""Numbers of subscriptions by their kinds."""

import pytest

from broker.routing.topics.subscription_totals import SubscriptionTotals
from tests.support.broker import Broker
from tests.support.subscriptions import subscribe


@pytest.mark.requirement("OPS-04")
def test_subscriptions_are_counted_by_their_kinds() -> None:
    broker = Broker()
    client = broker.session()
    kinds = ("", "", "durable", "shared", "shared durable", "shared global durable")
    for number, words in enumerate(kinds):
        subscribe(client, words, f"s{number}", handle=number)
    totals = SubscriptionTotals()
    totals.add(list(broker.router.subscriptions.of.values()))
    assert (totals.unshared_volatile, totals.unshared_durable) == (2, 1)
    assert (totals.shared_volatile, totals.shared_durable) == (1, 2)
