"""Logins by the users file: who may enter, by which mechanisms, and with which roles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from broker.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN
from broker.clock import Clock, SystemClock
from broker.links.authenticator import Authenticator, Exchange, LoginRefused
from broker.net.login_exchange import LoginExchange
from broker.net.password_checks import PasswordChecks, refusal_of
from broker.oauth_settings import OAUTHBEARER, TOKEN_MECHANISMS
from broker.security.account import UsersError
from broker.security.api_tokens import ISSUER, PREFIX, VALID, ApiToken, ApiTokens
from broker.security.authenticate import is_loopback
from broker.security.bearer import name_of
from broker.security.entrance import Entrance
from broker.security.identity import ADMIN, APPLICATION, FOREVER, Identity
from broker.security.package_authenticator import GROUP, NamedAuthenticator, VerifiedUser
from broker.security.scram_verifier import ScramHash
from broker.security.throttle import LoginThrottle
from broker.security.turns import TooManyLogins, source_of
from broker.security.users import Users

if TYPE_CHECKING:
    from broker.net.package_logins import PackageLogins
    from broker.net.token_logins import TokenLogins
    from broker.security.tokens import TokenClaims

SCRAM: Final = (ScramHash.SHA_512.value, ScramHash.SHA_256.value)
"""The mechanisms that prove a password without sending it, the better one first."""


class Login(Authenticator):
    """Admits clients as the settings allow: any client, or those with a user's password.

    While any client may enter and there are no users, PLAIN with any name and password enters as
    `anonymous` too: many clients always send both. The name is shown to operators, and has no
    other effect. `plain_always` lists PLAIN even where others could read the password.
    `listed` are the only mechanisms of a listener, by its name, if its settings say which. `tokens`
    judges tokens of an issuer; None if none are taken. `api_tokens` are the broker's own, which
    log in over HTTP. `package` checks the passwords of names that the users file does not have;
    None if there is none.
    `scram_refused` says why a user's verifiers could not be stored; None if they could.
    `tell_spray` is called with a user, and the number of its failed logins that are to be reported.
    """

    def __init__(
        self,
        users: Users,
        *,
        anonymous: bool,
        all_administer: bool = False,
        plain_always: bool = False,
        listed: Mapping[str, frozenset[str]] | None = None,
        tokens: TokenLogins | None = None,
        package: NamedAuthenticator | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.users = users
        self.anonymous = anonymous
        self.plain_always = plain_always
        self.tokens: Final = tokens
        self.api_tokens: ApiTokens | None = None
        self._listed: Final = listed or {}
        self._all_administer = all_administer
        self._clock: Final = SystemClock() if clock is None else clock
        self.checks: Final = PasswordChecks(self._verify, is_throttled=self.is_throttled)
        self.throttle: Final = LoginThrottle()
        self.package: Final = None if package is None else self._package_logins(package)
        self.scram_refused: str | None = None
        self.tell_spray: Callable[[str, int], None] = _tell_nothing
        self._scram_is_loaded = False
        self._load_scram()

    def _package_logins(self, package: NamedAuthenticator) -> PackageLogins:
        # others are spared the module
        from broker.net.package_logins import PackageLogins

        return PackageLogins(package, is_throttled=self.is_throttled)

    def settle(self, *, anonymous: bool, all_administer: bool) -> None:
        """Let clients without a login in from now on, or not; all users are known now."""
        self.anonymous = anonymous
        self._all_administer = all_administer
        self._load_scram()

    def _load_scram(self) -> None:
        if not self._scram_is_loaded and self.users.everyone_has_scram():
            load_scram()
            self._scram_is_loaded = True

    def adopt(self, other: Login) -> None:
        """Use the users, rules and tokens of `other` from now on; read the keys of tokens anew."""
        self.users = other.users
        self.anonymous = other.anonymous
        self.plain_always = other.plain_always
        self._all_administer = other._all_administer
        self._scram_is_loaded = self._scram_is_loaded or other._scram_is_loaded
        if self.tokens is not None and other.tokens is not None:
            self.tokens.adopt(other.tokens)

    def start(self) -> None:
        """Begin to read the issuer's keys, if tokens log in. To be called in the event loop."""
        if self.tokens is not None:
            self.tokens.start()

    def stop(self) -> None:
        """Read no more keys."""
        if self.tokens is not None:
            self.tokens.stop()

    def prepare_scram(self) -> None:
        """Load SCRAM in a thread if it may be listed by now. To be called in the event loop."""
        if not self._scram_is_loaded and self.users.everyone_has_scram():
            loading = asyncio.get_running_loop().run_in_executor(None, load_scram)
            loading.add_done_callback(self._scram_loaded)

    def _scram_loaded(self, loading: asyncio.Future[None]) -> None:
        loading.result()
        self._scram_is_loaded = True

    def begin(self, entrance: Entrance) -> Exchange:
        return LoginExchange(self, entrance)

    def takes_any_name(self) -> bool:
        """Return whether PLAIN enters with any name and password."""
        others = self.tokens is not None or self.package is not None
        return self.anonymous and not others and not self.users.exist()

    def mechanisms(self, entrance: Entrance) -> list[str]:
        """Return the mechanisms to list. A list is never empty (core 5.3.3.1).

        EXTERNAL alone, which then lets nobody in, stands for none.
        """
        return self.offered(entrance) or [EXTERNAL]

    def admits_anonymous(self, entrance: Entrance) -> bool:
        """Return whether a client without a login may enter there."""
        return self.anonymous and ANONYMOUS in self._listed.get(entrance.listener, (ANONYMOUS,))

    def offered(self, entrance: Entrance) -> list[str]:
        """Return the mechanisms by which a client may log in, of those that its listener has."""
        possible = self._possible(entrance)
        listed = self._listed.get(entrance.listener)
        return possible if listed is None else [each for each in possible if each in listed]

    def _possible(self, entrance: Entrance) -> list[str]:
        """Return the mechanisms for a client, which chooses the first that it knows.

        Most clients prefer SCRAM, whether the user has a verifier for it or not: it is listed once
        every user with a password has them, and its library is loaded. Users of a package have
        none, so that a listener then has SCRAM only if its settings say so.
        """
        if self.takes_any_name():
            return [PLAIN, ANONYMOUS]
        offered = [] if self.user_by_certificate(entrance) is None else [EXTERNAL]
        is_apt = self.package is None or entrance.listener in self._listed
        if is_apt and self._scram_is_loaded and self.users.everyone_has_scram():
            offered += SCRAM
        if self.takes_passwords(entrance):
            offered += [PLAIN] if self.tokens is None else [*TOKEN_MECHANISMS, PLAIN]
        if self.anonymous:
            offered.append(ANONYMOUS)
        return offered or list(SCRAM)

    def takes_passwords(self, entrance: Entrance) -> bool:
        return self.plain_always or entrance.is_tls or is_loopback(entrance.host)

    def identify_by_certificate(self, entrance: Entrance) -> Identity | None:
        user = self.user_by_certificate(entrance)
        return None if user is None else self.identity_of(user, EXTERNAL)

    def user_by_certificate(self, entrance: Entrance) -> str | None:
        """Return the user for whom the client's certificate stands; None unless it is one user."""
        name = entrance.certificate_name
        users = self.users.named_by_certificate(name) if name else []
        return users[0] if len(users) == 1 and self.users.may_use(users[0], EXTERNAL) else None

    def anonymous_identity(self, mechanism: str = "", *, claimed_user: str = "") -> Identity:
        """Return the identity of a client that has no login."""
        roles = frozenset({ADMIN if self._all_administer else APPLICATION})
        return Identity("", roles=roles, mechanism=mechanism, claimed_user=claimed_user)

    def identity_of(self, user: str, mechanism: str = "") -> Identity:
        """Return the identity of `user`, whose password was right."""
        return Identity(
            user,
            roles=frozenset({ADMIN}) if self._all_administer else self.users.roles_of(user),
            mechanism=mechanism,
            credential_version=self.users.version_of(user) or 0,
        )

    def identity_by_token(self, claims: TokenClaims, mechanism: str) -> Identity | None:
        """Return the identity of a token's user; None if the users file does not let it in.

        The roles are those of the token, or of the users file if that has the user. Scopes of such
        a user are left out: the operator decides on its rights.
        """
        user, roles, scopes, version = claims.user, claims.roles, claims.scopes, 0
        if self.users.is_known(user):
            if not self.users.takes_token(user, mechanism):
                return None
            roles, version = self.users.roles_of(user), self.users.version_of(user) or 0
            scopes = ()
        return Identity(
            user,
            roles=roles,
            mechanism=mechanism,
            credential_version=version,
            valid_until_ms=claims.valid_until_ms,
            issuer=claims.issuer,
            subject=claims.subject,
            scopes=scopes,
        )

    def asks_package(self, user: str) -> bool:
        """Return whether a package checks the password of `user`: the users file has no such name.

        A local administrator can so log in while a directory cannot be reached.
        """
        return self.package is not None and not self.users.is_known(user)

    def identity_by_package(self, found: VerifiedUser, mechanism: str = "") -> Identity | None:
        """Return the identity of a user of a package; None if the users file has that name."""
        if self.package is None or self.users.is_known(found.user):
            return None
        issuer = f"{GROUP}:{self.package.chosen.name}"
        return Identity(
            found.user,
            roles=frozenset(found.roles),
            mechanism=mechanism,
            issuer=issuer,
            subject=found.user,
        )

    def _current_by_token(self, identity: Identity) -> Identity | None:
        """Return who a client with a token is by now; None if that, or its user, is not valid.

        A user of a package is one without an end: it stays until the users file has its name.
        """
        until_ms, user = identity.valid_until_ms, identity.user
        if until_ms != FOREVER and self._clock.wall_ms() >= until_ms:
            return None
        if not self.users.is_known(user):
            return identity if identity.credential_version == 0 else None
        if self.users.version_of(user) != identity.credential_version:
            return None
        if not self.users.takes_token(user, identity.mechanism):
            return None
        return identity.with_roles(self.users.roles_of(user))

    async def renew(self, identity: Identity, token: str) -> Identity:
        """Renew a login by `token`. Raise LoginRefused if that is of another user or subject."""
        tokens = self.tokens
        if tokens is None or not identity.issuer:
            raise LoginRefused("the connection was not logged in by a token")
        from broker.net.bearer_login import verdict_on

        claims = await verdict_on(token, tokens)
        if (claims.issuer, claims.subject) != (identity.issuer, identity.subject):
            raise LoginRefused(
                f"the token's subject is {claims.subject!r:.100}, that of the login is"
                f" {identity.subject!r:.100}"
            )
        renewed = self.identity_by_token(claims, identity.mechanism)
        if renewed is None or renewed.user != identity.user:
            raise LoginRefused(f"the token is not of user {identity.user!r}, whose login this is")
        return renewed

    def current(self, identity: Identity) -> Identity | None:
        if identity.user == "":
            # a reload that keeps such clients out from now on leaves those that are in
            return self.anonymous_identity(identity.mechanism, claimed_user=identity.claimed_user)
        if identity.issuer == ISSUER:
            return self._current_by_api_token(identity)
        if identity.issuer:
            return self._current_by_token(identity)
        if self.users.version_of(identity.user) != identity.credential_version:
            return None
        return self.identity_of(identity.user, identity.mechanism)

    def is_disabled(self, user: str) -> bool:
        return self.users.is_disabled(user)

    async def identify(self, user: str, password: str, entrance: Entrance) -> Identity | None:
        """Return the identity of `user`. Raise TooManyLogins if its password is not checked now."""
        source = source_of(entrance.host)
        if self.is_throttled(source, user):
            raise TooManyLogins(refusal_of(source))
        if self.package is not None and self.asks_package(user):
            # no empty password: some directories take it for a login without a name
            found = await self.package.verdict(user, password, entrance) if password else None
            identity = None if found is None else self.identity_by_package(found)
            self.note(source, user, success=identity is not None)
            return identity
        known = self.users.recall(user, password)
        if not known:
            known = await self.checks.verdict(source, user, password)
        self.note(source, user, success=known)
        return self.identity_of(user) if known else None

    async def identify_by_token(self, token: str, entrance: Entrance) -> Identity | None:
        """Return the identity that `token` proves. Raise TooManyLogins if it is not checked now."""
        is_own = token.startswith(PREFIX)
        if not is_own and self.tokens is None:
            return None
        source, name = source_of(entrance.host), name_of(token)
        if self.is_throttled(source, name):
            raise TooManyLogins(refusal_of(source))
        identity = self._proved_by(token) if is_own else await self._claimed_by(token)
        self.note(source, name, success=identity is not None)
        return identity

    async def _claimed_by(self, token: str) -> Identity | None:
        """Return the identity that a token of an issuer proves."""
        from broker.net.bearer_login import verdict_on

        assert self.tokens is not None, "else it was not asked"
        try:
            return self.identity_by_token(await verdict_on(token, self.tokens), OAUTHBEARER)
        except LoginRefused:
            return None

    def _proved_by(self, secret: str) -> Identity | None:
        """Return the identity that an API token proves."""
        if self.api_tokens is None:
            return None
        token = self.api_tokens.log_in(secret, self.users, int(self._clock.wall_ms()))
        return None if token is None else self._identity_by_api_token(token)

    def _identity_by_api_token(self, token: ApiToken) -> Identity | None:
        """Return the identity of a valid token; None if its owner may not log in by a token."""
        if not self.users.may_use(token.owner, OAUTHBEARER):
            return None
        return Identity(
            token.owner,
            roles=self.users.roles_of(token.owner),
            mechanism=OAUTHBEARER,
            credential_version=token.credential_version,
            valid_until_ms=token.expires_at_ms,
            issuer=ISSUER,
            subject=token.id,
            limited_to=token.limit(),
        )

    def _current_by_api_token(self, identity: Identity) -> Identity | None:
        """Return who a client with an API token is by now; None if the token is not valid."""
        token = None if self.api_tokens is None else self.api_tokens.get(identity.subject)
        if token is None or token.state(self.users, int(self._clock.wall_ms())) != VALID:
            return None
        return self._identity_by_api_token(token)

    # -- failed logins

    def is_throttled(self, source: str, user: str) -> bool:
        """Return whether logins of `user` from `source` have failed too often to check one now."""
        now_ms = int(self._clock.now_ms())
        return self.throttle.allowed_at(source, user, now_ms) > now_ms

    def note(self, source: str, user: str, *, success: bool) -> None:
        """Note the outcome of a login, and report if too many of `user` have failed."""
        if success:
            self.throttle.succeeded(source, user)
            return
        failures = self.throttle.failed(source, user, int(self._clock.now_ms()))
        if failures:
            self.tell_spray(user, failures)

    def _verify(self, user: str, password: str) -> bool:
        """Check a password, in a thread. A right one gives the user verifiers for SCRAM."""
        right = self.users.check(user, password)
        if right and user in self.users.without_scram():
            try:
                if self.users.complete_scram(user, password):
                    self._scram_is_loaded = True  # verifiers have been made with it
            except UsersError as error:  # the login is right all the same
                self.scram_refused = str(error)
        return right


def load_scram() -> None:
    """Import what SCRAM takes: it takes 70 ms, which no login is to wait for."""
    import scramp  # noqa: F401


def _tell_nothing(user: str, failures: int) -> None:
    """Report no failures: this login is of no broker that runs."""
