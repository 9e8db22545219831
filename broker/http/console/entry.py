"""Admission to the console: a session by its cookie, a login, or a client that needs none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from starlette.requests import Request
from starlette.responses import Response

from broker.http.access import UNAUTHORIZED, Visitor
from broker.http.connection import CONNECTION, HttpConnection
from broker.http.console.forms import Form
from broker.http.console.sessions import BrowserSession, Sessions
from broker.http.origin import foreign_page
from broker.http.site import Site
from broker.management.request import FORBIDDEN, Refused
from broker.security.entrance import Entrance

SECURE_COOKIE: Final = "__Host-jms-broker"
"""The cookie over TLS. Browsers take this name only with Secure, for one host, and path /."""

PLAIN_COOKIE: Final = "jms-broker-console"
"""The cookie over plain HTTP."""

FIELD: Final = "token"
"""The field of each form that has the token of its session."""


@final
@dataclass(frozen=True, kw_only=True)
class Guest:
    """The client of a request that was admitted, and its session.

    `key` is that of a session which has just begun, so that the browser gets its cookie; else
    empty.
    """

    visitor: Visitor
    session: BrowserSession
    key: str = ""


REASONS: Final = {"ended": "The login is no longer valid."}
"""Why a client has to log in, by the code in the URL of the login page.

The page shows no text of its URL: a link could have anything there, above the field of a password.
"""


class LoginNeeded(Exception):  # noqa: N818 - named like the errors of routing
    """A request whose client has to log in. The message is a code of REASONS, or empty."""


@final
class ConsoleEntry:
    """Admits the clients of the console."""

    def __init__(self, site: Site) -> None:
        self._site: Final = site
        self.sessions: Final = Sessions(lambda: int(site.container.clock.now_ms()))

    async def admit(self, request: Request) -> Guest:
        """Return the client of a request.

        Raise LoginNeeded if it has no session and needs one, Refused if it may not enter at all.
        """
        entrance = entrance_of(request)
        session = self.sessions.find(key_of(request))
        if session is not None and session.identity.user:
            visitor = self._site.access.again(session.identity, entrance)
            if visitor is None:
                self.sessions.end(key_of(request))
                raise LoginNeeded("ended")
            return Guest(visitor=visitor, session=session)
        # a client that needs no login is asked anew each time, as it may need one by now
        visitor = await self._without_login(request, entrance)
        if session is not None:
            return Guest(visitor=visitor, session=session)
        key, session = self.sessions.begin(visitor.identity)
        return Guest(visitor=visitor, session=session, key=key)

    async def _without_login(self, request: Request, entrance: Entrance) -> Visitor:
        try:
            return await self._site.access.check(None, request.headers.get("host", ""), entrance)
        except Refused as refused:
            if refused.status == UNAUTHORIZED:
                raise LoginNeeded("") from None
            raise

    async def log_in(self, request: Request, form: Form) -> Guest:
        """Begin a session for the user and password of a form; Refused if one is wrong."""
        check_page(request)
        host = request.headers.get("host", "")
        visitor = await self._site.access.log_in(
            form.exact("user"), form.exact("password"), host=host, entrance=entrance_of(request)
        )
        self.sessions.end(key_of(request))
        key, session = self.sessions.begin(visitor.identity)
        return Guest(visitor=visitor, session=session, key=key)

    def check(self, request: Request, guest: Guest, form: Form) -> None:
        """Raise Refused unless a form was sent by a page of the client's session (CSRF)."""
        check_page(request)
        if guest.key or not guest.session.has_token(form.exact(FIELD)):
            raise Refused(FORBIDDEN, "this form is not of this session: open the page again")


def check_page(request: Request) -> None:
    """Raise Refused unless a browser says that a page of this broker sends the request."""
    headers = request.headers
    foreign = foreign_page(headers)
    if foreign or ("origin" not in headers and headers.get("sec-fetch-site") != "same-origin"):
        raise Refused(FORBIDDEN, "a page of another site made this request")


def entrance_of(request: Request) -> Entrance:
    """Return how the client of a request reached the broker."""
    connection: HttpConnection = request.scope["state"][CONNECTION]
    return connection.entrance


def key_of(request: Request) -> str:
    """Return the key of a session in the cookie of a request, empty if it has none."""
    name = SECURE_COOKIE if entrance_of(request).is_tls else PLAIN_COOKIE
    return request.cookies.get(name, "")


def set_cookie(request: Request, response: Response, key: str) -> None:
    """Give the browser the key of its session; an empty one takes it away."""
    is_tls = entrance_of(request).is_tls
    response.set_cookie(
        SECURE_COOKIE if is_tls else PLAIN_COOKIE,
        key,
        max_age=None if key else 0,
        path="/",
        secure=is_tls,
        httponly=True,
        samesite="strict",
    )
