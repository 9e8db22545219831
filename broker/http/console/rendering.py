"""Pages in HTML, by jinja2. Every value is escaped, and no page has a script in its text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, final

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from broker import __version__
from broker.http.console.entry import FIELD, Guest, entrance_of, set_cookie
from broker.http.console.values import address_of, form_of, shown

FOLDER: Final = Path(__file__).resolve().parent

STATIC: Final[Mapping[str, str]] = {
    "console.css": "text/css",
    "live.js": "text/javascript",
    "renew.js": "text/javascript",
}
"""The files that pages use, and their media types."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)

HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # with no-referrer, browsers would send forms with the origin `null`
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every response."""

TRANSPORT_SECURITY: Final = "max-age=31536000"
"""The header Strict-Transport-Security of responses over TLS, for a year."""

NAVIGATION: Final = (
    ("", (("/", "Overview"), ("/topology", "Topology"))),
    (
        "Messages",
        (
            ("/queues", "Queues"),
            ("/topics", "Topics"),
            ("/subscriptions", "Subscriptions"),
            ("/scheduled", "Scheduled"),
            ("/dead-letters", "Dead letters"),
            ("/jobs", "Actions"),
            ("/quarantined-messages", "Quarantined"),
        ),
    ),
    (
        "Clients",
        (
            ("/connections", "Connections"),
            ("/links", "Links"),
            ("/transactions", "Transactions"),
            ("/leases", "Leases"),
            ("/sinks", "Sinks"),
            ("/bridges", "Bridges"),
        ),
    ),
    (
        "Access",
        (
            ("/users", "Users"),
            ("/tokens", "API tokens"),
            ("/logins", "Failed logins"),
            ("/roles", "Roles"),
            ("/rules", "Rules"),
            ("/explain", "Explain"),
        ),
    ),
    (
        "Broker",
        (("/config", "Settings"), ("/audit", "Audit"), ("/pipeline-audit", "Pipeline audit")),
    ),
)
"""The groups of links that every page has, and the links of each: path and text."""


@final
class PageTemplates:
    """Renders pages by their templates."""

    def __init__(self) -> None:
        self.environment: Final = jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.environment.globals.update(
            address_of=address_of, navigation=NAVIGATION, version=__version__, field=FIELD
        )
        self.environment.filters.update(shown=shown, form_of=form_of)

    def text(self, template: str, /, **values: object) -> str:
        """Return a page as text."""
        return self.environment.get_template(f"{template}.html").render(**values)

    def response(
        self,
        request: Request,
        template: str,
        guest: Guest | None,
        /,
        *,
        status: int = 200,
        **values: object,
    ) -> Response:
        """Return a page for a client, `guest` is None before the login."""
        session = None if guest is None else guest.session
        page = self.text(
            template,
            user="" if guest is None else guest.visitor.user,
            has_session=session is not None,
            token="" if session is None else session.token,
            notice="" if session is None else session.take_notice(),
            path=request.url.path.removeprefix("/console") or "/",
            **values,
        )
        return with_cookie(request, HTMLResponse(page, status_code=status), guest)


def with_cookie(request: Request, response: Response, guest: Guest | None) -> Response:
    """Return a response, which gives the browser the cookie of a session that has begun."""
    if guest is not None and guest.key:
        set_cookie(request, response, guest.key)
    return response


def headers_for(request: Request) -> Mapping[str, str]:
    """Return the headers of the response to a request."""
    if entrance_of(request).is_tls:
        return {**HEADERS, "strict-transport-security": TRANSPORT_SECURITY}
    return HEADERS
