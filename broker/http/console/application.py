"""The console: its routes, and how a request becomes a page, a redirection or an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, cast, final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.http.api.endpoint import Endpoint
from broker.http.application import STATUS
from broker.http.connection import CONNECTION, HttpConnection
from broker.http.console.changes import SEE_OTHER, Changes, to
from broker.http.console.entry import (
    REASONS,
    ConsoleEntry,
    Guest,
    LoginNeeded,
    key_of,
    set_cookie,
)
from broker.http.console.forms import Form, read_form
from broker.http.console.reader import EndpointReader
from broker.http.console.reading import ReadingPages
from broker.http.console.rendering import FOLDER, STATIC, PageTemplates, headers_for, with_cookie
from broker.http.console.sampling import Sampler
from broker.http.site import Handler, Site
from broker.management.request import BAD_REQUEST, BUSY, FAILED, NOT_FOUND, Refused
from broker.routing.errors import RoutingError
from storage.api import StoreError

ROOT: Final = "/console"

LOGIN: Final = f"{ROOT}/login"

Page = Callable[[Request, Guest], Awaitable[Response]]
Change = Callable[[Request, Guest, Form], Awaitable[Response]]


def console_routes(site: Site, known: Sequence[Endpoint]) -> list[BaseRoute]:
    """Return the routes of the console, which uses these endpoints of the API."""
    console = Console(site, known)
    return [
        Route(ROOT, _to_overview),
        Mount(ROOT, WithHeaders(console.application())),
    ]


async def _to_overview(request: Request) -> Response:  # noqa: ARG001 - as starlette calls it
    return to(f"{ROOT}/")


@final
class WithHeaders:
    """ASGI middleware that gives each response the headers of the console."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner: Final = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers_for(Request(scope)))
            await send(message)

        await self._inner(scope, receive, send_with_headers)


