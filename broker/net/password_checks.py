"""Checks passwords off the event loop: few at once, in fair turns, equal ones together."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final

from broker.security.turns import TooManyLogins, Turns

CHECKS_AT_ONCE_MAX: Final = 2
"""Maximum password checks at a time: argon2 takes a core and 19 MiB for each."""


class PasswordVerdict(Enum):
    """The result of a check; `UNCHECKED`: there was none, and the client may try again."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCHECKED = "unchecked"


class PendingLogin(ABC):
    """A login that waits for a verdict."""

    @abstractmethod
    def is_gone(self) -> bool:
        """Return whether the login has ended, so that it needs no verdict."""

    @abstractmethod
    def conclude(self, verdict: PasswordVerdict) -> None:
        """Take the verdict. Called once, in the event loop."""


class AwaitedLogin(PendingLogin):
    """A coroutine that waits for the verdict."""

    def __init__(self) -> None:
        self.verdict: Final = asyncio.get_running_loop().create_future()

    def is_gone(self) -> bool:
        return self.verdict.done()

    def conclude(self, verdict: PasswordVerdict) -> None:
        if not self.verdict.done():
            self.verdict.set_result(verdict)


Credentials = tuple[str, str, str]
"""Source, user name and password."""


class Check:
    """One password of one user from one source, and all logins that wait for its verdict."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials: Final = credentials
        self.logins: Final[list[PendingLogin]] = []

    def conclude(self, verdict: PasswordVerdict) -> None:
        """Give `verdict` to every login of this check."""
        for pending in self.logins:
            pending.conclude(verdict)


def checks_at_once(cores: int | None = None) -> int:
    """Return how many checks run at a time: one core, if there are two, is for the event loop."""
    cores = (os.cpu_count() or 1) if cores is None else cores
    return max(1, min(CHECKS_AT_ONCE_MAX, cores - 1))


class PasswordChecks:
    """Runs `verify` in threads, and gives the verdicts to the logins.

    Logins of one source with the same name and password wait for one check: an application
    that opens a hundred connections, and a flood of one guess, cost one hash.
    """

    def __init__(
        self,
        verify: Callable[[str, str], bool],
        *,
        turns: Turns[Check] | None = None,
        is_throttled: Callable[[str, str], bool] | None = None,
    ) -> None:
        """`is_throttled` tells, by source and user, whether a login has no check for now."""
        self._is_throttled: Final = is_throttled
        self._verify: Final = verify
        self._turns: Final = Turns[Check]() if turns is None else turns
        self._waiting: Final[dict[Credentials, Check]] = {}
        self._running = 0
        self._at_once: Final = checks_at_once()

    def ask(self, source: str, user: str, password: str, *, pending: PendingLogin) -> None:
        """Give `pending` the verdict on this password later; UNCHECKED if too many checks wait."""
        credentials = (source, user, password)
        check = self._waiting.get(credentials)
        if check is None:
            check = self._waiting[credentials] = Check(credentials)
            displaced = self._turns.put(source, user, check)
            if displaced is not None:
                del self._waiting[displaced.credentials]
                displaced.conclude(PasswordVerdict.UNCHECKED)
        check.logins.append(pending)
        self._go_on()

    async def verdict(self, source: str, user: str, password: str) -> bool:
        """Return whether the password is right. Raise TooManyLogins if it was not checked."""
        pending = AwaitedLogin()
        self.ask(source, user, password, pending=pending)
        verdict = await pending.verdict
        if verdict is PasswordVerdict.UNCHECKED:
            raise TooManyLogins(refusal_of(source))
        return verdict is PasswordVerdict.RIGHT

    def _go_on(self) -> None:
        """Start checks while cores are free and logins wait."""
        while self._running < self._at_once and len(self._turns):
            check = self._turns.take()
            del self._waiting[check.credentials]
            if all(pending.is_gone() for pending in check.logins):
                continue
            source, user, password = check.credentials
            # asked now, as logins that were checked since this one came may have failed
            if self._is_throttled is not None and self._is_throttled(source, user):
                check.conclude(PasswordVerdict.UNCHECKED)
                continue
            self._running += 1
            done = asyncio.get_running_loop().run_in_executor(None, self._verify, user, password)
            done.add_done_callback(partial(self._done, check))

    def _done(self, check: Check, done: asyncio.Future[bool]) -> None:
        self._running -= 1
        error = None if done.cancelled() else done.exception()
        if done.cancelled() or error is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a password check failed", "exception": error}
            )
            check.conclude(PasswordVerdict.UNCHECKED)
        else:
            check.conclude(PasswordVerdict.RIGHT if done.result() else PasswordVerdict.WRONG)
        self._go_on()


def refusal_of(source: str) -> str:
    """Return the reason why a login from `source` was not checked."""
    return f"too many logins from {source} have failed, or wait for their check; try again later"
