"""The login of one connection by a token: OAUTHBEARER, XOAUTH2, or a token as PLAIN's password."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.amqp.sasl import PLAIN
from broker.links.authenticator import LoginRefused
from broker.links.peer import Peer
from broker.net.token_logins import PendingTokenLogin, TokenLogins, TokenUnchecked, TokenVerdict
from broker.security.bearer import BearerError, error_challenge, name_of, read_bearer
from broker.security.tokens import TokenClaims, TokenRefused
from broker.security.turns import TooManyLogins

if TYPE_CHECKING:
    from broker.net.login_exchange import LoginExchange


class BearerLogin(PendingTokenLogin):
    """A client that sends a token. Its name, if it sends one, must be that of the token.

    The failures of a client without a name count for its token, so that one bad token does not
    delay others from the same source.
    """

    def __init__(self, exchange: LoginExchange, peer: Peer, mechanism: str) -> None:
        self._exchange: Final = exchange
        self._peer: Final = peer
        self._mechanism: Final = mechanism
        self._user = ""
        self._name = ""
        self._reason = ""
        self._is_waiting = False

    def answer(self, response: bytes) -> None:
        """Take the client's message, or its answer to the challenge that says that it failed."""
        if self._reason:
            self._peer.rejected(self._reason)
            return
        try:
            message = read_bearer(self._mechanism, response)
        except BearerError as error:
            self._name = self._mechanism
            self._fail(str(error))
            return
        self.ask(message.user, message.token)

    def ask(self, user: str, token: str) -> None:
        """Check the token of a client that gives itself the name `user`, empty for none."""
        self._user = user
        self._name = user or name_of(token)
        tokens = self._exchange.login.tokens
        assert tokens is not None, "else the mechanism is not offered"
        if not self._exchange.refuse_throttled(self._peer, self._name):
            tokens.ask(token, self)
            self._is_waiting = True

    def conclude(self, verdict: TokenVerdict) -> None:
        if self._peer.connection.is_over:
            return
        self._take(verdict)
        if self._is_waiting:  # else this is within a round of work
            self._peer.container.run_round()

    def _take(self, verdict: TokenVerdict) -> None:
        if isinstance(verdict, TokenUnchecked):
            self._peer.undecided(str(verdict))
        elif isinstance(verdict, TokenRefused):
            self._fail(str(verdict))
        else:
            identity = self._exchange.login.identity_by_token(verdict, self._mechanism)
            if self._exchange.login.is_disabled(verdict.user):
                self._fail(f"the token is of user {verdict.user!r}, who is disabled")
            elif identity is None:
                self._fail(
                    f"the token names user {verdict.user!r} of the users file, whose `mechanisms`"
                    " there do not let tokens in"
                )
            elif self._user not in ("", identity.user):
                self._fail(f"the token is of user {identity.user!r}, not of {self._user!r:.100}")
            else:
                self._exchange.admit(self._peer, self._name, identity)

    def _fail(self, reason: str) -> None:
        """Refuse the client: by an error that it answers first, unless it sent a password."""
        self._exchange.count_failure(self._name)
        if self._mechanism == PLAIN:
            self._peer.rejected(reason)
        else:
            self._reason = reason
            self._peer.challenged(error_challenge(self._mechanism))


async def verdict_on(token: str, tokens: TokenLogins) -> TokenClaims:
    """Return the claims of `token`. LoginRefused if it is wrong, TooManyLogins if not checked."""
    pending = AwaitedTokenLogin()
    tokens.ask(token, pending)
    verdict = await pending.verdict
    if isinstance(verdict, TokenUnchecked):
        raise TooManyLogins(str(verdict))
    if isinstance(verdict, TokenRefused):
        raise LoginRefused(str(verdict))
    return verdict


class AwaitedTokenLogin(PendingTokenLogin):
    """A coroutine that waits for the verdict."""

    def __init__(self) -> None:
        self.verdict: Final[asyncio.Future[TokenVerdict]] = (
            asyncio.get_running_loop().create_future()
        )

    def conclude(self, verdict: TokenVerdict) -> None:
        if not self.verdict.done():
            self.verdict.set_result(verdict)
