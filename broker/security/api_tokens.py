"""API tokens: random texts by which programs log in over HTTP in the name of a user.

The broker keeps the SHA-256 of a token, never the token: 256 random bits need no slow hash. A token
has the roles of its owner, or some of them, and ends at a time, or with its owner's password.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Final

from broker.security.users import Users

ISSUER: Final = "api-token"
"""The issuer of an identity that an API token proves; its subject is the token's id."""

PREFIX: Final = "jmsb_"
"""Begins each token, so that people, and programs that look for leaked secrets, recognise one."""

SECRET_BYTES: Final = 32
ID_BYTES: Final = 6

TOKENS_MAX: Final = 10_000
"""Maximum API tokens of a broker, 0.5 KiB each."""

TOKENS_OF_OWNER_MAX: Final = 100
"""Maximum API tokens of one user."""

DAY_S: Final = 24 * 3600
LIFE_MIN_S: Final = 60
LIFE_DEFAULT_S: Final = 90 * DAY_S
LIFE_MAX_S: Final = 10 * 365 * DAY_S

DESCRIPTION_CHARS_MAX: Final = 200

VALID: Final = "valid"
EXPIRED: Final = "expired"
ENDED: Final = "ended"
"""State of a token whose owner has another password now, is disabled or was removed."""


@dataclass(frozen=True, kw_only=True)
class ApiToken:
    """An API token. `roles` is None if it has all roles of its `owner`. Times are wall time in ms.

    It is valid while its owner has the `credential_version` that it had when the token was made.
    """

    id: str
    digest: str
    owner: str
    description: str
    roles: tuple[str, ...] | None
    credential_version: int
    created_at_ms: int
    expires_at_ms: int

    def state(self, users: Users, wall_ms: int) -> str:
        """Return whether the token logs in now: VALID, EXPIRED or ENDED."""
        if version_of(self.owner, users) != self.credential_version:
            return ENDED
        return VALID if wall_ms < self.expires_at_ms else EXPIRED

    def limit(self) -> frozenset[str] | None:
        """Return the roles that a login is limited to, if its owner has them; None if to none."""
        return None if self.roles is None else frozenset(self.roles)


class ApiTokenError(ValueError):
    """A token cannot be made. The text says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A new token, with its secret, which is shown once."""

    token: ApiToken
    secret: str


class ApiTokens:
    """The tokens of a broker, by id and by digest, and the times of their last use."""

    def __init__(self) -> None:
        self._by_id: Final[dict[str, ApiToken]] = {}
        self._by_digest: Final[dict[str, ApiToken]] = {}
        self._used_at_ms: Final[dict[str, int]] = {}

    def add(self, token: ApiToken) -> None:
        """Let a token log in from now on."""
        self._by_id[token.id] = token
        self._by_digest[token.digest] = token

    def remove(self, token: ApiToken) -> None:
        """Let a token log in no more. No effect if it is gone already."""
        if self._by_id.pop(token.id, None) is not None:
            del self._by_digest[token.digest]
            self._used_at_ms.pop(token.id, None)

    def get(self, id_: str) -> ApiToken | None:
        """Return the token with this id, None if there is none."""
        return self._by_id.get(id_)

    def all(self) -> list[ApiToken]:
        """Return all tokens, expired and ended ones too."""
        return list(self._by_id.values())

    def used_at_ms(self, token: ApiToken) -> int | None:
        """Return the wall time of the last login, None if there was none since the start."""
        return self._used_at_ms.get(token.id)

    def log_in(self, secret: str, users: Users, wall_ms: int) -> ApiToken | None:
        """Return the token that `secret` is, and note its use; None if it does not log in."""
        token = self._by_digest.get(digest_of(secret))
        if token is None or token.state(users, wall_ms) != VALID:
            return None
        self._used_at_ms[token.id] = wall_ms
        return token

    def room_for(self, owner: str, users: Users, wall_ms: int) -> list[ApiToken]:
        """Return the tokens to remove before `owner` gets another one, none if there is room.

        They are tokens that log in no more. ApiTokenError if all others are too many.
        """
        own = [each for each in self._by_id.values() if each.owner == owner]
        if len(own) < TOKENS_OF_OWNER_MAX and len(self._by_id) < TOKENS_MAX:
            return []
        old = [each for each in own if each.state(users, wall_ms) != VALID]
        if len(own) - len(old) >= TOKENS_OF_OWNER_MAX:
            raise ApiTokenError(
                f"user {owner} has {TOKENS_OF_OWNER_MAX} API tokens, and cannot have more: revoke"
                " one with `jms-broker token revoke`"
            )
        if len(self._by_id) - len(old) >= TOKENS_MAX:
            raise ApiTokenError(f"the broker has {TOKENS_MAX} API tokens, and cannot have more")
        return old


def new_token(
    owner: str,
    users: Users,
    *,
    roles: Sequence[str] | None,
    file_roles: Iterable[str] = (),
    description: str,
    expires_in_s: int,
    wall_ms: int,
) -> NewToken:
    """Return a new token of `owner`. ApiTokenError if the owner may not have such a token.

    `file_roles` are those that the rules file gives to the owner.
    """
    version = version_of(owner, users)
    if version is None:
        raise ApiTokenError(f"there is no user {owner:.255} who may log in")
    foreign = sorted(set(roles or ()) - users.roles_of(owner).union(file_roles))
    if foreign:
        raise ApiTokenError(f"user {owner} does not have the role {foreign[0]:.64}")
    secret = PREFIX + token_urlsafe(SECRET_BYTES)
    token = ApiToken(
        id=token_hex(ID_BYTES),
        digest=digest_of(secret),
        owner=owner,
        description=description,
        roles=None if roles is None else tuple(dict.fromkeys(roles)),
        credential_version=version,
        created_at_ms=wall_ms,
        expires_at_ms=wall_ms + expires_in_s * 1000,
    )
    return NewToken(token=token, secret=secret)


def version_of(owner: str, users: Users) -> int | None:
    """Return the version of a user's credentials; None if the user is unknown or disabled.

    The first user, of the settings, has one per process: its tokens outlast the process.
    """
    return 0 if owner == users.first else users.version_of(owner)


def digest_of(secret: str) -> str:
    """Return what is stored of a token."""
    return sha256(secret.encode(errors="replace")).hexdigest()
