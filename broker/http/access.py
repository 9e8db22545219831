"""Access control: the users of AMQP, by Basic authentication or a client certificate.

They have the rights that they have over AMQP.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable
from typing import Final, final
from urllib.parse import urlsplit

from broker.audit.record import DONE, FAILED, REFUSED, Actor, AuditEvent
from broker.audit.record import HTTP as VIA_HTTP
from broker.links.container import Container
from broker.log_events import PASSWORD_IN_CLEAR
from broker.management.auditing import actor_at, denied
from broker.management.entity import Caller
from broker.management.request import BUSY, FORBIDDEN, Refused
from broker.security.authenticate import is_loopback
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.resources import Resource
from broker.security.turns import TooManyLogins
from broker.stats import LOGIN_FAILED, LOGIN_OK, LOGIN_UNDECIDED

UNAUTHORIZED: Final = 401

FORM: Final = "Form"
"""The mechanism of a login to the console, in audit records and metrics."""

IN_CLEAR: Final = (
    "a password would cross the network readable: use https (setting http.tls), or ask from the"
    ' broker\'s machine; plain = "always" takes it all the same'
)
"""The reason of a 403 response to a client that may not send a password."""

NOTICE_EVERY_MS: Final = 60_000
"""Minimum milliseconds between two notices about passwords that were refused for IN_CLEAR."""

LOGIN_RESULT: Final = {DONE: LOGIN_OK, FAILED: LOGIN_FAILED, REFUSED: LOGIN_UNDECIDED}

CHALLENGE: Final = {"www-authenticate": 'Basic realm="jms-broker", charset="UTF-8"'}
"""The headers of a 401 response (RFC 7617)."""


@final
class Visitor:
    """The client of one request."""

    def __init__(self, container: Container, identity: Identity, entrance: Entrance) -> None:
        self.identity: Final = identity
        self.entrance: Final = entrance
        self._container: Final = container

    @property
    def user(self) -> str:
        """The name of the user, empty for a client without a login."""
        return self.identity.user

    def now(self) -> Visitor | None:
        """Return the client with the roles of its user by now; None if its login has ended."""
        current = self._container.authenticator.current(self.identity)
        return None if current is None else Visitor(self._container, current, self.entrance)

    def caller(self, request_id: str) -> Caller:
        """Return the client as the sender of a request to management."""
        return Caller(
            identity=self.identity,
            address=self.entrance.address,
            may=self._decide,
            via=VIA_HTTP,
            request_id=request_id,
        )

    def may(self, verb: str, resource: Resource) -> bool:
        """Return whether the client may do that."""
        return self._decide(verb, resource).allowed

    def _decide(self, verb: str, resource: Resource) -> Decision:
        return self._container.decide(self.identity, verb, resource, entrance=self.entrance)

    def demand(self, verb: str, resource: Resource) -> None:
        """Raise Refused unless the client may do that."""
        decision = self._decide(verb, resource)
        if not decision.allowed:
            self._container.stats.denied(resource.kind, verb)
            actor = actor_at(self.identity, self.entrance)
            self._container.audit.record(denied(actor, verb, resource, decision=decision))
            raise Refused(FORBIDDEN, decision.text(verb, resource))


@final
class Access:
    """Admits users. Without a login, only programs on this machine are admitted."""

    def __init__(self, container: Container, *, is_local: bool) -> None:
        """`is_local`: other machines cannot reach this server."""
        self._container: Final = container
        self._authenticator: Final = container.authenticator
        self._is_local: Final = is_local
        self._next_notice_ms = 0

    async def check(self, authorization: str | None, host: str, entrance: Entrance) -> Visitor:
        """Return the client with these header values; raise Refused if it has no access."""
        identity = await self._identity(authorization, entrance)
        if identity.user == "" and not self._is_local:
            raise Refused(FORBIDDEN, "without a password, only clients on this machine read this")
        if identity.user == "" and not is_of_this_machine(host):
            raise Refused(FORBIDDEN, "without a password, ask by the name localhost or an address")
        return Visitor(self._container, identity, entrance)

    async def _identity(self, authorization: str | None, entrance: Entrance) -> Identity:
        login = self._authenticator
        if authorization is None:
            known = login.identify_by_certificate(entrance) or login.begin(entrance).anonymous()
            if known is not None:
                return known
            if not login.takes_passwords(entrance):
                raise Refused(FORBIDDEN, IN_CLEAR)
            raise Refused(UNAUTHORIZED, "a name and a password are needed: Basic authentication")
        if not login.takes_passwords(entrance):
            self._note_clear_password(entrance)
            raise Refused(FORBIDDEN, IN_CLEAR)
        token = token_in(authorization)
        if token is None:
            name, password = credentials_in(authorization)
            decision = login.identify(name, password, entrance)
            return await self._checked("Basic", decision, name=name, entrance=entrance)
        decision = login.identify_by_token(token, entrance)
        return await self._checked("Bearer", decision, name="", entrance=entrance)

    async def log_in(self, name: str, password: str, *, host: str, entrance: Entrance) -> Visitor:
        """Return the client that gave a name and a password in a form; Refused if one is wrong."""
        if not name or not self._authenticator.takes_passwords(entrance):
            return await self.check(None, host, entrance)
        decision = self._authenticator.identify(name, password, entrance)
        identity = await self._checked(FORM, decision, name=name, entrance=entrance)
        return Visitor(self._container, identity, entrance)

    def again(self, identity: Identity, entrance: Entrance) -> Visitor | None:
        """Return the client of an earlier login; None if that is no longer valid."""
        current = self._authenticator.current(identity)
        return None if current is None else Visitor(self._container, current, entrance)

    async def _checked(
        self, scheme: str, decision: Awaitable[Identity | None], *, name: str, entrance: Entrance
    ) -> Identity:
        """Return the result of a login, and have it recorded; raise Refused if it failed."""
        try:
            identity = await decision
        except TooManyLogins as error:
            self._record("auth.throttled", name, entrance, scheme=scheme, result=REFUSED)
            raise Refused(BUSY, str(error)) from None
        if identity is None:
            self._record("auth.failure", name, entrance, scheme=scheme, result=FAILED)
            self._container.stats.authentication_failures += 1
            wrong = "the token is not taken" if scheme == "Bearer" else "the password is wrong"
            raise Refused(UNAUTHORIZED, f"the user is unknown, or {wrong}")
        known = actor_at(identity, entrance)
        self._record(
            "auth.success", identity.user, entrance, scheme=scheme, result=DONE, known=known
        )
        return identity

    def _note_clear_password(self, entrance: Entrance) -> None:
        """Count a password that others could have read, and tell the operator now and then."""
        container = self._container
        container.stats.authentication_failures += 1
        now_ms = int(container.clock.now_ms())
        if now_ms >= self._next_notice_ms:
            self._next_notice_ms = now_ms + NOTICE_EVERY_MS
            text = (
                f"HTTP: the password of a client at {entrance.host} was refused, because others"
                ' could have read it: set http.tls = true, or plain = "always"'
            )
            container.watcher.noticed(PASSWORD_IN_CLEAR.notice(text))

    def _record(
        self,
        action: str,
        user: str,
        entrance: Entrance,
        *,
        scheme: str,
        result: str,
        known: Actor | None = None,
    ) -> None:
        """Record a login; one of each user and address in a minute, for each request is one.

        `known` is the client that is admitted.
        """
        self._container.stats.by.logins.add(scheme, LOGIN_RESULT[result])
        facts = {"mechanism": scheme, "listener": entrance.listener}
        if result == FAILED and self._authenticator.is_disabled(user):
            facts["reason"] = f"user {user!r} is disabled"
        self._container.audit.record(
            AuditEvent(
                action=action,
                resource=f"user:{user}",
                actor=known or Actor(via=VIA_HTTP, address=entrance.address),
                result=result,
                after=facts,
                repeat_key=(action, user, entrance.host),
            )
        )


def is_of_this_machine(host: str) -> bool:
    """Return whether the header `Host` is `localhost` or a loopback address.

    A web page can make a domain name of its own resolve to this machine. Requests that it sends
    from a browser on this machine have that name in `Host`, and would be admitted otherwise.
    """
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def token_in(authorization: str) -> str | None:
    """Return the token of a Bearer `Authorization` (RFC 6750 2.1), None if it is not one."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


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