@final
class Console:
    """The handlers of the console. `entry` has its sessions, `pages` its templates."""

    def __init__(self, site: Site, known: Sequence[Endpoint]) -> None:
        self._site: Final = site
        self.entry: Final = ConsoleEntry(site)
        self.pages: Final = PageTemplates()
        self._sampler: Final = Sampler(site.container)
        reader = EndpointReader(site, known)
        self._reading: Final = ReadingPages(site, reader, pages=self.pages, sampler=self._sampler)
        self._changes: Final = Changes(reader, self.pages)

    def application(self) -> Starlette:
        """Return the application, whose responses to errors are pages."""
        found = Starlette(
            routes=self._routes(),
            exception_handlers={
                LoginNeeded: self._to_login,
                Refused: self._refused,
                RoutingError: self._refused,
                StoreError: self._unable,
                ClientDisconnect: self._unable,
                HTTPException: self._unknown,
                Exception: self._failed,
            },
        )
        found.router.redirect_slashes = False
        return found

    def _routes(self) -> list[BaseRoute]:
        reading, changes = self._reading, self._changes
        return [
            Route("/static/{file}", self._static),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._form(self._logout), methods=["POST"]),
            Route("/", self._page(reading.overview)),
            Route("/live", self._page(reading.live)),
            Route("/live-events", self._page(reading.live_events)),
            Route("/topology", self._page(reading.topology)),
            Route("/messages", self._page(reading.messages)),
            Route("/messages/{id:int}", self._page(reading.message)),
            Route("/scheduled", self._page(reading.scheduled)),
            Route("/dead-letters", self._page(reading.dead_letters)),
            Route("/action", self._page(changes.ask_action)),
            Route("/action", self._form(changes.act), methods=["POST"]),
            Route("/config", self._page(reading.config)),
            Route("/config", self._form(changes.reload), methods=["POST"]),
            Route("/explain", self._page(reading.explain)),
            Route("/pipeline-audit", self._page(reading.pipeline_audit)),
            Route("/remove/{key}/{name:path}", self._page(changes.ask_removal)),
            Route("/remove/{key}/{name:path}", self._form(changes.remove), methods=["POST"]),
            Route("/tokens", self._form(changes.make_token), methods=["POST"]),
            Route("/{key}", self._page(reading.list)),
            Route("/{key}", self._form(changes.make), methods=["POST"]),
            Route("/{key}/{name:path}", self._page(reading.one)),
        ]

    # -- admission

    def _page(self, page: Page) -> Handler:
        """Return the handler of a page: it admits the client."""

        async def answer(request: Request) -> Response:
            guest = await self._admitted(request)
            return with_cookie(request, await page(request, guest), guest)

        return answer

    def _form(self, change: Change) -> Handler:
        """Return the handler of a form: it admits the client, and checks where the form is from."""

        async def answer(request: Request) -> Response:
            guest = await self._admitted(request)
            form = await read_form(request)
            self.entry.check(request, guest, form)
            return await change(request, guest, form)

        return answer

    async def _admitted(self, request: Request) -> Guest:
        self._sampler.wanted()
        if self._site.container.closing:
            raise Refused(BUSY, "the broker is stopping")
        return await self.entry.admit(request)

    async def _login(self, request: Request) -> Response:
        """Respond with the form of a login, or to one."""
        if request.method != "POST":
            return self._login_page(request, Form(request.query_params.multi_items()), "")
        form = await _read_login(request)
        try:
            guest = await self.entry.log_in(request, form)
        except Refused as refused:
            return self._login_page(request, form, str(refused), status=refused.status)
        response = to(_own_page(form.text("next")))
        set_cookie(request, response, guest.key)
        return response

    def _login_page(
        self, request: Request, form: Form, problem: str, *, status: int = 200
    ) -> Response:
        return self.pages.response(
            request,
            "login",
            None,
            status=status,
            title="Log in",
            problem=problem or REASONS.get(form.text("why"), ""),
            following=_own_page(form.text("next")),
        )

    async def _logout(self, request: Request, guest: Guest, form: Form) -> Response:  # noqa: ARG002
        """End the session."""
        self.entry.sessions.end(key_of(request))
        response = to(LOGIN)
        set_cookie(request, response, "")
        return response

    async def _static(self, request: Request) -> Response:
        file = request.path_params["file"]
        if file not in STATIC:
            raise HTTPException(NOT_FOUND)
        return FileResponse(FOLDER / "static" / file, media_type=STATIC[file])

    # -- errors

    async def _to_login(self, request: Request, error: Exception) -> Response:
        """Lead a client that has to log in to the login, and from there back."""
        if request.method != "GET":
            return self._login_page(request, Form([("why", str(error))]), "", status=401)
        page = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        query = urlencode([("next", page), ("why", str(error))])
        response = RedirectResponse(f"{LOGIN}?{query}", status_code=SEE_OTHER)
        if key_of(request):
            set_cookie(request, response, "")
        return response

    async def _refused(self, request: Request, error: Exception) -> Response:
        default = STATUS.get(type(error), BAD_REQUEST)
        status = error.status if isinstance(error, Refused) else default
        return await self._problem(request, status, str(error))

    async def _unable(self, request: Request, error: Exception) -> Response:
        return await self._problem(request, BUSY, str(error))

    async def _unknown(self, request: Request, error: Exception) -> Response:
        status = cast(HTTPException, error).status_code
        return await self._problem(request, status, "There is no such page.")

    async def _failed(self, request: Request, error: Exception) -> Response:  # noqa: ARG002
        return await self._problem(request, FAILED, "Internal error: the log of the broker has it.")

    async def _problem(self, request: Request, status: int, text: str) -> Response:
        """Return the page of an error, for a client that is admitted or not."""
        try:
            guest: Guest | None = await self.entry.admit(request)
        except (LoginNeeded, Refused):
            guest = None
        return self.pages.response(
            request, "problem", guest, status=status, title=f"Error {status}", problem=text
        )


async def _read_login(request: Request) -> Form:
    """Return the form of a login, whose client is not known yet: it keeps no others out."""
    connection: HttpConnection = request.scope["state"][CONNECTION]
    connection.gives_way = True
    try:
        return await read_form(request)
    finally:
        connection.gives_way = False


def _own_page(url: str) -> str:
    """Return a URL if it is a path of the console, else that of the first page."""
    is_own = url.startswith(f"{ROOT}/") and not any(
        each in url for each in ("\\", "\r", "\n", "//")
    )
    return url if is_own else f"{ROOT}/"
