"""Renewal of a login by a new token, for `$cbs` and for the type `login` of `$management`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.links.authenticator import LoginRefused
from broker.links.container import Container
from broker.links.peer import Peer
from broker.management.entity import Caller, Operation
from broker.management.later import LATER_MAX, Spawn, Told
from broker.management.request import BAD_REQUEST, BUSY, CONFLICT, Refused, Request
from broker.management.response import Response
from broker.oauth_settings import TOKEN_BYTES_MAX
from broker.security.identity import FOREVER
from broker.security.turns import TooManyLogins

LOGIN: Final = "login"
RENEW: Final = "RENEW"
TOKEN: Final = "token"  # noqa: S105 - the name of the argument

UNAUTHORIZED: Final = 401

REFUSED: Final = Response(
    status=UNAUTHORIZED, description="the token does not renew the login of this connection"
)
"""The response to a token that is refused. The operator learns the reason, from the log."""


async def renewed_login(container: Container, peer: Peer, token: str) -> Response:
    """Judge a token, and give `peer` the roles and the end of it if it renews the login.

    The response has `valid_until_at`, the end of the login in ms since 1970, null for none.
    """
    try:
        identity = await container.authenticator.renew(peer.identity, token)
    except LoginRefused as refusal:
        container.stats.authentication_failures += 1
        container.watcher.not_renewed(peer, str(refusal))
        return REFUSED
    except TooManyLogins as error:
        container.watcher.not_renewed(peer, str(error))
        return Response(status=BUSY, description="the token cannot be checked now")
    if peer.is_live():
        container.login_expiries.renewed(peer, identity)
        container.watcher.renewed(peer)
    until_ms = identity.valid_until_ms
    return Response(body={"valid_until_at": None if until_ms == FOREVER else int(until_ms)})


class LoginRenewals:
    """The operation RENEW of the type `login`: the sender's own login, for which it needs no right.

    Tokens that are being checked do not count among the requests that wait for the store, which
    are those of clients with rights.
    """

    def __init__(self, container: Container, spawn: Spawn) -> None:
        self._container: Final = container
        self._spawn: Final = spawn
        self._waiting = 0

    def operations(self) -> Mapping[str, Operation]:
        return {RENEW: self._renew}

    def _renew(self, request: Request, caller: Caller) -> Told:
        """Renew the login of the connection by `token`, the new token as a text."""
        request.only(TOKEN)
        if caller.renew is None:
            raise Refused(CONFLICT, "only a connection of AMQP has a login that can be renewed")
        token = request.arguments.get(TOKEN)
        if not isinstance(token, str) or len(token.encode()) > TOKEN_BYTES_MAX:
            raise Refused(
                BAD_REQUEST, f"{TOKEN} must be a string of at most {TOKEN_BYTES_MAX} bytes"
            )
        if self._waiting >= LATER_MAX:
            raise Refused(BUSY, f"{LATER_MAX} tokens are being checked; try again later")
        self._waiting += 1
        self._spawn(self._answer(caller, token))
        return Told()

    async def _answer(self, caller: Caller, token: str) -> None:
        assert caller.renew is not None
        try:
            response = await caller.renew(token)
        finally:
            self._waiting -= 1
        caller.tell(response)
        self._container.run_round()
