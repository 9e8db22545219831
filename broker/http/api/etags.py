"""Entity tags, and the preconditions of requests by them (RFC 9110 13)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from broker.http.api.json_values import encoded
from broker.http.api.problems import Failure, failure_of
from broker.management.request import (
    BAD_REQUEST,
    FAILURES_FROM,
    NOT_FOUND,
    PRECONDITION_FAILED,
    Request,
)

if TYPE_CHECKING:
    from broker.http.api.endpoint import Call

ANY: Final = "*"

DIGITS: Final = 32


def etag_of(body: object, settings: Sequence[str]) -> str:
    """Return the tag of an entity by the attributes that its clients set."""
    assert isinstance(body, Mapping)
    chosen = [body[name] for name in settings]
    return f'"{hashlib.sha256(encoded(chosen)).hexdigest()[:DIGITS]}"'


async def check_conditions(
    call: Call, reading: Request, tag_of: Callable[[object], str]
) -> bool | None:
    """Raise Failure unless If-Match and If-None-Match of a call hold for the entity as it is.

    Return whether the entity is there, None if the call has no condition.
    """
    wanted, unwanted = call.headers.get("if-match"), call.headers.get("if-none-match")
    if wanted is None and unwanted is None:
        return None
    if unwanted not in (None, ANY):
        raise Failure(BAD_REQUEST, "If-None-Match of a change can only be *")
    found = await call.attempt(reading)
    is_there = found.status < FAILURES_FROM
    if not is_there and found.status != NOT_FOUND:
        raise failure_of(found)
    if unwanted is not None and is_there:
        raise Failure(PRECONDITION_FAILED, "there is such an entity already")
    if wanted is not None:
        tags = {each.strip() for each in wanted.split(",")}
        if not is_there or not tags & {ANY, tag_of(found.body)}:
            raise Failure(PRECONDITION_FAILED, "the entity is not as If-Match says: read it again")
    return is_there
