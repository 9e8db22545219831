"""The service behind `$cbs`: a client renews the token of its login (AMQP claims-based security).

A request has the application properties `operation` (put-token) and `type`, and the token as its
body. The names of the response's properties are those that clients of this draft know, which differ
from those of `$management`. A connection that was not logged in by a token gets no login here.
"""

from __future__ import annotations

from typing import Final

from broker.links.container import Container
from broker.links.peer import Peer
from broker.links.service import CLAIMS, Service
from broker.management.later import LATER_MAX, Spawn
from broker.management.renewal import renewed_login
from broker.management.replies import Replies
from broker.management.request import (
    BAD_REQUEST,
    BUSY,
    NOT_IMPLEMENTED,
    Envelope,
    Refused,
    read_envelope,
    read_properties,
    read_text,
)
from broker.management.response import ACCEPTED, OK, STATUS_OF_CLAIMS, Response, as_message
from broker.message import Message
from broker.oauth_settings import TOKEN_BYTES_MAX

PUT_TOKEN: Final = "put-token"  # noqa: S105 - the name of the operation
TYPES: Final = ("jwt", "amqp:jwt")
"""The types of tokens: the one that Azure's clients send, and the draft's."""


class ClaimsService(Service):
    """Renews logins: the connection goes on with the roles and the end of the new token."""

    def __init__(self, container: Container, spawn: Spawn) -> None:
        self._container: Final = container
        self._spawn: Final = spawn
        self._replies: Final = Replies(container)
        self._waiting = 0

    def answer(self, peer: Peer, request: Message) -> None:
        # Azure's client for Python names no node: its receiving link is the only one there
        envelope = read_envelope(request, otherwise=CLAIMS)
        node = self._replies.checked_node(peer, envelope, request)
        try:
            token = token_in(request)
            if self._waiting >= LATER_MAX:
                raise Refused(BUSY, f"{LATER_MAX} tokens are being checked; try again later")
        except Refused as refusal:
            refused = Response(status=refusal.status, description=str(refusal))
            self._replies.send(node, self._message(refused, envelope))
            return
        self._waiting += 1
        self._spawn(self._renew(peer, envelope, token))

    async def _renew(self, peer: Peer, envelope: Envelope, token: str) -> None:
        """Judge the token, and respond unless the client has disconnected by then."""
        try:
            response = await self._renewed(peer, token)
        finally:
            self._waiting -= 1
        node = self._replies.node_for(peer, envelope)
        if node is not None:
            self._replies.send(node, self._message(response, envelope))
        self._container.run_round()

    async def _renewed(self, peer: Peer, token: str) -> Response:
        response = await renewed_login(self._container, peer, token)
        if response.status != OK:
            return response
        return Response(status=ACCEPTED, description="Accepted")

    def _message(self, response: Response, envelope: Envelope) -> Message:
        return as_message(response, envelope, self._container.clock, names=STATUS_OF_CLAIMS)


def token_in(request: Message) -> str:
    """Return the token of a request. Refused if it asks for anything but put-token of a JWT."""
    properties = read_properties(request)
    operation, kind = properties.get("operation"), properties.get("type")
    if operation != PUT_TOKEN:
        raise Refused(NOT_IMPLEMENTED, f"no operation {operation!r:.50}; known is {PUT_TOKEN}")
    if kind not in TYPES:
        raise Refused(BAD_REQUEST, f"no type {kind!r:.50}; known are {' and '.join(TYPES)}")
    return read_text(request, at_most=TOKEN_BYTES_MAX)
