"""The contract of stores for users that log in."""

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.memory import MemoryStore
from storage.users import StoredToken, StoredUser, StoredVerifiers
from tests.contract.test_store import store

__all__ = ["store"]

pytestmark = pytest.mark.requirement("SEC-02")

USER = StoredUser(
    name="ada \U0001f6d2",
    roles=["admin", "of.orders"],
    enabled=False,
    verifiers=StoredVerifiers(password="p", scram_sha_256="s", scram_sha_512="t"),
    credential_version=2**53 + 1,
    changed_at_ms=1_750_000_000_000,
    mechanisms=["PLAIN"],
    certificates=["ada, of 'orders'"],
    previous=StoredVerifiers(password="q", scram_sha_512="u"),
    previous_until_ms=1_750_000_000_001,
)
PLAIN_USER = StoredUser(name="bob", verifiers=StoredVerifiers(password="p"))
ADDED = StoredUser(
    name="eve", completes="digest", verifiers=StoredVerifiers(scram_sha_256="s", scram_sha_512="t")
)


def fields(user: StoredUser) -> dict[str, object]:
    """Return all fields of a record, those of its verifiers too, for comparison."""
    own = {name: getattr(user, name) for name in FIELDS}
    return own | {"verifiers": passwords(user.verifiers), "previous": passwords(user.previous)}


FIELDS = (
    *("name", "completes", "roles", "enabled", "credential_version", "changed_at_ms"),
    *("mechanisms", "certificates", "previous_until_ms"),
)


def passwords(of: StoredVerifiers | None) -> tuple[str, ...]:
    return () if of is None else (of.password, of.scram_sha_256, of.scram_sha_512)


async def stored(store: Store) -> list[dict[str, object]]:
    return [fields(user) for user in (await store.users()).users]


async def test_users_are_kept_as_they_are(store: Store) -> None:
    assert (await stored(store), (await store.users()).salt_secret) == ([], b"")
    batch = Batch()
    assert batch.is_empty()
    for user in (ADDED, PLAIN_USER, USER):
        batch.user_changes().put(user)
    assert not batch.is_empty()
    assert batch.is_urgent
    await store.commit(batch)
    assert await stored(store) == [fields(each) for each in (USER, PLAIN_USER, ADDED)]


async def test_a_user_is_replaced_and_removed(store: Store) -> None:
    batch = Batch()
    batch.user_changes().put(USER)
    batch.user_changes().put(PLAIN_USER)
    await store.commit(batch)
    changed = StoredUser(name=USER.name, verifiers=StoredVerifiers(), roles=["monitor"])
    batch = Batch()
    batch.user_changes().put(changed)
    batch.user_changes().remove(PLAIN_USER.name)
    batch.user_changes().remove("nobody")
    await store.commit(batch)
    assert await stored(store) == [fields(changed)]


async def test_the_key_of_salts_stays_until_another_is_given(store: Store) -> None:
    for given, expected in (
        (b"one", b"one"),
        (b"", b"one"),
        (bytes(range(256)), bytes(range(256))),
    ):
        batch = Batch()
        batch.user_changes().salt_secret = given
        batch.user_changes().put(PLAIN_USER)
        await store.commit(batch)
        assert (await store.users()).salt_secret == expected


TOKEN_FIELDS = (
    *("id", "digest", "owner", "description", "roles"),
    *("credential_version", "created_at_ms", "expires_at_ms"),
)


def token(id_: str, roles: list[str] | None = None, description: str = "") -> StoredToken:
    return StoredToken(
        id=id_,
        digest=f"digest of {id_}",
        owner=USER.name,
        description=description,
        roles=roles,
        credential_version=2**53 + 1,
        created_at_ms=1_750_000_000_000,
        expires_at_ms=1_750_000_000_001,
    )


def token_fields(of: StoredToken) -> dict[str, object]:
    return {name: getattr(of, name) for name in TOKEN_FIELDS}


@pytest.mark.requirement("OPS-02")
async def test_api_tokens_are_kept_as_they_are_and_removed(store: Store) -> None:
    assert await store.tokens() == []
    first, second = token("a", ["monitor", "of 'orders'"], "for \U0001f6d2"), token("b", [])
    everything = token("c")
    batch = Batch()
    batch.user_changes().tokens.update({each.id: each for each in (everything, second, first)})
    assert batch.is_urgent
    await store.commit(batch)
    kept = [token_fields(each) for each in await store.tokens()]
    assert kept == [token_fields(each) for each in (first, second, everything)]
    batch = Batch()
    batch.user_changes().tokens.update({"b": None, "unknown": None})
    await store.commit(batch)
    assert [each.id for each in await store.tokens()] == ["a", "c"]


async def test_a_store_says_whether_users_outlast_it(store: Store) -> None:
    assert store.keeps_users is not isinstance(store, MemoryStore)
