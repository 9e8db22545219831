"""SASL against the users file, with the slow hash off the event loop."""

import asyncio
from typing import Final

from broker.amqp.errors import Fault
from broker.amqp.sasl import ANONYMOUS, PLAIN, plain_credentials
from broker.links.container import Authenticator
from broker.links.peer import Peer
from broker.security.authenticate import Users

CHECKS_AT_ONCE: Final = 2
"""argon2 takes a core and tens of MiB each; a flood of logins must not take them all."""

WAITING_MAX: Final = 1000
"""Logins that may wait for their turn; beyond that a peer is told to try again later."""


class Login(Authenticator):
    """Lets in whom the settings allow: anybody, or those who know their password."""

    def __init__(self, users: Users, *, anonymous: bool, all_administer: bool = False) -> None:
        self._users = users
        self._anonymous = anonymous
        self._all_administer = all_administer
        self._turn = asyncio.Semaphore(CHECKS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def mechanisms(self) -> list[str]:
        offered = [] if self._users.is_empty() else [PLAIN]
        return [*offered, ANONYMOUS] if self._anonymous else offered

    def requires_sasl(self) -> bool:
        return not self._anonymous

    def is_administrator(self, user: str) -> bool:
        return self._all_administer or self._users.is_administrator(user)

    async def knows(self, user: str, password: str) -> bool:
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(
                None, self._users.check, user, password
            )

    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:
        if mechanism not in self.mechanisms():
            peer.rejected(f"mechanism {mechanism} is not offered")
        elif mechanism == ANONYMOUS:
            peer.authenticated("")
        elif len(self._tasks) >= WAITING_MAX:
            peer.undecided("too many logins at once")
        else:
            task = asyncio.get_running_loop().create_task(self._check(peer, response))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _check(self, peer: Peer, response: bytes) -> None:
        try:
            credentials = plain_credentials(response)
        except Fault as fault:
            peer.rejected(str(fault))
            peer.container.run_round()
            return
        known = await self.knows(credentials.user, credentials.password)
        if known and credentials.authorization in ("", credentials.user):
            peer.authenticated(credentials.user)
        else:
            peer.rejected(f"user {credentials.user!r}: unknown, or the password is wrong")
        peer.container.run_round()
