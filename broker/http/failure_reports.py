"""Reports requests that failed because of a fault of the broker: uvicorn's own log is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.http.connection import CONNECTION
from broker.http.streams import BrokenOff, ReportedFailure
from broker.links.container import Container
from broker.management.request import Refused
from broker.routing.errors import RoutingError
from storage.api import StoreError

if TYPE_CHECKING:
    from broker.http.connection import HttpConnection


EXPECTED: Final = (
    ClientDisconnect,
    ReportedFailure,
    Refused,
    RoutingError,
    StoreError,
    BrokenOff,
)
"""Errors that are no faults. Of one that is raised in the middle of a response, starlette makes a
RuntimeError, whose cause it is."""


class FailureReports:
    """ASGI middleware that tells the operator of each exception that `inner` does not handle."""

    def __init__(self, inner: ASGIApp, container: Container) -> None:
        self._inner: Final = inner
        self._container: Final = container

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._inner(scope, receive, send)
        except Exception as error:
            if not isinstance(error, EXPECTED) and not isinstance(error.__cause__, EXPECTED):
                connection: HttpConnection = scope["state"][CONNECTION]
                container = self._container
                container.watcher.request_failed(container, connection.entrance, error)
            raise  # so that the connection ends
