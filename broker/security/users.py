"""The users: whose password is right, what roles they have, and changes of users.

`user_sources.py` has the places in which they are stored. The file is read again when it has
changed, so a user that is added while the broker runs may enter at once. Every wrong password costs
one hash, whether the user exists or not; two while a password is replaced by `passwd` with
`keep_old_s`. A right one costs it once in five minutes.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_bytes
from typing import Final

from broker.clock import Clock, SystemClock
from broker.oauth_settings import TOKEN_MECHANISMS
from broker.security.account import (
    ADMIN_ROLE,
    PLAIN_MECHANISM,
    FormerVerifiers,
    UserAccount,
    UsersError,
    Verifiers,
    as_datetime,
    refusal_of_certificates,
    refusal_of_name,
    refusal_of_roles,
    roles_after,
)
from broker.security.account_table import AccountTable
from broker.security.new_verifiers import new_scram, new_verifiers
from broker.security.passwords import NOBODY, matches
from broker.security.scram import decoy_salt
from broker.security.scram_verifier import (
    ScramHash,
    ScramVerifier,
    make_verifier,
    refusal_of_scram_name,
)
from broker.security.successes import SUCCESS_MS, Successes
from broker.security.user_sources import UserSources
from broker.security.users_file import Amendment, Change
from broker.security.users_toml import UserTable

KEEP_OLD_S_MAX: Final = 7 * 24 * 3600
"""Maximum seconds for which a replaced password enters beside the new one."""

PROCESS_SECRET: Final = token_bytes(32)
"""Keys what must be the same for all `Users` of this process, such as before and after a reload."""


FOR_EVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Lacking:
    """The users in `table` that lack SCRAM. Until `until`, no former password ends."""

    table: UserTable
    until: datetime
    names: Sequence[str]


class Users:
    """The users that log in: those of the users file and of a table, and the settings' first user.

    The first user wins over others of its name, and is an administrator: the operator who sets it
    owns the broker.
    """

    def __init__(
        self,
        file: Path,
        *,
        first: tuple[str, str] | None = None,
        clock: Clock | None = None,
        table: AccountTable | None = None,
    ) -> None:
        """`first` is the first user's name and password."""
        self._sources: Final = UserSources(file, table)
        self._first: Final = first
        self._clock: Final = SystemClock() if clock is None else clock
        self._successes: Final = Successes()
        self._first_verifiers: Mapping[ScramHash, ScramVerifier] | None = None
        self._lacking: Lacking | None = None

    @property
    def file(self) -> Path:
        """The absolute path of the users file."""
        return self._sources.path

    @property
    def place(self) -> str:
        """The places of users, as text for operators."""
        return self._sources.place

    @property
    def first(self) -> str | None:
        """The name of the first user, which the settings give; or None."""
        return None if self._first is None else self._first[0]

    def accounts(self) -> Mapping[str, UserAccount]:
        """Return the accounts by name, those of the file in its last valid version."""
        return self._sources.last_valid().accounts

    def snapshot(self) -> object:
        """Return an object that is another one once a user has changed."""
        return self._sources.last_valid()

    # -- who there is

    def names(self) -> list[str]:
        """Return the names of all accounts, sorted. UsersError if the file is unreadable."""
        return sorted(self._sources.current().accounts)

    def account(self, name: str) -> UserAccount | None:
        """Return the account of `name`, or None. UsersError if the file is unreadable."""
        return self._sources.current().accounts.get(name)

    def source_of(self, name: str) -> str:
        """Return where the account of `name` is: IN_FILE or IN_STORE."""
        return self._sources.source_of(name)

    def is_empty(self) -> bool:
        """Return whether there is no user. UsersError if the file is unreadable."""
        return self._first is None and not self._sources.current().accounts

    def exist(self) -> bool:
        """Return True if there is a user, or the file cannot be read."""
        try:
            return not self.is_empty()
        except UsersError:
            return True

    def is_enabled(self, name: str) -> bool:
        """Return whether there is a user `name` that is not disabled."""
        if name == self.first:
            return True
        account = self._known(name)
        return account is not None and account.enabled

    def is_disabled(self, name: str) -> bool:
        """Return whether there is a user `name` that may not log in, whatever it proves."""
        return self.is_known(name) and not self.is_enabled(name)

    def roles_of(self, name: str) -> frozenset[str]:
        """Return the roles of the user `name`; none if it is unknown or disabled."""
        if name == self.first:
            return frozenset([ADMIN_ROLE])
        account = self._known(name)
        return frozenset(account.roles if account is not None and account.enabled else ())

    def is_administrator(self, name: str) -> bool:
        """Return whether the user `name`, who has entered, may manage the broker."""
        return ADMIN_ROLE in self.roles_of(name)

    def may_use(self, name: str, mechanism: str) -> bool:
        """Return whether the user `name` may log in with this SASL mechanism."""
        if name == self.first:
            return True
        account = self._known(name)
        return account is not None and account.may_use(mechanism)

    def is_known(self, name: str) -> bool:
        """Return whether there is a user `name`, enabled or not."""
        return name == self.first or self._known(name) is not None

    def takes_token(self, name: str, mechanism: str) -> bool:
        """Return whether a token may log in the user `name` with this mechanism.

        Its account must say so: else the issuer could give out a name that is a local user's.
        """
        account = self._known(name)
        if name == self.first or account is None or account.mechanisms is None:
            return False
        takes_tokens = any(each in account.mechanisms for each in TOKEN_MECHANISMS)
        return takes_tokens and account.may_use(mechanism)

    def version_of(self, name: str) -> int | None:
        """Return the credential version of the user `name`; None if it is unknown or disabled.

        A session that was opened with another version must end.
        """
        if self._first is not None and self._first[0] == name:
            digest = hmac.digest(PROCESS_SECRET, self._first[1].encode(), "sha256")
            return int.from_bytes(digest[:6])
        account = self._known(name)
        return account.credential_version if account is not None and account.enabled else None

    def named_by_certificate(self, certificate: str) -> list[str]:
        """Return the enabled users that have exactly this name of a certificate, sorted."""
        accounts = self._sources.last_valid().accounts.values()
        return sorted(
            each.name for each in accounts if each.enabled and certificate in each.certificates
        )

    def _known(self, name: str) -> UserAccount | None:
        """Return the account of `name`, or None; that of the file in its last valid version."""
        return self._sources.last_valid().accounts.get(name)

    # -- passwords

    def recall(self, name: str, password: str) -> bool:
        """Return True if `password` was right in `check` lately, and nothing has changed since.

        Takes microseconds. False says nothing about the password.
        """
        credential = self._credential(name)
        return credential is not None and self._successes.recall(
            name, password, credential=credential, now_ms=self._clock.now_ms()
        )

    def check(self, name: str, password: str) -> bool:
        """Return whether `password` is that of `name`. Takes a core for tens of milliseconds.

        To be called off the event loop, from any thread.
        """
        credential = self._credential(name)
        until_ms = self._clock.now_ms() + SUCCESS_MS
        account = self._known(name)
        if self._first is not None and self._first[0] == name:
            matches(NOBODY, password)  # takes as long as for every other user
            is_right = hmac.compare_digest(self._first[1].encode(), password.encode())
        elif credential is None or account is None:
            is_right = matches(NOBODY, password)
        else:
            is_right = matches(account.verifiers.password or NOBODY, password)
            former = account.former(self._now())
            if not is_right and former is not None and former.password is not None:
                is_right = matches(former.password, password)
                until_ms = min(until_ms, self._steady_ms(account))
        # A client that has no password sends an empty one (`docs/design/hostile-input.md` A5).
        if not is_right or credential is None or password == "":
            return False
        self._successes.remember(name, password, credential=credential, until_ms=until_ms)
        return True

    def _steady_ms(self, account: UserAccount) -> int:
        """Return the steady ms at which the former password of `account` ends."""
        if account.previous is None:
            return self._clock.now_ms()
        left = account.previous.until - self._now()
        return self._clock.now_ms() + left // timedelta(milliseconds=1)

    def _credential(self, name: str) -> str | None:
        """Return a text that changes with the password of `name`; None if no password enters."""
        if name == self.first:
            return f"{self.version_of(name)}"
        account = self._known(name)
        if account is None or not account.may_use(PLAIN_MECHANISM):
            return None
        # The hash, too: an operator may change it in the file, and leave the version.
        return f"{account.credential_version} {account.verifiers.password}"

    # -- SCRAM

    def salt_secret(self) -> bytes:
        """Return the key of salts for unknown users: a stored one; without it, this process's."""
        return self._sources.last_valid().salt_secret or PROCESS_SECRET

    def scram_verifiers(self, name: str, hash_: ScramHash) -> Sequence[ScramVerifier]:
        """Return the verifiers that `name` may log in with, the current one first; none if none.

        A second one is that of a replaced password, while that enters, too.
        """
        if name == self.first:
            found = self._scram_of_first().get(hash_)
            return [] if found is None else [found]
        account = self._known(name)
        if account is None:
            return []
        # Without the clock where it is not needed: known and unknown users take the same time.
        former = None if account.previous is None else account.former(self._now())
        return _usable(account, hash_, former)

    def scram_verifier(self, name: str, hash_: ScramHash) -> ScramVerifier | None:
        """Return the current verifier of `name`; None if the user cannot log in with it."""
        found = self.scram_verifiers(name, hash_)
        return found[0] if found else None

    def without_scram(self) -> list[str]:
        """Return the enabled users with a password that lack a verifier for SCRAM, sorted."""
        table, now = self._sources.last_valid(), self._now()
        known = self._lacking
        if known is None or known.table is not table or known.until <= now:
            known = self._lacking = self._without_scram(table, now)
        return list(known.names)

    def _without_scram(self, table: UserTable, now: datetime) -> Lacking:
        others = [each for each in table.accounts.values() if each.name != self.first]
        names = [each.name for each in others if _lacks_scram(each, now)]
        if self._first is not None and len(self._scram_of_first()) < len(ScramHash):
            names.append(self._first[0])
        ends = [each.previous.until for each in others if each.previous is not None]
        until = min((each for each in ends if each > now), default=FOR_EVER)
        return Lacking(table, until, sorted(names))

    def everyone_has_scram(self) -> bool:
        """Return whether SCRAM may be listed: users exist, and all with a password have verifiers.

        Clients prefer SCRAM to PLAIN: a user without verifiers would be locked out. The first call
        with a first user of the settings takes a core for 26 ms; others take microseconds.
        """
        return self.exist() and not self.without_scram()

    def _scram_of_first(self) -> Mapping[ScramHash, ScramVerifier]:
        """Return the first user's verifiers; none if SCRAM cannot carry its name or password."""
        if self._first is None:
            return {}
        if self._first_verifiers is None:
            name, password = self._first
            secret = self.salt_secret()
            # The salt of an unknown user of that name: it stays the same over restarts.
            self._first_verifiers = {}
            with suppress(ValueError):
                if refusal_of_scram_name(name) is None:
                    self._first_verifiers = {
                        each: make_verifier(each, password, salt=decoy_salt(name, each, secret))
                        for each in ScramHash
                    }
        return self._first_verifiers

    # -- changes

    def add(
        self,
        name: str,
        password: str,
        *,
        administrator: bool | None = None,
        roles: Sequence[str] | None = None,
        certificates: Sequence[str] | None = None,
        scram: bool = True,
    ) -> bool:
        """Add the user `name`, or change its password. Return whether it is new.

        `roles` replace those that the user has; a new user gets APPLICATION_ROLE without any.
        `administrator` True adds ADMIN_ROLE, False takes it away, None leaves it. UsersError if the
        name or password is not allowed, or the user cannot be stored.
        """
        self._check_changeable(name)
        verifiers = new_verifiers(name, password, scram=scram)

        def change(before: UserAccount | None) -> UserAccount:
            account = UserAccount(name=name) if before is None else before
            chosen = roles_after(before, roles, administrator=administrator)
            names = account.certificates if certificates is None else tuple(certificates)
            refusal = refusal_of_roles(chosen) or refusal_of_certificates(names)
            if refusal is not None:
                raise UsersError(refusal)
            changed = replace(account, verifiers=verifiers, previous=None, roles=chosen)
            return replace(changed, certificates=names).changed(self._now())

        return self._change(name, change) is None

    def passwd(
        self, name: str, password: str, *, keep_old_s: int = 0, scram: bool = True
    ) -> datetime | None:
        """Change the password of `name`; return until when the old one enters, too, or None.

        UsersError if there is no such user, the password is not allowed, or the user cannot be
        changed.
        """
        self._check_changeable(name)
        if not 0 <= keep_old_s <= KEEP_OLD_S_MAX:
            raise UsersError(f"an old password is kept for at most {KEEP_OLD_S_MAX} seconds")
        seen = self._required(name)
        # With salt and iterations of the old one, a client's proof is compared with both.
        like = seen.verifiers.scram if keep_old_s > 0 else {}
        verifiers = new_verifiers(name, password, scram=scram, like=like)
        until = (self._now() + timedelta(seconds=keep_old_s)).replace(microsecond=0)

        def change(before: UserAccount | None) -> UserAccount:
            if before is None or before.credential_version != seen.credential_version:
                raise UsersError(f"user {name!r} was changed at the same time: try again")
            former = FormerVerifiers(until=until, verifiers=before.verifiers)
            previous = former if keep_old_s > 0 else None
            return replace(before, verifiers=verifiers, previous=previous).changed(self._now())

        self._change(name, change)
        return until if keep_old_s > 0 else None

    def set_enabled(self, name: str, *, enabled: bool) -> bool:
        """Enable or disable the user `name`; return False if it was so before.

        A disabled user does not enter with any mechanism, and its sessions are to be ended.
        UsersError if there is no such user, or it cannot be changed.
        """
        return self._amend(
            name, lambda account: replace(account, enabled=enabled), ends_sessions=True
        )

    def set_roles(self, name: str, roles: Sequence[str]) -> bool:
        """Give the user `name` other roles; return False if it had them. Its sessions stay open.

        UsersError as for `set_enabled`, and if a role is not allowed.
        """
        chosen = tuple(dict.fromkeys(roles))
        refusal = refusal_of_roles(chosen)
        if refusal is not None:
            raise UsersError(refusal)
        return self._amend(name, lambda account: replace(account, roles=chosen))

    def _amend(self, name: str, amended: Amendment, *, ends_sessions: bool = False) -> bool:
        """Change the user `name`; return False if it was so before."""
        self._check_changeable(name)
        account = self._required(name)
        if amended(account) == account:
            return False

        def change(before: UserAccount | None) -> UserAccount:
            if before is None:
                raise self._no_user(name)
            after = amended(before)
            if ends_sessions:
                return after.changed(self._now())
            return replace(after, changed_at=self._now().replace(microsecond=0))

        self._change(name, change)
        return True

    def complete_scram(self, name: str, password: str) -> bool:
        """Give the user `name` the verifiers for SCRAM that it lacks; return whether it lacked any.

        Nothing is added if `password` is not the current one: `check` admits a former one, too. The
        version stays, as the password does. Takes a core for 50 ms. UsersError if SCRAM cannot
        carry the name or password, or the verifiers cannot be stored.
        """
        seen = self._known(name)
        if name == self.first or seen is None or len(seen.verifiers.scram) == len(ScramHash):
            return False
        if not matches(seen.verifiers.password or NOBODY, password):
            return False
        self._sources.complete(name, seen, new_scram(name, password), now=self._now())
        return True

    def put(self, account: UserAccount) -> None:
        """Add `account`, or replace the one of its name. UsersError if it cannot be stored."""
        self._check_changeable(account.name)
        self._change(account.name, lambda _: account)

    def remove(self, name: str) -> None:
        """Remove the user `name`. UsersError if there is none, or it cannot be removed."""

        def change(before: UserAccount | None) -> None:
            if before is None:
                raise self._no_user(name)

        self._change(name, change)

    def _change(self, name: str, change: Change) -> UserAccount | None:
        return self._sources.change(name, change, now=self._now())

    def _required(self, name: str) -> UserAccount:
        account = self.account(name)
        if account is None:
            raise self._no_user(name)
        return account

    def _no_user(self, name: str) -> UsersError:
        return UsersError(f"no user {name!r} in {self.place}")

    def _check_changeable(self, name: str) -> None:
        refusal = refusal_of_name(name)
        if refusal is not None:
            raise UsersError(refusal)
        if name == self.first:
            raise UsersError(f"user {name!r} is in the broker's settings, which win over the file")

    def _now(self) -> datetime:
        return as_datetime(self._clock.wall_ms())


def _usable(
    account: UserAccount, hash_: ScramHash, former: Verifiers | None
) -> list[ScramVerifier]:
    """Return the verifiers that `account` may log in with, as `Users.scram_verifiers` does."""
    current = account.verifiers.scram.get(hash_)
    if current is None or not account.may_use(hash_.value):
        return []
    other = None if former is None else former.scram.get(hash_)
    if other is None or (other.salt, other.iterations) != (current.salt, current.iterations):
        return [current]  # a client computes with one salt, that of the challenge
    return [current, other]


def _lacks_scram(account: UserAccount, now: datetime) -> bool:
    """Return whether `account` has a password that cannot log in with SCRAM, though it may."""
    former = account.former(now)
    passwords = 1 if former is None else 2
    return account.has_password and any(
        account.may_use(hash_.value) and len(_usable(account, hash_, former)) < passwords
        for hash_ in ScramHash
    )
