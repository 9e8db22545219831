"""The HTTP application: the size of a request's head, and the responses to errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.http.access import CHALLENGE, UNAUTHORIZED
from broker.http.streams import BrokenOff
from broker.management.request import BAD_REQUEST, BUSY, CONFLICT, FAILED, GONE, NOT_FOUND, Refused
from broker.routing.errors import (
    LeaseFenced,
    LeaseGone,
    NoSuchLeaseBatch,
    NoSuchNode,
    RoutingError,
)
from storage.api import StoreError

STATUS: Final[dict[type[Exception], int]] = {
    NoSuchNode: NOT_FOUND,
    NoSuchLeaseBatch: NOT_FOUND,
    LeaseFenced: CONFLICT,
    LeaseGone: GONE,
}
"""Status codes by error of routing. Any other error means a bad argument (400)."""


def application(routes: Sequence[BaseRoute]) -> Starlette:
    """Return the ASGI application. Its responses to errors are JSON, `{"error": why}`."""
    return Starlette(
        routes=routes,
        exception_handlers={
            Refused: _refused,
            RoutingError: _unwilling,
            StoreError: _unable,
            BrokenOff: _unable,
            HTTPException: _unknown,
            Exception: _failed,
        },
    )


class ShortHeads:
    """ASGI middleware that passes requests to `inner` if their head has at most `bytes_max` bytes.

    The connection limits only an incomplete head; a longer one that arrives at once passes there.
    """

    def __init__(self, inner: ASGIApp, bytes_max: int) -> None:
        self._inner: Final = inner
        self._bytes_max: Final = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        answer = self._inner
        if size > self._bytes_max:
            answer = error_response(
                BAD_REQUEST, f"the head of a request has at most {self._bytes_max} bytes"
            )
        await answer(scope, receive, send)


def error_response(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": reason}, status_code=status, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
    refused = cast(Refused, error)
    headers = CHALLENGE if refused.status == UNAUTHORIZED else None
    return error_response(refused.status, str(refused), headers)


async def _unwilling(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return error_response(STATUS.get(type(error), BAD_REQUEST), str(error))


async def _unable(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return error_response(BUSY, str(error))


async def _unknown(request: Request, error: Exception) -> Response:
    """Respond to an unknown path, or to a method that the path does not have."""
    status = cast(HTTPException, error).status_code
    told = f"{request.method} {request.url.path:.100} is not known here"
    return error_response(status, told, dict(cast(HTTPException, error).headers or {}))


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return error_response(FAILED, "internal error")
