"""No response to any request while another broker of the group may lead: only probes answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.http.connection import CONNECTION
from broker.http.probes import PROBES
from broker.tenure import Tenure

if TYPE_CHECKING:
    from broker.http.connection import HttpConnection


class LeaderAnswers:
    """ASGI middleware that drops a connection instead of sending a response of a frozen broker.

    A request may have been carried out. Its client has to ask the next leader.
    """

    def __init__(self, inner: ASGIApp, tenure: Tenure) -> None:
        self._inner: Final = inner
        self._tenure: Final = tenure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in PROBES:
            await self._inner(scope, receive, send)
            return
        connection: HttpConnection = scope["state"][CONNECTION]

        async def send_if_leading(message: Message) -> None:
            if self._tenure.is_over():
                connection.drop()
            else:
                await send(message)

        await self._inner(scope, receive, send_if_leading)
