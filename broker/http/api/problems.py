"""Problems: the responses to requests that fail, as RFC 9457 has them."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from pydantic import BaseModel, Field
from starlette.responses import Response as HttpResponse

from broker.amqp.errors import (
    INVALID_FIELD,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    RESOURCE_LIMIT_EXCEEDED,
    UNAUTHORIZED_ACCESS,
)
from broker.http.access import CHALLENGE, UNAUTHORIZED
from broker.management.request import Refused
from broker.management.response import Response

MEDIA_TYPE: Final = "application/problem+json"

TYPE: Final = "urn:jms-broker:problem:"
INSTANCE: Final = "urn:jms-broker:request:"

TOO_MANY: Final = 429
UNAVAILABLE: Final = 503
UNPROCESSABLE: Final = 422
TOO_LARGE: Final = 413
UNSUPPORTED: Final = 415
METHOD_NOT_ALLOWED: Final = 405
TIMEOUT: Final = 408

RETRY_AFTER_S: Final = 1
"""Seconds after which a client may send a request again that the broker had no room for."""

SLUGS: Final = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "timeout",
    409: "conflict",
    410: "gone",
    412: "precondition-failed",
    413: "too-large",
    415: "unsupported-media-type",
    422: "invalid",
    429: "too-many-requests",
    500: "internal",
    501: "not-implemented",
    503: "unavailable",
}
"""The end of the type of a problem, by its status: there are no other statuses."""

CONDITIONS: Final = {
    400: INVALID_FIELD,
    401: UNAUTHORIZED_ACCESS,
    403: UNAUTHORIZED_ACCESS,
    404: NOT_FOUND,
    412: PRECONDITION_FAILED,
    422: INVALID_FIELD,
    429: RESOURCE_LIMIT_EXCEEDED,
    501: NOT_IMPLEMENTED,
    503: RESOURCE_LIMIT_EXCEEDED,
}
"""AMQP error conditions by status, for failures that have none of their own."""


class FieldProblem(BaseModel):
    """One field of a body that is wrong."""

    pointer: str = Field(description="JSON pointer to the field, empty for the whole body")
    detail: str


class Problem(BaseModel):
    """A request that failed."""

    type: str = Field(description=f"`{TYPE}` and a word for the status")
    title: str
    status: int
    detail: str
    instance: str = Field(description=f"`{INSTANCE}` and the id of the request")
    condition: str | None = Field(default=None, description="an AMQP error condition")
    errors: list[FieldProblem] | None = None


class Failure(Refused):
    """A request that fails, with more than status and text."""

    def __init__(
        self,
        status: int,
        description: str,
        *,
        condition: str = "",
        errors: Sequence[FieldProblem] = (),
    ) -> None:
        super().__init__(status, description)
        self.condition: Final = condition
        self.errors: Final = list(errors)


def failure_of(response: Response) -> Failure:
    """Return the failure that a response of management reports."""
    return Failure(response.status, response.description, condition=response.condition)


def problem_of(refused: Refused, request_id: str) -> HttpResponse:
    """Return the response to a request that is refused."""
    status = refused.status if refused.status in SLUGS else 500
    own = refused.condition if isinstance(refused, Failure) else ""
    problem = Problem(
        type=TYPE + SLUGS[status],
        title=HTTPStatus(status).phrase,
        status=status,
        detail=str(refused),
        instance=INSTANCE + request_id,
        condition=own or CONDITIONS.get(status),
        errors=(refused.errors or None) if isinstance(refused, Failure) else None,
    )
    headers = dict(CHALLENGE) if status == UNAUTHORIZED else {}
    if status in (TOO_MANY, UNAVAILABLE):
        headers["retry-after"] = str(RETRY_AFTER_S)
    return HttpResponse(
        problem.model_dump_json(exclude_none=True),
        status_code=status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )
