"""Access control: the users of AMQP by Basic authentication, administrators only."""

from __future__ import annotations

from base64 import b64decode
from typing import Final, final
from urllib.parse import urlsplit

from broker.amqp.sasl import ANONYMOUS
from broker.links.container import Authenticator
from broker.management.request import BUSY, FORBIDDEN, Refused
from broker.security.authenticate import is_loopback
from broker.security.turns import TooManyLogins

UNAUTHORIZED: Final = 401

CHALLENGE: Final = {"www-authenticate": 'Basic realm="jms-broker", charset="UTF-8"'}
"""The headers of a 401 response (RFC 7617)."""


@final
class Access:
    """Admits administrators. Without a password, only programs on this machine can be one."""

    def __init__(self, authenticator: Authenticator, *, is_local: bool) -> None:
        """`is_local`: other machines cannot reach this server."""
        self._authenticator: Final = authenticator
        self._is_local: Final = is_local

    async def check(self, authorization: str | None, host: str, *, peer: str) -> None:
        """Raise Refused unless these header values admit the client at address `peer`."""
        user = await self._user(authorization, peer)
        may = self._authenticator.is_administrator(user)
        if not may or (user == "" and not self._is_local):
            raise Refused(FORBIDDEN, "only an administrator may read this")
        if user == "" and not is_of_this_machine(host):
            raise Refused(FORBIDDEN, "without a password, ask by the name localhost or an address")

    async def _user(self, authorization: str | None, peer: str) -> str:
        """Return the authenticated user, empty for an anonymous client; else raise Refused."""
        if authorization is None:
            if ANONYMOUS in self._authenticator.mechanisms():
                return ""
            raise Refused(UNAUTHORIZED, "a name and a password are needed: Basic authentication")
        name, password = credentials_in(authorization)
        try:
            known = await self._authenticator.knows(name, password, host=peer)
        except TooManyLogins as error:
            raise Refused(BUSY, str(error)) from None
        if not known:
            raise Refused(UNAUTHORIZED, "the user is unknown, or the password is wrong")
        return name


def is_of_this_machine(host: str) -> bool:
    """Return whether the header `Host` is `localhost` or a loopback address.

    A web page can make a domain name of its own resolve to this machine. Requests that it sends
    from a browser on this machine have that name in `Host`, and would be admitted otherwise.
    """
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def credentials_in(authorization: str) -> tuple[str, str]:
    """Return name and password of a Basic `Authorization`; Refused if it is not a valid one."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError(scheme)
        name, separator, password = b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        separator = name = password = ""
    if not separator or not name:
        raise Refused(UNAUTHORIZED, "this Authorization is not Basic, or has no name and password")
    return name, password
