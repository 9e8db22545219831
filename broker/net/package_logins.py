"""Asks the authenticator of a package about passwords, off the event loop, in fair turns.

It may wait for a directory on the network. So each check has a thread of its own, which does not
keep the process alive, and an answer that takes too long is not waited for.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import entry_points
from threading import Thread
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.amqp.sasl import PLAIN
from broker.links.peer import Peer
from broker.net.password_checks import refusal_of
from broker.security.account import refusal_of_name, refusal_of_roles
from broker.security.entrance import Entrance
from broker.security.package_authenticator import (
    GROUP,
    NamedAuthenticator,
    PackageAuthenticator,
    VerifiedUser,
)
from broker.security.turns import TooManyLogins, Turns, source_of
from broker.settings import SettingsError

if TYPE_CHECKING:
    from broker.net.login_exchange import LoginExchange

CHECKS_AT_ONCE_MAX: Final = 8
"""Maximum checks at a time, each in a thread."""

CHECK_S: Final = 10.0
"""Seconds that a login waits for its verdict. The thread of a check may go on for longer."""

ERROR_CHARS_MAX: Final = 200
"""Maximum characters of the text of an exception in the log."""


class PackageUnchecked(Exception):  # noqa: N818 - as refusals are named in this project
    """The password cannot be checked now, and may be sent again. The message says why."""


PackageVerdict: TypeAlias = VerifiedUser | PackageUnchecked | None
"""The user; None if the client is refused."""


class PackageAsker(ABC):
    """A login that waits for the verdict of a package."""

    @abstractmethod
    def is_gone(self) -> bool:
        """Return whether the login has ended, so that it needs no verdict."""

    @abstractmethod
    def told(self, verdict: PackageVerdict) -> None:
        """Take the verdict. Called once, in the event loop."""


class FuturePackageAsker(PackageAsker):
    """A coroutine that waits for the verdict."""

    def __init__(self) -> None:
        self.verdict: Final[asyncio.Future[PackageVerdict]] = (
            asyncio.get_running_loop().create_future()
        )

    def is_gone(self) -> bool:
        return self.verdict.done()

    def told(self, verdict: PackageVerdict) -> None:
        if not self.verdict.done():
            self.verdict.set_result(verdict)


class PeerPackageAsker(PackageAsker):
    """A connection that waits for the verdict on its password."""

    def __init__(self, exchange: LoginExchange, peer: Peer, user: str) -> None:
        self._exchange: Final = exchange
        self._peer: Final = peer
        self._user: Final = user

    def is_gone(self) -> bool:
        return self._peer.connection.is_over

    def told(self, verdict: PackageVerdict) -> None:
        if self.is_gone():
            return
        if isinstance(verdict, PackageUnchecked):
            self._peer.undecided(str(verdict))
        elif verdict is None:
            refusal = "the authenticator refuses it"
            self._exchange.failed(self._peer, self._user, f"user {self._user!r}: {refusal}")
        else:
            self._admit(verdict)
        self._peer.container.run_round()

    def _admit(self, found: VerifiedUser) -> None:
        identity = self._exchange.login.identity_by_package(found, PLAIN)
        if identity is not None:
            self._exchange.admit(self._peer, self._user, identity)
        else:
            reason = f"the authenticator names user {found.user!r}, which the users file has"
            self._exchange.failed(self._peer, self._user, reason)


class PackageCheck:
    """One password of one user, and the login that waits for the verdict."""

    def __init__(
        self, user: str, password: str, entrance: Entrance, *, asker: PackageAsker
    ) -> None:
        self.user: Final = user
        self.password: Final = password
        self.entrance: Final = entrance
        self.source: Final = source_of(entrance.host)
        self.asker: Final = asker
        self.deadline: asyncio.TimerHandle | None = None
        self._is_told = False

    def is_over(self) -> bool:
        """Return whether nobody needs the verdict any more."""
        return self._is_told or self.asker.is_gone()

    def tell(self, verdict: PackageVerdict) -> None:
        """Give `verdict` to the login, unless it has one."""
        if self.deadline is not None:
            self.deadline.cancel()
        if not self._is_told:
            self._is_told = True
            self.asker.told(verdict)


class PackageLogins:
    """The logins that the authenticator of a package decides about.

    `is_throttled` tells, by source and user, whether a login has no check for now.
    """

    def __init__(
        self, chosen: NamedAuthenticator, *, is_throttled: Callable[[str, str], bool]
    ) -> None:
        self.chosen: Final = chosen
        self._is_throttled: Final = is_throttled
        self._turns: Final = Turns[PackageCheck]()
        self._running = 0

    def ask(self, user: str, password: str, entrance: Entrance, *, asker: PackageAsker) -> None:
        """Give `asker` the verdict later; PackageUnchecked if too many checks wait."""
        check = PackageCheck(user, password, entrance, asker=asker)
        check.deadline = asyncio.get_running_loop().call_later(CHECK_S, self._time_out, check)
        displaced = self._turns.put(check.source, user, check)
        if displaced is not None:
            displaced.tell(PackageUnchecked(refusal_of(displaced.source)))
        self._go_on()

    async def verdict(self, user: str, password: str, entrance: Entrance) -> VerifiedUser | None:
        """Return the user, None if it is refused. TooManyLogins if it was not checked."""
        asker = FuturePackageAsker()
        self.ask(user, password, entrance, asker=asker)
        verdict = await asker.verdict
        if isinstance(verdict, PackageUnchecked):
            raise TooManyLogins(str(verdict))
        return verdict

    def _go_on(self) -> None:
        """Start checks while threads are free and logins wait."""
        loop = asyncio.get_running_loop()
        while self._running < CHECKS_AT_ONCE_MAX and len(self._turns):
            check = self._turns.take()
            if check.is_over():
                continue
            # asked now, as logins that were checked since this one came may have failed
            if self._is_throttled(check.source, check.user):
                check.tell(PackageUnchecked(refusal_of(check.source)))
                continue
            self._running += 1
            Thread(target=self._run, args=(loop, check), name=GROUP, daemon=True).start()

    def _time_out(self, check: PackageCheck) -> None:
        check.tell(PackageUnchecked(f"{self._title()} has not answered within {CHECK_S:g} s"))

    def _run(self, loop: asyncio.AbstractEventLoop, check: PackageCheck) -> None:
        verdict: PackageVerdict
        try:
            verdict = verified(
                self.chosen.authenticator.authenticate(check.user, check.password, check.entrance)
            )
        except Exception as error:  # noqa: BLE001 - of the package, whatever it is
            text = f"{type(error).__name__}: {error}"
            verdict = PackageUnchecked(f"{self._title()} failed: {text:.{ERROR_CHARS_MAX}}")
        with suppress(RuntimeError):  # the broker has stopped, and its event loop is closed
            loop.call_soon_threadsafe(self._done, check, verdict)

    def _done(self, check: PackageCheck, verdict: PackageVerdict) -> None:
        self._running -= 1
        check.tell(verdict)
        self._go_on()

    def _title(self) -> str:
        return f"the authenticator {self.chosen.name!r}"


def verified(found: object) -> VerifiedUser | None:
    """Return what an authenticator has returned. TypeError or ValueError if it is malformed."""
    if found is None:
        return None
    if not isinstance(found, VerifiedUser):
        raise TypeError(f"it returned {type(found).__name__}, not VerifiedUser or None")
    roles = tuple(found.roles)
    refusal = refusal_of_name(found.user) or refusal_of_roles(roles)
    if refusal is not None:
        raise ValueError(refusal)
    return VerifiedUser(found.user, frozenset(roles))


def load_authenticator(name: str) -> NamedAuthenticator:
    """Return the authenticator of that name, of an installed package, newly made.

    Raise SettingsError if there is none, or if it cannot be made.
    """
    place = f"authenticator = {name!r}"
    installed = {each.name: each for each in entry_points(group=GROUP)}
    entry = installed.get(name)
    if entry is None:
        known = ", ".join(sorted(installed)) or "none"
        raise SettingsError(
            f"{place}: no installed package has an entry point of that name in the group {GROUP};"
            f" installed: {known}"
        )
    try:
        make: object = entry.load()
        made: object = make() if callable(make) else make
    except Exception as error:  # of the package, whatever it is
        raise SettingsError(
            f"{place}: {entry.value} cannot be used: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, PackageAuthenticator):
        raise SettingsError(f"{place}: {entry.value} has no method authenticate")
    return NamedAuthenticator(name, made)
