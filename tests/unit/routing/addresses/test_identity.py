"""The identity of a subscription as one text, and names that a store can keep."""

from __future__ import annotations

import pytest

from broker.routing.addresses.identity import (
    KEY_BYTES_MAX,
    SubscriptionIdentity,
    fits_a_key,
    identity_of,
)

IDENTITIES = [
    pytest.param(("client", "name", True), "durable/client/name", id="of a client"),
    pytest.param((None, "name", True), "durable//name", id="global"),
    pytest.param(("a/b", "c d|e", False), "volatile/a%2Fb/c%20d%7Ce", id="escaped"),
]


@pytest.mark.parametrize(("identity", "expected"), IDENTITIES)
def test_an_identity_in_one_text(identity: SubscriptionIdentity, expected: str) -> None:
    assert identity_of(identity) == expected


KEYS = [
    pytest.param("n" * KEY_BYTES_MAX, True, id="the longest"),
    pytest.param("n" * (KEY_BYTES_MAX + 1), False, id="too long"),
    pytest.param("é" * (KEY_BYTES_MAX // 2) + "n", True, id="the longest in UTF-8"),
    pytest.param("é" * (KEY_BYTES_MAX // 2 + 1), False, id="too long in UTF-8"),
    pytest.param("", True, id="empty"),
    pytest.param("a\0b", False, id="a NUL"),
    pytest.param("\ud800", False, id="half of a character"),
]


@pytest.mark.parametrize(("name", "fits"), KEYS)
def test_a_name_that_a_store_can_keep(name: str, fits: bool) -> None:
    assert fits_a_key(name) is fits
