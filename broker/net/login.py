"""SASL authentication by the users file, with the slow hash off the event loop."""

from __future__ import annotations

from typing import Final

from broker.amqp.errors import Fault
from broker.amqp.sasl import ANONYMOUS, PLAIN, claimed_name, plain_credentials
from broker.links.container import Authenticator
from broker.links.peer import Peer
from broker.net.password_checks import PasswordChecks, PasswordVerdict, PendingLogin, refusal_of
from broker.security.authenticate import Users
from broker.security.turns import source_of


class Login(Authenticator):
    """Admits clients as the settings allow: any client, or those with a user's password.

    While any client may enter and there are no users, PLAIN with any name and password enters as
    `anonymous` too: many clients always send both. The name is shown to operators, and has no
    other effect.
    """

    def __init__(self, users: Users, *, anonymous: bool, all_administer: bool = False) -> None:
        self.users = users
        self.anonymous = anonymous
        self._all_administer = all_administer
        self._checks: Final = PasswordChecks(self._verify)

    def adopt(self, other: Login) -> None:
        """Use the users and rules of `other` from now on. Open connections stay."""
        self.users = other.users
        self.anonymous = other.anonymous
        self._all_administer = other._all_administer

    def mechanisms(self) -> list[str]:
        if self.anonymous:
            return [PLAIN, ANONYMOUS]
        return [PLAIN] if self.users.exist() else []

    def requires_sasl(self) -> bool:
        return not self.anonymous

    def is_administrator(self, user: str) -> bool:
        return self._all_administer or self.users.is_administrator(user)

    async def knows(self, user: str, password: str, *, host: str) -> bool:
        if self.users.recall(user, password):
            return True
        return await self._checks.verdict(source_of(host), user, password)

    def authenticate(self, peer: Peer, mechanism: str, response: bytes) -> None:
        if mechanism not in self.mechanisms():
            peer.rejected(f"mechanism {mechanism} is not offered")
        elif mechanism == ANONYMOUS:
            peer.authenticated("")
        else:
            try:
                self._authenticate_plain(peer, response)
            except Fault as fault:
                peer.rejected(str(fault))

    def _authenticate_plain(self, peer: Peer, response: bytes) -> None:
        if self.anonymous and not self.users.exist():
            peer.claimed_user = claimed_name(response)
            peer.authenticated("")
            return
        credentials = plain_credentials(response)
        user, password = credentials.user, credentials.password
        if credentials.authorization not in ("", user):
            peer.rejected(f"user {user!r} may not act for another")
        elif self.users.recall(user, password):
            peer.authenticated(user)
        else:
            asker = PeerAsker(peer, user)
            self._checks.ask(asker.source, user, password, asker=asker)

    def _verify(self, user: str, password: str) -> bool:
        return self.users.check(user, password)


class PeerAsker(PendingLogin):
    """A connection that waits for its SASL outcome."""

    def __init__(self, peer: Peer, user: str) -> None:
        self._peer: Final = peer
        self._user: Final = user
        self.source: Final = source_of(peer.address.rpartition(":")[0])

    def is_gone(self) -> bool:
        return self._peer.connection.is_over

    def told(self, verdict: PasswordVerdict) -> None:
        peer = self._peer
        if verdict is PasswordVerdict.RIGHT:
            peer.authenticated(self._user)
        elif verdict is PasswordVerdict.WRONG:
            peer.rejected(f"user {self._user!r}: unknown, or the password is wrong")
        else:
            peer.undecided(refusal_of(self.source))
        peer.container.run_round()
