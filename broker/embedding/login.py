"""Logins to an embedded broker: the users and passwords that its creator has given."""

from collections.abc import Mapping
from typing import Final, final

from broker.amqp.errors import Fault
from broker.amqp.sasl import PLAIN, plain_credentials
from broker.links.container import Authenticator
from broker.links.peer import Peer
from broker.security.authenticate import refusal_of_name, refusal_of_password


@final
class GivenUsers(Authenticator):
    """Checks passwords kept in clear text: hashing would slow down tests, which log in often.

    Raises ValueError for an invalid name or password. Every user is an administrator.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        for name, password in passwords.items():
            refusal = refusal_of_name(name) or refusal_of_password(password)
            if refusal is not None:
                raise ValueError(f"user {name!r}: {refusal}")
        self._passwords: Final = dict(passwords)

    def mechanisms(self) -> list[str]:
        return [PLAIN]

    def requires_sasl(self) -> bool:
        return True

    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:
        refusal = self._refusal(mechanism, response)
        if refusal is not None:
            peer.rejected(refusal)
        else:
            peer.authenticated(plain_credentials(response).user)

    async def knows(self, user: str, password: str, *, host: str) -> bool:  # noqa: ARG002
        return self._passwords.get(user) == password

    def is_administrator(self, user: str) -> bool:  # noqa: ARG002 - a test may manage its broker
        return True

    def _refusal(self, mechanism: str, response: bytes) -> str | None:
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
