"""The login of one connection: EXTERNAL, SCRAM, tokens, PLAIN and ANONYMOUS (core 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.amqp.errors import Fault
from broker.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN, claimed_name, plain_credentials
from broker.links.authenticator import Exchange
from broker.links.peer import Peer
from broker.log_events import SCRAM_NOT_WRITTEN
from broker.net.password_checks import PasswordVerdict, PendingLogin, refusal_of
from broker.oauth_settings import TOKEN_MECHANISMS
from broker.security.bearer import looks_like_token
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.scram import ScramChallenge, ScramExchange, ScramStep, ScramSuccess
from broker.security.scram_verifier import ScramHash
from broker.security.turns import source_of

if TYPE_CHECKING:
    from broker.net.bearer_login import BearerLogin
    from broker.net.login import Login


class LoginExchange(Exchange):
    """The login of one connection. A client whose logins fail too often is not checked for a while.

    Its outcome is then code 4 (sys-temp): after the others, clients do not try again.
    """

    def __init__(self, login: Login, entrance: Entrance) -> None:
        self.login: Final = login
        self._entrance: Final = entrance
        self._source: Final = source_of(entrance.host)
        self._scram: ScramExchange | None = None
        self._bearer: BearerLogin | None = None
        self._mechanism = ""

    def mechanisms(self) -> list[str]:
        return self.login.mechanisms(self._entrance)

    def anonymous(self) -> Identity | None:
        admits = self.login.admits_anonymous(self._entrance)
        return self.login.anonymous_identity() if admits else None

    def start(self, peer: Peer, mechanism: str, response: bytes | None) -> None:
        if mechanism not in self.login.offered(self._entrance):
            peer.rejected(f"mechanism {mechanism} is not offered")
        elif mechanism == ANONYMOUS:
            peer.authenticated(self.login.anonymous_identity(ANONYMOUS))
        elif mechanism == EXTERNAL:
            self._start_external(peer, response or b"")
        elif mechanism == PLAIN:
            try:
                self._start_plain(peer, response or b"")
            except Fault as fault:
                peer.rejected(str(fault))
        elif mechanism in TOKEN_MECHANISMS:
            self._bearer = self._token_login(peer, mechanism)
            if response is None:
                peer.challenged(b"")  # the client speaks first, and has not yet (RFC 4422 3)
            else:
                self._bearer.answer(response)
        else:
            self._start_scram(peer, ScramHash(mechanism), response)

    # -- EXTERNAL

    def _start_external(self, peer: Peer, response: bytes) -> None:
        """Let the user of the client's certificate in; it may only name itself (RFC 4422 A)."""
        user = self.login.user_by_certificate(self._entrance)
        if user is None or response not in (b"", user.encode()):
            peer.rejected(f"the certificate of user {user!r} does not stand for {response!r:.100}")
        else:
            peer.authenticated(self.login.identity_of(user, EXTERNAL))

    # -- PLAIN

    def _start_plain(self, peer: Peer, response: bytes) -> None:
        login = self.login
        if login.takes_any_name():
            claimed = claimed_name(response)
            peer.authenticated(login.anonymous_identity(PLAIN, claimed_user=claimed))
            return
        credentials = plain_credentials(response)
        user, password = credentials.user, credentials.password
        if credentials.authorization not in ("", user):
            peer.rejected(f"user {user!r} may not act for another")
        elif login.tokens is not None and looks_like_token(password):
            self._token_login(peer, PLAIN).ask(user, password)
        elif not self.refuse_throttled(peer, user):
            if login.package is not None and login.asks_package(user):
                # others are spared the module
                from broker.net.package_logins import PeerPackageAsker

                asked = PeerPackageAsker(self, peer, user)
                login.package.ask(user, password, self._entrance, asker=asked)
            elif login.users.recall(user, password):
                self.ended(peer, user, mechanism=PLAIN)
            else:
                pending = PeerLogin(peer, self, user)
                login.checks.ask(self._source, user, password, pending=pending)

    # -- tokens

    def _token_login(self, peer: Peer, mechanism: str) -> BearerLogin:
        # loaded at the start where tokens are taken; others are spared joserfc
        from broker.net.bearer_login import BearerLogin

        return BearerLogin(self, peer, mechanism)

    # -- SCRAM

    def _start_scram(self, peer: Peer, hash_: ScramHash, response: bytes | None) -> None:
        users = self.login.users
        self._scram = ScramExchange(hash_, users.scram_verifiers, salt_secret=users.salt_secret())
        self._mechanism = hash_.value
        if response is None:
            peer.challenged(b"")  # the client speaks first, and has not yet (RFC 4422 3)
        else:
            self._go_on(peer, self._scram.start(response))

    def answer(self, peer: Peer, response: bytes) -> None:
        if self._bearer is not None:
            self._bearer.answer(response)
            return
        scram = self._scram
        assert scram is not None
        if not scram.user:
            self._go_on(peer, scram.start(response))
        elif not self.refuse_throttled(peer, scram.user):
            self._go_on(peer, scram.answer(response))

    def _go_on(self, peer: Peer, step: ScramStep) -> None:
        if isinstance(step, ScramChallenge):
            peer.challenged(step.data)
        elif isinstance(step, ScramSuccess):
            self.ended(peer, step.user, mechanism=self._mechanism)
        else:
            self.failed(peer, step.user, step.reason)

    # -- outcomes

    def refuse_throttled(self, peer: Peer, user: str) -> bool:
        """Refuse the login if `user` may not log in for now; return whether it was refused."""
        if not self.login.is_throttled(self._source, user):
            return False
        peer.container.stats.logins_throttled += 1
        peer.undecided(refusal_of(self._source))
        return True

    def ended(self, peer: Peer, user: str, *, mechanism: str) -> None:
        """Let `user` in, whose password was right."""
        refused = self.login.scram_refused
        if refused is not None:
            self.login.scram_refused = None
            text = f"no verifiers for SCRAM were written: {refused}"
            peer.container.watcher.noticed(SCRAM_NOT_WRITTEN.notice(text))
        self.admit(peer, user, self.login.identity_of(user, mechanism))

    def admit(self, peer: Peer, user: str, identity: Identity) -> None:
        """Let the client in; its failures under the name `user` count no more."""
        self.login.note(self._source, user, success=True)
        peer.authenticated(identity)

    def failed(self, peer: Peer, user: str, reason: str) -> None:
        """Refuse the client, and count the failure.

        `reason` is for operators, who also hear that `user` is disabled; the client does not.
        """
        self.count_failure(user)
        peer.rejected(f"user {user!r} is disabled" if self.login.is_disabled(user) else reason)

    def count_failure(self, user: str) -> None:
        """Count a failed login under the name `user`."""
        self.login.note(self._source, user, success=False)

    def unchecked(self, peer: Peer) -> None:
        """Refuse the client for now: too many password checks wait."""
        peer.undecided(refusal_of(self._source))


class PeerLogin(PendingLogin):
    """A connection that waits for the verdict on its password."""

    def __init__(self, peer: Peer, exchange: LoginExchange, user: str) -> None:
        self._peer: Final = peer
        self._exchange: Final = exchange
        self._user: Final = user

    def is_gone(self) -> bool:
        return self._peer.connection.is_over

    def conclude(self, verdict: PasswordVerdict) -> None:
        peer = self._peer
        if verdict is PasswordVerdict.RIGHT:
            self._exchange.ended(peer, self._user, mechanism=PLAIN)
        elif verdict is PasswordVerdict.WRONG:
            reason = f"user {self._user!r}: unknown, or the password is wrong"
            self._exchange.failed(peer, self._user, reason)
        else:
            self._exchange.unchecked(peer)
        peer.container.run_round()
