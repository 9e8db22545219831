"""Responses of a member of a group: only the leader answers requests, and only while it may.

Probes are answered in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.http.application import error_response
from broker.http.connection import CONNECTION
from broker.http.probes import PROBES
from broker.links.container import Container
from broker.management.request import BUSY

if TYPE_CHECKING:
    from broker.http.connection import HttpConnection


class LeaderAnswers:
    """ASGI middleware that passes requests to `inner` while the broker leads.

    A leader that may have been replaced drops the connection instead of a response: the request may
    have been carried out, and its client has to ask the next leader.
    """

    def __init__(self, inner: ASGIApp, container: Container) -> None:
        self._inner: Final = inner
        self._container: Final = container

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        group = self._container.group
        if scope["path"] in PROBES:
            await self._inner(scope, receive, send)
        elif group is not None and not group.leads:
            leads = f"{group.leader} leads" if group.leader else "no broker leads"
            refusal = error_response(BUSY, f"this broker stands by: {leads}")
            await refusal(scope, receive, send)
        else:
            connection: HttpConnection = scope["state"][CONNECTION]
            await self._inner(scope, receive, _guarded(self._container, connection, send))


def _guarded(container: Container, connection: HttpConnection, send: Send) -> Send:
    """Return `send` for a response, which drops the connection once the tenure is over."""

    async def send_if_leading(message: Message) -> None:
        tenure = container.tenure
        if tenure is not None and tenure.is_over():
            connection.drop()
        else:
            await send(message)

    return send_if_leading
