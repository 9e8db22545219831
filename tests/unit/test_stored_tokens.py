"""API tokens in the store: they log in after a restart, and not once they are revoked."""

from __future__ import annotations

import pytest

from broker.journal import Journal
from broker.security.api_tokens import ApiToken
from broker.stored_tokens import StoredTokens, stored_token, token_of
from storage.memory import MemoryStore
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("OPS-02")


def token(id_: str, *roles: str) -> ApiToken:
    return ApiToken(
        id=id_,
        digest=f"digest of {id_}",
        owner="ada",
        description="nightly export",
        roles=roles or None,
        credential_version=7,
        created_at_ms=1,
        expires_at_ms=2,
    )


@pytest.mark.parametrize("each", [token("a"), token("b", "monitor", "sales")], ids=["all", "some"])
def test_a_record_has_all_there_is(each: ApiToken) -> None:
    assert token_of(stored_token(each)) == each


async def test_tokens_are_loaded_and_changed() -> None:
    store = MemoryStore()
    journal = Journal(store)
    keeper = StoredTokens(store, journal)
    keeper.add(token("a"))
    keeper.add(token("b", "monitor"))
    journal.flush()
    keeper.remove(token("a"))
    journal.flush()
    again = StoredTokens(store, journal)
    await again.load()
    assert again.tokens.all() == keeper.tokens.all() == [token("b", "monitor")]


async def test_a_store_in_memory_says_that_it_keeps_none() -> None:
    store = MemoryStore()
    refusal = StoredTokens(store, Journal(store)).refusal
    assert refusal is not None
    assert "use SQLite or PostgreSQL" in refusal
    kept = GatedStore()
    assert StoredTokens(kept, Journal(kept)).refusal is None
