"""Messages as resources. Looking at them acquires none.

A list is made of small portions, between which the event loop serves others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from broker.http.api.endpoint import Call, CallResult, query_of, rows_of
from broker.http.api.json_values import encoded
from broker.http.api.problems import Failure
from broker.management.content import BYTES, EMPTY, OPAQUE, TEXT
from broker.management.listing import LIMIT_DEFAULT
from broker.management.message_scan import HELD, PAUSED, SCAN_MAX, SCHEDULED, WAITING
from broker.management.messages import MESSAGE
from broker.management.request import BAD_REQUEST, NOT_FOUND, Request

MATCHES: Final = 50
"""Messages that one portion shows: a few milliseconds, as their properties are decoded."""

SCANNED: Final = 500
"""Messages that a selector examines in one portion."""

STATES: Final = {"ready": WAITING, "scheduled": SCHEDULED, "paused": PAUSED, "held": HELD}

BODIES: Final = ("application/octet-stream", "application/json", "text/plain; charset=utf-8")
"""The media types of the body of a message."""

TRUNCATED: Final = "jms-broker-truncated"
"""The header of a body that is longer than what is shown."""


def check_place(arguments: Mapping[str, object]) -> None:
    """Raise Failure unless the parameters name a queue or a subscription."""
    if bool(arguments.get("queue")) == bool(arguments.get("subscription")):
        raise Failure(BAD_REQUEST, "queue or subscription is needed, one of them")


async def list_messages(call: Call) -> CallResult:
    """Return a page of the messages in a queue or subscription."""
    arguments = dict(call.arguments)
    check_place(arguments)
    limit = arguments.pop("limit", LIMIT_DEFAULT)
    assert isinstance(limit, int)
    state = arguments.pop("state", None)
    if state is not None:
        arguments["state"] = STATES[str(state)]
    items: list[Mapping[str, object]] = []
    portions = 0
    while True:
        count = min(MATCHES, limit - len(items))
        response = await call.ask(query_of(MESSAGE, {**arguments, "scan": SCANNED}, count=count))
        assert isinstance(response.body, Mapping)
        items += rows_of(response)
        following = response.body["next"]
        portions += 1
        # a page without a match still ends, and the client asks for the next one
        if following is None or len(items) >= limit or portions * SCANNED >= SCAN_MAX:
            return CallResult(body={"items": items, "next": following})
        arguments["after"] = following


async def list_scheduled(call: Call) -> CallResult:
    """Return a page of the messages that wait for their delivery time."""
    return await list_messages(replace(call, arguments={**call.arguments, "state": "scheduled"}))


async def cancel_scheduled(call: Call) -> CallResult:
    """Delete one message that waits for its delivery time."""
    check_place(call.arguments)
    arguments = {**call.arguments, "identities": [call.name]}
    request = Request(operation="CANCEL", type=MESSAGE, arguments=arguments)
    body = (await call.ask(request)).body
    assert isinstance(body, Mapping)
    if not body["cancelled"]:
        raise Failure(NOT_FOUND, f"no message {call.name} waits for its time there")
    return CallResult(status=204)


async def _read(call: Call) -> dict[str, object]:
    check_place(call.arguments)
    request = Request(operation="READ", type=MESSAGE, identity=call.name, arguments=call.arguments)
    body = (await call.ask(request)).body
    assert isinstance(body, Mapping)
    return dict(body)


async def read_message(call: Call) -> CallResult:
    """Return a message with all its sections but the body."""
    found = await _read(call)
    del found["body"]
    return CallResult(body=found)


async def read_body(call: Call) -> CallResult:
    """Return the body of a message, as a file that no browser shows by itself."""
    found = await _read(call)
    kind, body = found["body_kind"], found["body"]
    headers = {
        "content-disposition": f'attachment; filename="message-{call.name}"',
        "content-security-policy": "sandbox",
    }
    if found["body_truncated"]:
        headers[TRUNCATED] = "true"
    if kind == EMPTY:
        return CallResult(status=204)
    if kind == TEXT and isinstance(body, str):
        data = body.encode(errors="replace")
        return CallResult(body=data, headers=headers, media_type="text/plain; charset=utf-8")
    if kind in (BYTES, OPAQUE) and isinstance(body, bytes):
        return CallResult(body=body, headers=headers, media_type="application/octet-stream")
    return CallResult(body=encoded(body), headers=headers)
