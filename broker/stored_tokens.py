"""The API tokens in the store: loaded at the start, changed through the journal."""

from __future__ import annotations

from typing import Final

from broker.journal import Journal
from broker.security.api_tokens import ApiToken, ApiTokens
from storage.api import Store
from storage.users import StoredToken


class StoredTokens:
    """The API tokens of a broker, which a store keeps.

    `refusal` says why the store can keep none, None if it can.
    """

    def __init__(self, store: Store, journal: Journal) -> None:
        self.tokens: Final = ApiTokens()
        self.refusal: str | None = None
        self._store: Final = store
        self._journal: Final = journal
        if not store.keeps_users:
            self.refusal = f"the store ({store.name}) keeps no API tokens: use SQLite or PostgreSQL"

    async def load(self) -> None:
        """Load the tokens from the open store."""
        for stored in await self._store.tokens():
            self.tokens.add(token_of(stored))

    def add(self, token: ApiToken) -> None:
        """Let a token log in, and note it in the journal's batch, for which its maker waits."""
        self.tokens.add(token)
        self._journal.batch.user_changes().tokens[token.id] = stored_token(token)

    def remove(self, token: ApiToken) -> None:
        """Let a token log in no more, and note its removal in the journal's batch."""
        self.tokens.remove(token)
        self._journal.batch.user_changes().tokens[token.id] = None


def token_of(stored: StoredToken) -> ApiToken:
    """Return the token of a record."""
    return ApiToken(
        id=stored.id,
        digest=stored.digest,
        owner=stored.owner,
        description=stored.description,
        roles=None if stored.roles is None else tuple(stored.roles),
        credential_version=int(stored.credential_version),
        created_at_ms=int(stored.created_at_ms),
        expires_at_ms=int(stored.expires_at_ms),
    )


def stored_token(token: ApiToken) -> StoredToken:
    """Return the record of a token."""
    return StoredToken(
        id=token.id,
        digest=token.digest,
        owner=token.owner,
        description=token.description,
        roles=None if token.roles is None else list(token.roles),
        credential_version=token.credential_version,
        created_at_ms=token.created_at_ms,
        expires_at_ms=token.expires_at_ms,
    )
