"""Reports requests that failed because of a fault of the broker: uvicorn's own log is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.http.connection import CONNECTION
from broker.http.streams import ReportedFailure
from broker.links.container import Container

if TYPE_CHECKING:
    from broker.http.connection import HttpConnection


class FailureReports:
    """ASGI middleware that tells the operator of each exception that `inner` does not handle."""

    def __init__(self, inner: ASGIApp, container: Container) -> None:
        self._inner: Final = inner
        self._container: Final = container

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._inner(scope, receive, send)
        except (ClientDisconnect, ReportedFailure):
            raise
        except Exception as error:
            connection: HttpConnection = scope["state"][CONNECTION]
            container = self._container
            container.watcher.request_failed(container, connection.entrance, error)
            raise  # so that the connection ends
