"""Users and their API tokens in SQL: one row each; and the key of salts, the only secret."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import API_TOKEN, SECRET, USER_ACCOUNT
from storage.users import StoredToken, StoredUser, StoredUsers, StoredVerifiers, UserChanges

SALTS: Final = "salts"
"""Name of the secret with which salts for unknown users are made."""

DELETE_USER: Final = delete(USER_ACCOUNT).where(USER_ACCOUNT.c.name == bindparam("which"))
"""Parameters: name."""

INSERT_USER: Final = insert(USER_ACCOUNT)
"""Parameters: the columns of USER_ACCOUNT, in their order."""

DELETE_TOKEN: Final = delete(API_TOKEN).where(API_TOKEN.c.id == bindparam("which"))
"""Parameters: id."""

INSERT_TOKEN: Final = insert(API_TOKEN)
"""Parameters: the columns of API_TOKEN, in their order."""

DELETE_SECRET: Final = delete(SECRET).where(SECRET.c.name == bindparam("which"))
"""Parameters: name."""

INSERT_SECRET: Final = insert(SECRET)
"""Parameters: name, value."""

Statement = tuple[ClauseElement, Sequence[tuple[object, ...]]]


def statements_of(changes: UserChanges) -> list[Statement]:
    """Return the statements that write `changes`, each with its rows of parameters."""
    added = [_row(user) for user in changes.users.values() if user is not None]
    tokens = [_token_row(token) for token in changes.tokens.values() if token is not None]
    secrets = [(SALTS, changes.salt_secret)] if changes.salt_secret else []
    statements: list[Statement] = [
        (DELETE_USER, [(name,) for name in changes.users]),
        (INSERT_USER, added),
        (DELETE_TOKEN, [(each,) for each in changes.tokens]),
        (INSERT_TOKEN, tokens),
        (DELETE_SECRET, [(name,) for name, _ in secrets]),
        (INSERT_SECRET, secrets),
    ]
    return [(statement, rows) for statement, rows in statements if rows]


def _row(user: StoredUser) -> tuple[object, ...]:
    previous = user.previous or StoredVerifiers()
    return (
        user.name,
        user.completes,
        json.dumps(user.roles),
        user.enabled,
        *_verifiers_row(user.verifiers),
        int(user.credential_version),
        int(user.changed_at_ms),
        None if user.mechanisms is None else json.dumps(user.mechanisms),
        json.dumps(user.certificates),
        int(user.previous_until_ms),
        *_verifiers_row(previous),
    )


def _token_row(token: StoredToken) -> tuple[object, ...]:
    return (
        token.id,
        token.digest,
        token.owner,
        token.description,
        None if token.roles is None else json.dumps(token.roles),
        int(token.credential_version),
        int(token.created_at_ms),
        int(token.expires_at_ms),
    )


def _verifiers_row(verifiers: StoredVerifiers) -> tuple[str, str, str]:
    return verifiers.password, verifiers.scram_sha_256, verifiers.scram_sha_512


def load(connection: Connection) -> StoredUsers:
    """Return every user, ordered by name, and the key of salts."""
    rows = connection.execute(select(USER_ACCOUNT).order_by(USER_ACCOUNT.c.name))
    users = [_user_of(row) for row in rows]
    secret = connection.execute(select(SECRET.c.value).where(SECRET.c.name == SALTS)).scalar()
    return StoredUsers(users, secret or b"")


def load_tokens(connection: Connection) -> list[StoredToken]:
    """Return every API token, ordered by id."""
    rows = connection.execute(select(API_TOKEN).order_by(API_TOKEN.c.id))
    return [
        StoredToken(
            id=row.id,
            digest=row.digest,
            owner=row.owner,
            description=row.description,
            roles=None if row.roles is None else _texts(row.roles),
            credential_version=row.credential_version,
            created_at_ms=row.created_at_ms,
            expires_at_ms=row.expires_at_ms,
        )
        for row in rows
    ]


def _user_of(row: Row[Any]) -> StoredUser:
    previous = StoredVerifiers(
        password=row.previous_password,
        scram_sha_256=row.previous_scram_sha_256,
        scram_sha_512=row.previous_scram_sha_512,
    )
    return StoredUser(
        name=row.name,
        completes=row.completes,
        roles=_texts(row.roles),
        enabled=row.enabled,
        verifiers=StoredVerifiers(
            password=row.password,
            scram_sha_256=row.scram_sha_256,
            scram_sha_512=row.scram_sha_512,
        ),
        credential_version=row.credential_version,
        changed_at_ms=row.changed_at_ms,
        mechanisms=None if row.mechanisms is None else _texts(row.mechanisms),
        certificates=_texts(row.certificates),
        previous=previous if row.previous_until_ms > 0 else None,
        previous_until_ms=row.previous_until_ms,
    )


def _texts(stored: str) -> list[str]:
    """Return a list of texts. A damaged list is no error but another text, which gives no right."""
    try:
        found = json.loads(stored)
    except ValueError:
        found = None
    return [str(each) for each in found] if isinstance(found, list) else [stored]
