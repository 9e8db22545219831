"""Records of users that log in and of their API tokens, and changes to them.

A store keeps the users whose users file the broker cannot write, and verifiers that such a file
lacks. What the values mean is known to the broker alone; none of them is a password or a token.
"""

from typing import Final, final

from mypy_extensions import i64


@final
class StoredVerifiers:
    """The stored forms of one password, as the users file writes them; empty if there is none."""

    def __init__(
        self, *, password: str = "", scram_sha_256: str = "", scram_sha_512: str = ""
    ) -> None:
        self.password: Final = password
        self.scram_sha_256: Final = scram_sha_256
        self.scram_sha_512: Final = scram_sha_512


@final
class StoredUser:
    """A user, or verifiers that are added to a user of the users file.

    `completes` is empty for a user. Else it identifies the password in the users file to which the
    `verifiers` belong, and all other fields are without meaning. `mechanisms` is None if the user
    may log in with any. `previous` is the former password, which enters until `previous_until_ms`.
    Times are wall time in ms; 0 is none.
    """

    def __init__(
        self,
        *,
        name: str,
        verifiers: StoredVerifiers,
        completes: str = "",
        roles: list[str] | None = None,
        enabled: bool = True,
        mechanisms: list[str] | None = None,
        certificates: list[str] | None = None,
        credential_version: i64 = 0,
        changed_at_ms: i64 = 0,
        previous: StoredVerifiers | None = None,
        previous_until_ms: i64 = 0,
    ) -> None:
        self.name: Final = name
        self.verifiers: Final = verifiers
        self.completes: Final = completes
        self.roles: Final[list[str]] = [] if roles is None else roles
        self.enabled: Final = enabled
        self.mechanisms: Final = mechanisms
        self.certificates: Final[list[str]] = [] if certificates is None else certificates
        self.credential_version: Final[i64] = credential_version
        self.changed_at_ms: Final[i64] = changed_at_ms
        self.previous: Final = previous
        self.previous_until_ms: Final[i64] = previous_until_ms


@final
class StoredUsers:
    """All stored users, by name, and the key of salts for unknown users; empty if there is none."""

    def __init__(self, users: list[StoredUser], salt_secret: bytes) -> None:
        self.users: Final = users
        self.salt_secret: Final = salt_secret


@final
class StoredToken:
    """An API token of a user.

    `digest` is the SHA-256 of the token, in hexadecimal. `roles` is None if the token has all roles
    of its `owner`. `credential_version` is that of the owner when the token was made. Times are
    wall time in ms.
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the column's name
        digest: str,
        owner: str,
        description: str,
        roles: list[str] | None,
        credential_version: i64,
        created_at_ms: i64,
        expires_at_ms: i64,
    ) -> None:
        self.id: Final = id
        self.digest: Final = digest
        self.owner: Final = owner
        self.description: Final = description
        self.roles: Final = roles
        self.credential_version: Final[i64] = credential_version
        self.created_at_ms: Final[i64] = created_at_ms
        self.expires_at_ms: Final[i64] = expires_at_ms


@final
class UserChanges:
    """User changes of one `Batch`. Few batches have any, so a batch creates this on demand."""

    def __init__(self) -> None:
        self.users: Final[dict[str, StoredUser | None]] = {}
        """Users by name; None removes a user."""
        self.tokens: Final[dict[str, StoredToken | None]] = {}
        """API tokens by id; None removes a token."""
        self.salt_secret = b""
        """A new key of salts, empty to keep the stored one."""

    def put(self, user: StoredUser) -> None:
        """Add a user, or replace the one of its name."""
        self.users[user.name] = user

    def remove(self, name: str) -> None:
        """Remove a user. No effect if it is gone already."""
        self.users[name] = None
