"""Who asks, and whether he may: the users of AMQP by Basic authentication, administrators only."""

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
"""What a 401 says beside its reason (RFC 7617)."""


@final
class Access:
    """Lets in administrators. Without a password nobody but this machine's programs is one."""

    def __init__(self, authenticator: Authenticator, *, is_local: bool) -> None:
        """`is_local`: no other machine reaches us."""
        self._authenticator: Final = authenticator
        self._is_local: Final = is_local

    async def check(self, authorization: str | None, host: str, *, peer: str) -> None:
        """Refused where the headers of these values do not let their sender at `peer` in."""
        user = await self._user(authorization, peer)
        may = self._authenticator.is_administrator(user)
        if not may or (user == "" and not self._is_local):
            raise Refused(FORBIDDEN, "only an administrator may read this")
        if user == "" and not is_of_this_machine(host):
            raise Refused(FORBIDDEN, "without a password, ask by the name localhost or an address")

    async def _user(self, authorization: str | None, peer: str) -> str:
        """The name of who asks, empty for anybody."""
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
    """Whether a `Host` names this machine by itself.

    A page in somebody's browser may give a name of its own our address, and would be let in.
    """
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def credentials_in(authorization: str) -> tuple[str, str]:
    """Name and password of a Basic `Authorization`; Refused where it has none."""
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
