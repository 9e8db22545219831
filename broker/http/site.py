"""The parts that the handlers of all paths share, and the admission of clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from broker.http.access import Access, Visitor
from broker.http.connection import CONNECTION, HttpConnection
from broker.http.loop_lag import LoopLag
from broker.http.open_streams import OpenStreams
from broker.http.streams import Streams
from broker.http_settings import HttpSettings
from broker.links.container import Container
from broker.management.executor import Executor
from broker.management.later import SpawnedTasks
from broker.management.request import BUSY, Refused
from broker.security.authenticate import is_loopback
from storage.api import Store

Work = Callable[[Request, Visitor], Awaitable[Response]]
"""A handler of requests whose client has been admitted; it checks the rights."""

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Site:
    """The parts of one HTTP server.

    `obstacles` returns the reasons for which the broker does not serve clients now, none if it
    does; `has_started` whether its start is complete.
    """

    settings: HttpSettings
    container: Container
    store: Store
    executor: Executor
    access: Access
    tasks: SpawnedTasks
    streams: Streams
    event_streams: OpenStreams
    loop_lag: LoopLag
    obstacles: Callable[[], list[str]]
    has_started: Callable[[], bool]

    def has_console(self) -> bool:
        """Return whether the console is on; if unset, it is if only this machine reaches it."""
        if self.settings.console is not None:
            return self.settings.console
        return is_loopback(self.settings.host)

    def guarded(self, work: Work) -> Handler:
        """Return a handler that admits the client, and then calls `work`; else raises Refused."""

        async def answer(request: Request) -> Response:
            headers = request.headers
            connection: HttpConnection = request.scope["state"][CONNECTION]
            visitor = await self.access.check(
                headers.get("authorization"), headers.get("host", ""), connection.entrance
            )
            if self.container.closing:
                raise Refused(BUSY, "the broker is stopping")
            return await work(request, visitor)

        return answer
