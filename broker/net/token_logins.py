"""Decides about tokens: keeps the issuer's keys, and fetches them anew when a token needs another.

A token whose key is known is judged at once. One with an unknown key waits for a fetch, of which
there is one at a time, and one in FETCH_PAUSE_S at most: anyone may send tokens with made-up keys.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Final, TypeAlias

from broker.clock import Clock, SystemClock
from broker.net.key_source import KeySource
from broker.oauth_settings import OauthSettings
from broker.security.token_keys import KeyRing, KeysError, TokenKey
from broker.security.tokens import TokenClaims, TokenRefused, TokenVerifier, UnknownKey

REFRESH_S: Final = 3600.0
"""Seconds between two fetches of the keys."""

RETRY_S: Final = 60.0
"""Seconds until the next fetch after one that failed, if no token asks for it before."""

FETCH_PAUSE_S: Final = 30.0
"""Seconds from a fetch until an unknown key leads to the next one."""

WAITING_MAX: Final = 200
"""Maximum tokens that wait for a fetch, of at most 16 KiB each."""

PROBLEMS_MAX: Final = 100
"""Maximum scopes without a meaning of which the operator is told; each once."""

Notice: TypeAlias = Callable[[str], None]


class TokenUnchecked(Exception):  # noqa: N818 - as refusals are named in this project
    """The token cannot be judged now, and may be sent again. The message says why."""


TokenVerdict: TypeAlias = TokenClaims | TokenRefused | TokenUnchecked


class PendingTokenLogin(ABC):
    """A login that waits for the verdict on its token."""

    @abstractmethod
    def conclude(self, verdict: TokenVerdict) -> None:
        """Take the verdict. Called once, in the event loop, perhaps within `ask`."""


class TokenLogins:
    """The tokens of one issuer. `start` it in the event loop in which it is asked."""

    def __init__(
        self,
        settings: OauthSettings,
        *,
        notice: Notice,
        clock: Clock | None = None,
        source: KeySource | None = None,
    ) -> None:
        """Raise SettingsError if the settings name files that cannot be used.

        `notice` is called with what the operator should know.
        """
        self._notice: Final = notice
        self._clock: Final = SystemClock() if clock is None else clock
        self._source = KeySource(settings) if source is None else source
        self._source.check()
        self._verifier = TokenVerifier(settings)
        self._keys: Final = KeyRing()
        self._waiting: list[tuple[str, PendingTokenLogin]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fetched_ms: int | None = None
        self._is_fetching = False
        self._forgets = False
        self._problem = ""
        self._problems: Final[set[str]] = set()

    def start(self) -> None:
        """Fetch the keys for the first time, and regularly from now on."""
        self._loop = asyncio.get_running_loop()
        self._fetch()

    def stop(self) -> None:
        """Fetch no more. Tokens that wait are not judged."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop = None
        waiting, self._waiting = self._waiting, []
        for _, pending in waiting:
            pending.conclude(TokenUnchecked("the broker is stopping"))

    def look(self) -> None:
        """Fetch the keys now, and forget those that are no longer published."""
        self._forgets = True
        self._fetch()

    def adopt(self, other: TokenLogins) -> None:
        """Judge tokens by the settings of `other` from now on, and fetch the keys anew.

        Keys of another place are not used any more, even if that one cannot be reached: they may be
        of another issuer.
        """
        if other._source.place != self._source.place:
            self._keys.adopt([], int(self._clock.now_ms()), forget=True)
        self._source = other._source
        self._verifier = other._verifier
        self.look()

    def ask(self, token: str, pending: PendingTokenLogin) -> None:
        """Give `pending` the verdict on `token`, at once if its key is known."""
        verdict = self._verdict(token)
        if not isinstance(verdict, UnknownKey):
            pending.conclude(verdict)
            return
        if not self._is_fetching and self._may_fetch():
            self._fetch()
        if not self._is_fetching:
            # A key that was published after the last fetch may be right: the client tries again.
            pending.conclude(TokenUnchecked(f"{verdict}; {self._problem or 'they were just read'}"))
        elif len(self._waiting) >= WAITING_MAX:
            pending.conclude(TokenUnchecked(f"{WAITING_MAX} tokens wait for the issuer's keys"))
        else:
            self._waiting.append((token, pending))

    def _verdict(self, token: str) -> TokenVerdict:
        now_ms, wall_ms = int(self._clock.now_ms()), int(self._clock.wall_ms())
        try:
            claims = self._verifier.verify(token, self._keys, now_ms=now_ms, wall_ms=wall_ms)
        except TokenRefused as refusal:
            return refusal
        for problem in claims.problems:
            self._tell_of_scope(problem, claims.user)
        return claims

    def _tell_of_scope(self, problem: str, user: str) -> None:
        """Tell the operator once that a scope gives no right, and why."""
        if problem not in self._problems and len(self._problems) < PROBLEMS_MAX:
            self._problems.add(problem)
            self._notice(f"a scope in a token of {user!r} gives no right: {problem}")

    # -- keys

    def _may_fetch(self) -> bool:
        since_ms = self._fetched_ms
        return since_ms is None or int(self._clock.now_ms()) - since_ms >= FETCH_PAUSE_S * 1000

    def _fetch(self) -> None:
        """Begin to fetch the keys, unless that goes on already."""
        if self._is_fetching or self._loop is None:
            return
        self._is_fetching = True
        self._fetched_ms = int(self._clock.now_ms())
        if self._timer is not None:
            self._timer.cancel()
        # A thread of its own, which does not keep the process alive: a host that does not answer
        # holds neither the checks of passwords up nor the broker's end.
        Thread(
            target=self._read, args=(self._loop, self._source), name="oauth-keys", daemon=True
        ).start()

    def _read(self, loop: asyncio.AbstractEventLoop, source: KeySource) -> None:
        found: list[TokenKey] | KeysError
        try:
            found = source.read()
        except KeysError as error:
            found = error
        except Exception as error:  # noqa: BLE001 - else no fetch would ever follow
            found = KeysError(f"jwks = {source.place!r}: {error!r}")
        with suppress(RuntimeError):  # the broker has stopped, and its event loop is closed
            loop.call_soon_threadsafe(self._fetched, found, source)

    def _fetched(self, found: list[TokenKey] | KeysError, source: KeySource) -> None:
        self._is_fetching = False
        if self._loop is None:
            return
        if source is not self._source:  # the settings have changed meanwhile
            self._fetch()
            return
        if isinstance(found, KeysError):
            problem = str(found)
            if problem != self._problem:
                self._notice(f"the keys of tokens were not read: {problem}")
            self._problem = problem
        else:
            self._keys.adopt(found, int(self._clock.now_ms()), forget=self._forgets)
            self._forgets = False
            self._problem = ""
        again_s = RETRY_S if self._problem else REFRESH_S
        self._timer = self._loop.call_later(again_s, self._fetch)
        self._answer_waiting()

    def _answer_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for token, pending in waiting:
            verdict = self._verdict(token)
            if isinstance(verdict, UnknownKey) and self._problem:
                verdict = TokenUnchecked(f"{verdict}; {self._problem}")
            pending.conclude(verdict)
