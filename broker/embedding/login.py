"""Logins to an embedded broker: the users and passwords that its creator has given."""

from collections.abc import Mapping
from typing import Final, final

from broker.amqp.errors import Fault
from broker.amqp.sasl import PLAIN, plain_credentials
from broker.links.authenticator import Authenticator, Exchange
from broker.links.peer import Peer
from broker.security.account import refusal_of_name
from broker.security.entrance import Entrance
from broker.security.identity import ADMIN, Identity
from broker.security.passwords import refusal_of_password


@final
class GivenUsers(Authenticator):
    """Checks passwords kept in clear text: hashing would slow down tests, which log in often.

    Raises ValueError for an invalid name or password, TypeError for one that is no text. Every user
    is an administrator.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        for name, password in passwords.items():
            if not all(isinstance(text, str) for text in (name, password)):
                raise TypeError(f"users are passwords by name, both texts: {name!r} has no text")
            refusal = refusal_of_name(name) or refusal_of_password(password)
            if refusal is not None:
                raise ValueError(f"user {name!r}: {refusal}")
        self._passwords: Final = dict(passwords)

    def begin(self, entrance: Entrance) -> Exchange:  # noqa: ARG002 - any entrance will do
        return GivenUsersExchange(self)

    async def identify(self, user: str, password: str, entrance: Entrance) -> Identity | None:  # noqa: ARG002
        return identity_of(user) if self._passwords.get(user) == password else None

    def current(self, identity: Identity) -> Identity | None:
        return identity

    def refusal(self, mechanism: str, response: bytes) -> str | None:
        """Return why a client may not enter, None if it may."""
        if mechanism != PLAIN:
            return f"mechanism {mechanism} is not offered"
        try:
            credentials = plain_credentials(response)
        except Fault as fault:
            return str(fault)
        if self._passwords.get(credentials.user) != credentials.password:
            return f"user {credentials.user!r}: unknown, or the password is wrong"
        if credentials.authorization not in ("", credentials.user):
            return f"user {credentials.user!r} may not act for another"
        return None


@final
class GivenUsersExchange(Exchange):
    """The login of one connection, by PLAIN."""

    def __init__(self, users: GivenUsers) -> None:
        self._users: Final = users

    def mechanisms(self) -> list[str]:
        return [PLAIN]

    def anonymous(self) -> Identity | None:
        return None

    def start(self, peer: Peer, mechanism: str, response: bytes | None) -> None:
        response = response or b""
        refusal = self._users.refusal(mechanism, response)
        if refusal is not None:
            peer.rejected(refusal)
        else:
            peer.authenticated(identity_of(plain_credentials(response).user))


def identity_of(user: str) -> Identity:
    """Return the identity of a user of an embedded broker."""
    return Identity(user, roles=frozenset({ADMIN}), mechanism=PLAIN)
