"""Access control: the users of AMQP by Basic authentication, with the rights they have there."""

from __future__ import annotations

from base64 import b64decode
from typing import Final, final
from urllib.parse import urlsplit

from broker.links.container import Container
from broker.management.request import BUSY, FORBIDDEN, Refused
from broker.security.authenticate import is_loopback
from broker.security.decision import Decision
from broker.security.entrance import HTTP, Entrance
from broker.security.identity import Identity
from broker.security.resources import Resource
from broker.security.turns import TooManyLogins

UNAUTHORIZED: Final = 401

CHALLENGE: Final = {"www-authenticate": 'Basic realm="jms-broker", charset="UTF-8"'}
"""The headers of a 401 response (RFC 7617)."""


@final
class Visitor:
    """The client of one request."""

    def __init__(self, container: Container, identity: Identity, entrance: Entrance) -> None:
        self._container: Final = container
        self._identity: Final = identity
        self._entrance: Final = entrance

    def may(self, verb: str, resource: Resource) -> bool:
        """Return whether the client may do that."""
        return self._decide(verb, resource).allowed

    def _decide(self, verb: str, resource: Resource) -> Decision:
        return self._container.access.decide(
            self._identity, verb, resource, entrance=self._entrance
        )

    def demand(self, verb: str, resource: Resource) -> None:
        """Raise Refused unless the client may do that."""
        decision = self._decide(verb, resource)
        if not decision.allowed:
            self._container.stats.access_denied += 1
            raise Refused(FORBIDDEN, decision.text(verb, resource))


@final
class Access:
    """Admits users. Without a password, only programs on this machine are admitted."""

    def __init__(self, container: Container, *, is_local: bool) -> None:
        """`is_local`: other machines cannot reach this server."""
        self._container: Final = container
        self._authenticator: Final = container.authenticator
        self._is_local: Final = is_local

    async def check(self, authorization: str | None, host: str, *, peer: str) -> Visitor:
        """Return the client at address `peer` with these header values; Refused if it has none."""
        entrance = Entrance(listener=HTTP, kind=HTTP, host=peer)
        identity = await self._identity(authorization, entrance)
        if identity.user == "" and not self._is_local:
            raise Refused(FORBIDDEN, "without a password, only clients on this machine read this")
        if identity.user == "" and not is_of_this_machine(host):
            raise Refused(FORBIDDEN, "without a password, ask by the name localhost or an address")
        return Visitor(self._container, identity, entrance)

    async def _identity(self, authorization: str | None, entrance: Entrance) -> Identity:
        if authorization is None:
            anonymous = self._authenticator.begin(entrance).anonymous()
            if anonymous is not None:
                return anonymous
            raise Refused(UNAUTHORIZED, "a name and a password are needed: Basic authentication")
        name, password = credentials_in(authorization)
        try:
            identity = await self._authenticator.identify(name, password, entrance)
        except TooManyLogins as error:
            raise Refused(BUSY, str(error)) from None
        if identity is None:
            raise Refused(UNAUTHORIZED, "the user is unknown, or the password is wrong")
        return identity


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
