"""Responses with a message: its headers and its body, a large one in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import Response, StreamingResponse

from broker.http.jms_content import BrokenBody, JmsContent, pieces_of
from broker.http.jms_message import MESSAGE_TYPE, ReceivedMessage, headers_of
from broker.links.container import Container
from broker.log_events import BODY_BROKEN

OK: Final = 200


def message_response(
    message: ReceivedMessage, container: Container, headers: dict[str, str]
) -> Response:
    """Return the response with a message; `headers` are further ones."""
    content = message.content
    response: Response
    if content.large is None:
        response = Response(content.data, OK)
    else:
        response = StreamingResponse(_pieces(content, container), OK)
        response.headers["content-length"] = str(content.size())
    response.headers["content-type"] = content.media_type
    response.headers[MESSAGE_TYPE] = content.kind
    if message.jms is not None:
        for name, value in headers_of(message.jms):
            response.headers.append(name, value)
    for name, value in headers.items():
        response.headers[name] = value
    return response


async def _pieces(content: JmsContent, container: Container) -> AsyncIterator[bytes]:
    """Yield the pieces of a large body; if one is damaged, the response ends too early."""
    try:
        async for piece in pieces_of(content, container.contents):
            yield piece
    except BrokenBody as damage:
        container.watcher.noticed(
            BODY_BROKEN.notice(f"HTTP: a message could not be sent: {damage}")
        )
        raise
