"""The interface of a package that checks names and passwords, such as those of a directory.

A package names its class in its entry points of the group GROUP. The setting `authenticator`
chooses one by its name (docs/operations/users.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from broker.security.entrance import Entrance

GROUP: Final = "jms_broker.authenticators"


@dataclass(frozen=True)
class VerifiedUser:
    """A user whose password was right, with its roles."""

    user: str
    roles: Iterable[str] = ()


@runtime_checkable
class PackageAuthenticator(Protocol):
    """Checks the passwords of users that the users file does not have."""

    def authenticate(self, user: str, password: str, entrance: Entrance) -> VerifiedUser | None:
        """Return the user, perhaps by another spelling, and its roles; None to refuse the client.

        Called in threads, several at once. An exception means that it cannot be checked now, and
        the client may try again.
        """


@dataclass(frozen=True)
class NamedAuthenticator:
    """An authenticator, and the name of its entry point."""

    name: str
    authenticator: PackageAuthenticator
