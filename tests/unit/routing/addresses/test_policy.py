"""The policy of an address: the settings of the first pattern that matches it."""

import pytest

from broker.routing.addresses.policy import AddressPolicy, Policies

ORDERS, EVERY_EU, DEFAULT = AddressPolicy(), AddressPolicy(), AddressPolicy()
POLICIES = Policies([("orders.*", ORDERS), ("*.eu", EVERY_EU)], DEFAULT, "queue")

CASES = {
    "the only one that matches": ("orders.us", ORDERS),
    "the first of two that match": ("orders.eu", ORDERS),
    "a later one": ("bills.eu", EVERY_EU),
    "none": ("bills", DEFAULT),
    "the case counts": ("Orders.us", DEFAULT),
    "a pattern covers the whole address": ("my.orders.us", DEFAULT),
}


@pytest.mark.parametrize(("address", "expected"), CASES.values(), ids=CASES.keys())
def test_the_first_pattern_that_matches_counts(address: str, expected: AddressPolicy) -> None:
    assert POLICIES.of(address) is expected


def test_an_address_without_settings_may_be_created_and_has_a_dead_letter_queue() -> None:
    policy = AddressPolicy()
    assert policy.auto_create
    assert (policy.dead_letter, policy.expiry) == ("DLQ", "")
    assert (policy.max_delivery_count, policy.max_messages, policy.max_bytes) == (20, 0, 0)


def test_a_declared_node_wins_over_patterns() -> None:
    own = AddressPolicy(max_messages=1)
    policies = Policies(
        [("orders.*", ORDERS)], DEFAULT, "queue", declared={("queue", "orders.eu"): own}
    )
    assert policies.of("orders.eu", "queue") is own
    assert policies.of("orders.eu", "topic") is ORDERS
    assert policies.of("orders.eu") is ORDERS
