"""The contract of stores for durable subscriptions and their owners."""

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.records import StoredSubscription
from tests.contract.test_store import positions, store, stored

__all__ = ["store"]

SUBSCRIPTION = StoredSubscription(
    queue="$subscription/1",
    container_id="shop",
    name="orders",
    is_shared=True,
    address="orders.*",
    filters=[("selector", bytes(range(256)))],
    excluded_publisher="shop/\U0001f6d2",
    durability=2,
    expiry_policy="never",
    timeout_s=30,
)


@pytest.mark.requirement("SUB-06")
async def test_a_subscription_is_kept_as_it_is(store: Store) -> None:
    batch = Batch()
    batch.add_subscription(SUBSCRIPTION)
    batch.append(stored(1, queue=SUBSCRIPTION.queue))
    await store.commit(batch)
    (kept,) = await store.subscriptions()
    for name in ("queue", "container_id", "name", "is_shared", "address", "filters"):
        assert getattr(kept, name) == getattr(SUBSCRIPTION, name)
    assert kept.excluded_publisher == SUBSCRIPTION.excluded_publisher
    assert (kept.durability, kept.expiry_policy, kept.timeout_s) == (2, "never", 30)
    assert await positions(store, SUBSCRIPTION.queue) == [1]


@pytest.mark.requirement("SEC-04")
async def test_a_subscription_without_an_owner_gets_one(store: Store) -> None:
    batch = Batch()
    batch.add_subscription(SUBSCRIPTION)
    await store.commit(batch)
    batch = Batch()
    assert batch.is_empty()
    batch.own_subscription(SUBSCRIPTION.queue, "ada")
    batch.own_subscription("nothing", "ada")
    assert not batch.is_empty()
    await store.commit(batch)
    (kept,) = await store.subscriptions()
    assert (kept.queue, kept.owner, kept.name) == (SUBSCRIPTION.queue, "ada", SUBSCRIPTION.name)


@pytest.mark.requirement("SEC-04")
async def test_a_removed_subscription_gets_no_owner(store: Store) -> None:
    batch = Batch()
    batch.add_subscription(SUBSCRIPTION)
    await store.commit(batch)
    batch = Batch()
    batch.own_subscription(SUBSCRIPTION.queue, "ada")
    batch.remove_subscription(SUBSCRIPTION.queue)
    await store.commit(batch)
    assert await store.subscriptions() == []


@pytest.mark.requirement("SUB-31")
async def test_a_removed_subscription_takes_its_messages_with_it(store: Store) -> None:
    batch = Batch()
    batch.add_subscription(SUBSCRIPTION)
    batch.append(stored(1, queue=SUBSCRIPTION.queue))
    await store.commit(batch)
    batch = Batch()
    batch.append(stored(2, queue=SUBSCRIPTION.queue))
    batch.remove_subscription(SUBSCRIPTION.queue)
    batch.remove_subscription("nothing")
    await store.commit(batch)
    assert await store.subscriptions() == []
    assert await positions(store, SUBSCRIPTION.queue) == []
