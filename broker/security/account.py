"""A user account: a name, its roles, and what its logins are checked against."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, TypedDict

from broker.security.scram_verifier import ScramHash, ScramVerifier

NAME_BYTES_MAX: Final = 255
"""Maximum bytes of a user's name, as UTF-8."""

ROLE_CHARS_MAX: Final = 64
ROLE: Final = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{ROLE_CHARS_MAX - 1}}}")

ROLES_MAX: Final = 64
"""Maximum roles of one user."""

CERTIFICATES_MAX: Final = 16
"""Maximum certificates of one user: a new one beside the old while it is replaced, per machine."""

CERTIFICATE_BYTES_MAX: Final = 1_024
"""Maximum bytes of the name in a certificate: a URI or a subject's common name."""

ADMIN_ROLE: Final = "admin"
"""The role of a user that may manage the broker."""

APPLICATION_ROLE: Final = "application"
"""The role of a user that sends and receives. A new user has it unless others are given."""

PLAIN_MECHANISM: Final = "PLAIN"
MECHANISMS: Final = (
    *("EXTERNAL", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER", "XOAUTH2", PLAIN_MECHANISM),
)
"""The SASL mechanisms that log in a user by name. HTTP's Basic authentication counts as PLAIN."""


class UsersError(ValueError):
    """The users file is invalid, or cannot be changed as requested. The text says what to do."""


@dataclass(frozen=True, kw_only=True)
class Verifiers:
    """The stored forms of one password: a hash of argon2 for PLAIN, and verifiers for SCRAM."""

    password: str | None = None
    scram: Mapping[ScramHash, ScramVerifier] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FormerVerifiers:
    """The verifiers of the password before the last change, which enters `until` then."""

    until: datetime
    verifiers: Verifiers


@dataclass(frozen=True, kw_only=True)
class UserAccount:
    """A user of the users file.

    `mechanisms` are the only ones that the user may log in with; None if any will do. A session or
    a remembered password of another `credential_version` is not the user's any more.
    """

    name: str
    roles: tuple[str, ...] = ()
    enabled: bool = True
    mechanisms: tuple[str, ...] | None = None
    certificates: tuple[str, ...] = ()
    verifiers: Verifiers = Verifiers()
    previous: FormerVerifiers | None = None
    credential_version: int = 0
    changed_at: datetime | None = None

    @property
    def has_password(self) -> bool:
        """Whether the user has a password, hashed for PLAIN or SCRAM."""
        return self.verifiers.password is not None or len(self.verifiers.scram) > 0

    def may_use(self, mechanism: str) -> bool:
        """Return whether the user may log in with this SASL mechanism."""
        return self.enabled and (self.mechanisms is None or mechanism in self.mechanisms)

    def former(self, now: datetime) -> Verifiers | None:
        """Return the verifiers of the former password, None if it does not enter any more."""
        if self.previous is None or self.previous.until <= now:
            return None
        return self.previous.verifiers

    def changed(self, now: datetime) -> UserAccount:
        """Return the account with a new `credential_version`, as of `now`.

        The version is a time in ms: a user who is removed and added again gets a new one, too.
        """
        version = max(self.credential_version + 1, int(now.timestamp() * 1000))
        at = now.replace(microsecond=0)
        return replace(self, credential_version=version, changed_at=at)


def as_datetime(wall_ms: int) -> datetime:
    """Return the UTC time of milliseconds since 1970."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC)


def utc_text(time: datetime) -> str:
    """Return a time in UTC as RFC 3339 writes it, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class UserAttributes(TypedDict):
    """The attributes of an account that operators are shown.

    `password` says whether there is one, `scram` for which hashes it has verifiers. `mechanisms` is
    None if the user may log in with any. Times are UTC, as RFC 3339 writes them.
    """

    administrator: bool
    roles: Sequence[str]
    enabled: bool
    password: bool
    scram: Sequence[str]
    mechanisms: Sequence[str] | None
    certificates: Sequence[str]
    credential_version: int
    changed_at: str | None
    old_password_until: str | None


def user_attributes(account: UserAccount) -> UserAttributes:
    """Return what operators are shown of an account: neither hashes nor verifiers."""
    verifiers, previous = account.verifiers, account.previous
    return {
        "administrator": ADMIN_ROLE in account.roles,
        "roles": list(account.roles),
        "enabled": account.enabled,
        "password": verifiers.password is not None,
        "scram": [each.value for each in ScramHash if each in verifiers.scram],
        "mechanisms": None if account.mechanisms is None else list(account.mechanisms),
        "certificates": list(account.certificates),
        "credential_version": account.credential_version,
        "changed_at": None if account.changed_at is None else utc_text(account.changed_at),
        "old_password_until": None if previous is None else utc_text(previous.until),
    }


def refusal_of_name(name: str) -> str | None:
    """Return why `name` is not allowed for a user, or None."""
    if not name or name.startswith("#") or name != name.strip():
        return "a user's name is not empty, does not begin with #, and has no space around it"
    if ":" in name or not name.isprintable():  # surrogates are not printable either
        return "a user's name has no colon and no control characters"
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"a user's name has at most {NAME_BYTES_MAX} bytes"
    return None


def refusal_of_roles(roles: tuple[str, ...]) -> str | None:
    """Return why `roles` are not allowed for a user, or None."""
    if len(roles) > ROLES_MAX:
        return f"a user has at most {ROLES_MAX} roles"
    for role in roles:
        if ROLE.fullmatch(role) is None:
            return (
                f"{role!r:.{ROLE_CHARS_MAX}} is no role: a role has 1 to {ROLE_CHARS_MAX} letters,"
                " digits, and . _ - behind the first"
            )
    return None


def refusal_of_certificates(certificates: tuple[str, ...]) -> str | None:
    """Return why names of `certificates` are not allowed for a user, or None."""
    if len(certificates) > CERTIFICATES_MAX:
        return f"a user has at most {CERTIFICATES_MAX} certificates"
    for each in certificates:
        if not each or not each.isprintable() or len(each.encode()) > CERTIFICATE_BYTES_MAX:
            return (
                f"the name in a certificate has 1 to {CERTIFICATE_BYTES_MAX} bytes without control"
                " characters"
            )
    return None


def refusal_of_mechanisms(mechanisms: tuple[str, ...]) -> str | None:
    """Return why a user may not be restricted to `mechanisms`, or None."""
    for each in mechanisms:
        if each not in MECHANISMS:
            return f"{each!r:.50} is no mechanism for users; known: {', '.join(MECHANISMS)}"
    return None


def roles_after(
    before: UserAccount | None, roles: Sequence[str] | None, *, administrator: bool | None
) -> tuple[str, ...]:
    """Return the roles of a user that is added or changed, as `Users.add` says."""
    if before is not None and roles is None and administrator is None:
        return before.roles
    given = roles if roles is not None else () if before is None else before.roles
    chosen = dict.fromkeys(given)
    if administrator is True:
        chosen[ADMIN_ROLE] = None
    if administrator is False:
        chosen.pop(ADMIN_ROLE, None)
    return tuple(chosen) or (APPLICATION_ROLE,)
