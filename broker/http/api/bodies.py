"""Bodies of requests: they are read up to a limit of bytes and time, and checked by their model."""

from __future__ import annotations

import asyncio
from typing import Final

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from broker.http.api.problems import (
    TIMEOUT,
    TOO_LARGE,
    UNPROCESSABLE,
    UNSUPPORTED,
    Failure,
    FieldProblem,
)
from broker.http.limits import API_BODY_BYTES_MAX, API_BODY_MAX_S
from broker.management.request import BAD_REQUEST

JSON: Final = "application/json"

EMPTY: Final = b"{}"

ERRORS_MAX: Final = 20
"""Maximum fields that a response names."""

NO_JSON: Final = "json_invalid"


async def read_bytes(request: Request, *, is_needed: bool) -> bytes:
    """Return the body of a request, which is JSON; Failure if it is not, or is too long or late.

    A body that is empty and not needed is an empty object.
    """
    headers = request.headers
    length = headers.get("content-length", "0")
    if length.isdigit() and int(length) > API_BODY_BYTES_MAX:
        raise _too_large()
    is_empty = length == "0" and "transfer-encoding" not in headers
    if is_empty and not is_needed:
        return EMPTY
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Failure(UNSUPPORTED, f"the body must be JSON: content-type {JSON}")
    try:
        async with asyncio.timeout(API_BODY_MAX_S):
            return await _gathered(request)
    except TimeoutError:
        raise Failure(TIMEOUT, f"the body must arrive within {API_BODY_MAX_S} s") from None


async def _gathered(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > API_BODY_BYTES_MAX:
            raise _too_large()
    return bytes(body)


def _too_large() -> Failure:
    return Failure(TOO_LARGE, f"a body has at most {API_BODY_BYTES_MAX} bytes")


def parsed(body: bytes, model: type[BaseModel]) -> BaseModel:
    """Return the body as a model; Failure, with what is wrong with each field, if it is none."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    if any(each["type"] == NO_JSON for each in found):
        raise Failure(BAD_REQUEST, f"the body: {found[0]['msg']}")
    problems = [
        FieldProblem(pointer=_pointer(each["loc"]), detail=each["msg"])
        for each in found[:ERRORS_MAX]
    ]
    raise Failure(UNPROCESSABLE, "the body is not as it must be: see errors", errors=problems)


def _pointer(path: tuple[int | str, ...]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(each).replace('~', '~0').replace('/', '~1')}" for each in path)
