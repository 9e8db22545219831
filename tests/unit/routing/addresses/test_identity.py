"""The identity of a subscription as one text."""

from __future__ import annotations

import pytest

from broker.routing.addresses.identity import SubscriptionIdentity, identity_of

IDENTITIES = [
    pytest.param(("client", "name", True), "durable/client/name", id="of a client"),
    pytest.param((None, "name", True), "durable//name", id="global"),
    pytest.param(("a/b", "c d|e", False), "volatile/a%2Fb/c%20d%7Ce", id="escaped"),
]


@pytest.mark.parametrize(("identity", "expected"), IDENTITIES)
def test_an_identity_in_one_text(identity: SubscriptionIdentity, expected: str) -> None:
    assert identity_of(identity) == expected
