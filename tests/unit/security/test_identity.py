"""Identities: what a login leaves of a user."""

from broker.security.identity import Identity


def test_an_identity_without_more_has_no_end_and_no_mechanism() -> None:
    identity = Identity("ann", roles=frozenset({"admin"}))
    assert (identity.user, identity.mechanism, identity.valid_until_ms) == ("ann", "", -1)
    assert identity.roles == {"admin"}
