"""Identities: what a login leaves of a user."""

from broker.security.identity import Identity


def test_an_identity_without_more_has_no_end_and_no_mechanism() -> None:
    identity = Identity("ann", roles=frozenset({"admin"}))
    assert (identity.user, identity.mechanism, identity.valid_until_ms) == ("ann", "", -1)
    assert identity.roles == {"admin"}


def test_an_identity_that_is_limited_to_some_roles_keeps_the_others_apart() -> None:
    limit = frozenset({"monitor", "ops"})
    identity = Identity("ann", roles=frozenset({"admin", "monitor"}), limited_to=limit)
    assert identity.roles == {"monitor"}
    assert identity.withheld == {"admin"}
    assert identity.with_roles(frozenset({"admin", "monitor"})) is identity
    later = identity.with_roles(frozenset({"ops", "sales"}))
    assert later.roles == {"ops"}
    assert later.withheld == {"sales"}
    assert later.limited_to == limit
