"""The identity of a client: the result of its login."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

ADMIN: Final = "admin"
MONITOR: Final = "monitor"
APPLICATION: Final = "application"
PIPELINE: Final = "pipeline"
BUILT_IN_ROLES: Final = (ADMIN, MONITOR, APPLICATION, PIPELINE)

FOREVER: Final[i64] = -1

NO_ROLES: Final[frozenset[str]] = frozenset()


@final
class Identity:
    """A user with its roles; the end of a login.

    `user` is empty for a client that has not logged in; `claimed_user` is the name that such a
    client gave itself, which is not verified. `mechanism` is the SASL mechanism, empty without
    SASL; `credential_version` is that of the password at the login. The login ends at
    `valid_until_ms` of the wall clock, or never (FOREVER). A login by a token has its `issuer`,
    `subject` and `scopes` (rights of this login alone, as `broker/security/scopes.py` reads them),
    which are empty for others.

    A login that is `limited_to` some roles has those of them that `roles` has, and of those that
    the rules file gives to its user; None without such a limit. The other `roles` are `withheld`:
    no allow rule for them holds, and every deny rule does.
    """

    def __init__(
        self,
        user: str,
        *,
        roles: frozenset[str],
        mechanism: str = "",
        claimed_user: str = "",
        credential_version: i64 = 0,
        valid_until_ms: i64 = FOREVER,
        issuer: str = "",
        subject: str = "",
        scopes: tuple[str, ...] = (),
        limited_to: frozenset[str] | None = None,
    ) -> None:
        self.user: Final = user
        self.roles: Final = roles if limited_to is None else roles & limited_to
        self.withheld: Final = NO_ROLES if limited_to is None else roles - limited_to
        self.limited_to: Final = limited_to
        self.mechanism: Final = mechanism
        self.claimed_user: Final = claimed_user
        self.credential_version: Final[i64] = credential_version
        self.valid_until_ms: Final[i64] = valid_until_ms
        self.issuer: Final = issuer
        self.subject: Final = subject
        self.scopes: Final = scopes

    def with_roles(self, roles: frozenset[str]) -> Identity:
        """Return the same login with other roles; this one if it has these."""
        if roles == self.roles | self.withheld:
            return self
        return Identity(
            self.user,
            roles=roles,
            mechanism=self.mechanism,
            claimed_user=self.claimed_user,
            credential_version=self.credential_version,
            valid_until_ms=self.valid_until_ms,
            issuer=self.issuer,
            subject=self.subject,
            scopes=self.scopes,
            limited_to=self.limited_to,
        )

    def name(self) -> str:
        """Return the user for people to read: `anonymous` for a client without a login."""
        return self.user or "anonymous"


NOT_LOGGED_IN: Final = Identity("", roles=frozenset())
"""The identity of a client whose login has not ended; it has no role."""
