"""Errors of JMS over HTTP as responses: problem details (RFC 9457)."""

from __future__ import annotations

import json
from typing import Final
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.responses import Response

from broker.amqp.errors import LinkFault
from broker.http.access import CHALLENGE, UNAUTHORIZED
from broker.jms.errors import MappingError
from broker.links.posting import NoCredit
from broker.links.refusal import CONDITIONS
from broker.management.request import BAD_REQUEST, BUSY, CONFLICT, FORBIDDEN, NOT_FOUND, Refused
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    InvalidSelector,
    LimitReached,
    NoSuchNode,
    NotPermitted,
    QueueFull,
    RoutingError,
)
from storage.api import StoreError

PROBLEM: Final = "application/problem+json"
URN: Final = "urn:jms-broker:problem:"

TOO_LARGE: Final = 413
TOO_MANY: Final = 429
TIMED_OUT: Final = 408
NO_REPLY: Final = 504

RETRY: Final = {"retry-after": "1"}
"""The header of a response to a request that may succeed if it is sent again later."""

REFUSALS: Final[dict[type[RoutingError], tuple[int, str]]] = {
    NotPermitted: (FORBIDDEN, "not-permitted"),
    NoSuchNode: (NOT_FOUND, "not-found"),
    InvalidAddress: (BAD_REQUEST, "invalid-address"),
    InvalidSelector: (BAD_REQUEST, "invalid-selector"),
    HeldExclusively: (CONFLICT, "in-use"),
    QueueFull: (BUSY, "queue-full"),
    LimitReached: (TOO_MANY, "limit-reached"),
}
"""Statuses and kinds of problems, by the errors of routing that clients of JMS can cause."""

STATUSES: Final = {
    BAD_REQUEST: "bad-request",
    UNAUTHORIZED: "login-needed",
    FORBIDDEN: "not-permitted",
    BUSY: "busy",
}
"""Kinds of the problems that the admission of clients reports."""


class JmsProblem(Exception):  # noqa: N818 - a refusal, named like those of management
    """A request that is refused. `slug` is the kind of the problem, the text says why.

    `condition` is the error condition of AMQP, empty if there is none.
    """

    def __init__(
        self,
        status: int,
        slug: str,
        detail: str,
        *,
        condition: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status: Final = status
        self.slug: Final = slug
        self.condition: Final = condition
        self.headers: Final = headers or {}

    def response(self) -> Response:
        """Return the response with the problem's details."""
        details: dict[str, object] = {
            "type": URN + self.slug,
            "title": self.slug.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": str(self),
            "instance": f"urn:uuid:{uuid4()}",
        }
        if self.condition:
            details["condition"] = self.condition
        body = json.dumps(details)
        return Response(body, self.status, media_type=PROBLEM, headers=self.headers)


EXPECTED: Final = (
    JmsProblem,
    Refused,
    RoutingError,
    NoCredit,
    LinkFault,
    MappingError,
    StoreError,
    HTTPException,
)
"""The errors that are refusals of requests; any other is a fault of the broker."""


def problem_of(error: Exception) -> JmsProblem:
    """Return the problem that reports one of the EXPECTED errors."""
    match error:
        case JmsProblem():
            return error
        case RoutingError():
            status, slug = REFUSALS.get(type(error), (BAD_REQUEST, "bad-request"))
            headers = RETRY if status in (BUSY, TOO_MANY) else None
            condition = CONDITIONS[type(error)]
            return JmsProblem(status, slug, str(error), condition=condition, headers=headers)
        case Refused(status=status):
            headers = CHALLENGE if status == UNAUTHORIZED else None
            return JmsProblem(
                status, STATUSES.get(status, "bad-request"), str(error), headers=headers
            )
        case NoCredit(is_by_user=is_by_user):
            status, slug = (TOO_MANY, "limit-reached") if is_by_user else (BUSY, "busy")
            return JmsProblem(status, slug, str(error), headers=RETRY)
        case StoreError():
            return JmsProblem(BUSY, "store-failed", str(error))
        case LinkFault():
            description = error.description or "invalid"
            return JmsProblem(
                BAD_REQUEST, "invalid-message", description, condition=error.condition
            )
        case _:
            return JmsProblem(BAD_REQUEST, "invalid-message", str(error))
